// SPDX-License-Identifier: Apache-2.0
/*
 * graph_jumps - the jumps that led to a function below a call, by what a tree has there. A clock of calls
 * samples a function that ends with a jump as well as the function that it jumps to, below the same call.
 * Called by graph_edges.
 *
 * A function that ends with a jump through a pointer may jump to any function. But where the code before
 * a call passes the address of a function on, the call itself does not lead there, and what it calls may:
 *
 *	call *0xb8(%rax)	with visit's address in rsi; a tree has traverse() and visit() below
 *	traverse: jmp *%rsi	so this jump led to visit()
 *
 * Where the callers of a function pass functions to it, a call through a register leads to one of these. A
 * function that none of them passes was entered by a jump of one that they pass:
 *
 *	lea remove, %rsi; call each	each calls *%r13; a tree has remove() and hide() below
 *	remove: jmp *0x10(%rax)		so this jump led to hide()
 */
#ifndef MD_GRAPH_JUMPS_H
#define MD_GRAPH_JUMPS_H

#include "daemon/calls/call_graph.h"

struct md_graph_jump {
	struct md_graph_site site;
	struct md_graph_function from; /* the function that ends with the jump */
	double weight;		       /* how often it jumps, beside the others */
};

struct md_graph_jumps {
	struct md_graph_jump *jumps;
	uint32_t nr, max;
	uint64_t most; /* samples of the functions that jump */
};

/*
 * md_graph_jumps_find - the jumps by which @function, at @node of a tree of sampled calls, was entered below
 * the call @site. Return: 0, -ENOMEM. Ownership: free(@out->jumps), after an error too.
 */
int md_graph_jumps_find(const struct md_call_graph *graph, const struct mp_context_tree *tree,
			uint32_t node, struct md_graph_site site, struct md_graph_function function,
			struct md_graph_jumps *out);

/*
 * The same for a tree of samples of time, whose nodes have the callers of @site above them: the function
 * with most samples below any call of @site. Return: .site.site MP_NONE: none is known.
 */
struct md_graph_jump md_graph_jump_seen(const struct md_call_graph *graph,
					const struct mp_context_tree *tree, uint32_t node,
					struct md_graph_site site,
					struct md_graph_function function);

/* Could two numbers of samples be drawn from equally many calls? */
bool md_graph_is_near(uint64_t a, uint64_t b);

#endif
