// SPDX-License-Identifier: Apache-2.0
/*
 * graph_tails - which jumps a stack does not show. A function that ends by a tail call leaves no frame: its
 * caller seems to have called the function that it jumped to. Called by graph_edges.
 */
#ifndef MD_GRAPH_TAILS_H
#define MD_GRAPH_TAILS_H

#include "daemon/calls/call_graph.h"

struct md_graph_tails;

/* Return: 0, -ENOMEM. Ownership: md_graph_tails_free(*@out), which takes NULL. */
int md_graph_tails_new(const struct md_call_graph *graph, struct md_graph_tails **out);
void md_graph_tails_free(struct md_graph_tails *tails);

/* Return: the site of a jump by which @from ends and enters @to; .site MP_NONE: it has none. */
struct md_graph_site md_graph_tail_to(const struct md_call_graph *graph,
				      struct md_graph_function from, struct md_graph_function to);

/* The same for a jump through a pointer at a fixed address, if the function there is not known. */
struct md_graph_site md_graph_tail_by_pointer(const struct md_call_graph *graph,
					      struct md_graph_function from);

/*
 * The jump of @from that ran most often through a pointer that comes from elsewhere: neither a pointer at a
 * fixed address nor a jump whose target the code shows.
 */
struct md_graph_site md_graph_tail_open(const struct md_call_graph *graph,
					struct md_graph_function from);

/* Return: does the site call or jump through a pointer whose target the code does not show? */
bool md_graph_is_pointer(const struct md_call_graph *graph, struct md_graph_site site);
/* Return: does the code before the call @site pass the address of @function on? */
bool md_graph_passes(const struct md_call_graph *graph, struct md_graph_site site,
		     struct md_graph_function function);

/* How a function was entered. */
struct md_graph_entry {
	struct md_graph_site site; /* the last jump, or the call itself */
	/* A function that @first called and that ends with the jump @site; .function MP_NONE: none */
	struct md_graph_function through;
	struct md_graph_site first;
};

/* @site: the call below which a stack shows @function. */
struct md_graph_entry md_graph_entry_find(const struct md_graph_tails *tails,
					  struct md_graph_site site,
					  struct md_graph_function function);

#endif
