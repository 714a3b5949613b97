// SPDX-License-Identifier: Apache-2.0
/*
 * call_graph - the call graph of programs: edges from call sites to functions, over all modules, with how
 * often each was taken. Made when asked, from the stored trees, the counts of the modules and the
 * modules' code; nothing of it is stored. Called by the command calls and by the export to callgrind.
 *
 * - A site that calls one function directly has one edge. A call through a PLT leads to the function that
 *   samples saw, at this site or at another one for the same symbol; without any, to the only module
 *   that exports the symbol. An indirect call leads to the functions that samples saw.
 * - A stack does not have a frame that ended by a tail call. Where the called function, and those that it
 *   jumps to, lead to the one that was seen, the samples count for the last jump's edge.
 * - Calls that a clock of calls sampled are stored in the same way, as the site and the function that it
 *   entered.
 * - The counts of a module are those of all programs. A program's part of a function's counts is its part
 *   of the samples that trees have there.
 */
#ifndef MD_CALL_GRAPH_H
#define MD_CALL_GRAPH_H

#include "daemon/calls/graph_modules.h"
#include "daemon/code/stats_filter.h"
#include "libprof/callgraph/callgraph.h"

struct md_graph_site {
	uint32_t module; /* index */
	uint32_t site;	 /* index in the module's sites */
};

/* The samples that trees have for an edge. */
struct md_graph_samples {
	uint64_t self;	 /* samples in the called function itself */
	uint64_t nr_new; /* activations of the called function that are certainly new */
	uint64_t called; /* calls that a clock of calls sampled */
};

struct md_graph_passing;

struct md_call_graph {
	struct mp_callgraph graph;
	struct md_graph_samples *samples; /* by edge */
	struct md_graph_site *sites;
	struct md_graph_function *functions;
	struct md_graph_module *modules;
	struct mp_module *stored; /* all modules of the store */
	size_t nr_modules, nr_stored, nr_programs;
	uint64_t nr_samples; /* of the programs' trees */
	uint64_t nr_called; /* calls that a clock of calls sampled in the programs; 0: there was none */
	uint64_t clocked;    /* calls that these stand for */
	uint64_t nr_unknown; /* activations of all stacks whose call site or function is not known */
	struct md_graph_passing *passings; /* graph_callbacks */
	uint32_t nr_passings;
	uint32_t max_edges, max_sites, max_functions;
	uint32_t *slots, nr_slots; /* hash table of edges; MP_NONE: free */
};

/*
 * md_call_graph_read - @filter selects programs. @note: gets messages about files that cannot be read.
 * Without contexts, *@out has no programs. Return: 0, -errno. Ownership: md_call_graph_fini(@out).
 */
int md_call_graph_read(struct mp_store *store, const struct md_stats_filter *filter,
		       int64_t since_s, void (*note)(void *arg, const char *message), void *arg,
		       struct md_call_graph *out, struct mp_err *err);
void md_call_graph_fini(struct md_call_graph *graph);

/* ---- for the files graph_* ---- */

/* Return: index of the module that trees name by @id; MP_NONE: unknown. */
uint32_t md_call_graph_module(const struct md_call_graph *graph, uint64_t id);
/* Return: the function that a node of a tree stands in. .module, .function: MP_NONE if not known. */
struct md_graph_function md_call_graph_place(const struct md_call_graph *graph,
					     const struct mp_context_key *key);

/* Finds or adds. Return: index; MP_NONE: no memory. */
uint32_t md_call_graph_site(struct md_call_graph *graph, uint32_t module, uint32_t site);
uint32_t md_call_graph_function(struct md_call_graph *graph, uint32_t module, uint32_t function);
uint32_t md_call_graph_edge(struct md_call_graph *graph, uint32_t site, uint32_t function);

#endif
