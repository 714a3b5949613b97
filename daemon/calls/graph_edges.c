// SPDX-License-Identifier: Apache-2.0
/* graph_edges - from paths of call sites to edges; see graph_edges.h. */
#include "daemon/calls/graph_edges.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/calls/graph_jumps.h"

/* ---- trees ----------------------------------------------------------------------------------- */

/* Return: index of an edge; MP_NONE: no memory. @site .site MP_NONE: outside. */
static uint32_t add_edge(struct md_call_graph *graph, struct md_graph_site site,
			 struct md_graph_function function)
{
	uint32_t s = MP_CALLGRAPH_OUTSIDE, f;

	f = md_call_graph_function(graph, function.module, function.function);
	if (site.site != MP_NONE) {
		s = md_call_graph_site(graph, site.module, site.site);
		/* MP_CALLGRAPH_OUTSIDE is MP_NONE. */
		if (s == MP_NONE)
			return MP_NONE;
	}
	return f != MP_NONE ? md_call_graph_edge(graph, s, f) : MP_NONE;
}

static int add_samples(struct md_call_graph *graph, const struct md_graph_entry *entry,
		       struct md_graph_function function, const struct mp_context_node *node)
{
	double self = node->kind == MP_CONTEXT_FUNCTION ? (double)node->self : 0;
	uint32_t edge = add_edge(graph, entry->site, function);

	if (edge == MP_NONE)
		return -ENOMEM;
	graph->samples[edge].nr_new += node->nr_new;
	graph->samples[edge].self += (uint64_t)self;
	graph->graph.edges[edge].seen += self;
	if (entry->through.function == MP_NONE)
		return 0;
	edge = add_edge(graph, entry->first, entry->through);
	if (edge == MP_NONE)
		return -ENOMEM;
	graph->graph.edges[edge].seen += self;
	return 0;
}

static int add_calls(struct md_call_graph *graph, struct md_graph_site site,
		     struct md_graph_function function, uint64_t nr)
{
	uint32_t edge = nr ? add_edge(graph, site, function) : 0;

	if (edge == MP_NONE)
		return -ENOMEM;
	if (nr) {
		graph->modules[function.module].is_clocked = true;
		graph->samples[edge].called += nr;
		graph->graph.edges[edge].called += (double)nr;
	}
	return 0;
}

/* Shares @nr calls of @function out to the jumps that led there. */
static int add_jumps(struct md_call_graph *graph, const struct md_graph_jumps *jumps,
		     struct md_graph_function function, uint64_t nr)
{
	double sum = 0, before = 0;
	int r = 0;

	for (uint32_t i = 0; i < jumps->nr; i++)
		sum += jumps->jumps[i].weight;
	for (uint32_t i = 0; i < jumps->nr && !r; i++) {
		double after = before + (double)nr * jumps->jumps[i].weight / sum;

		r = add_calls(graph, jumps->jumps[i].site, function,
			      (uint64_t)(after + 0.5) - (uint64_t)(before + 0.5));
		before = after;
	}
	return r;
}

/* Adds the calls of @function that a clock sampled below the call @site. */
static int add_called(struct md_call_graph *graph, const struct md_graph_tails *tails,
		      struct md_graph_site site, struct md_graph_function function,
		      const struct mp_context_tree *tree, uint32_t node)
{
	const struct md_graph_function *callee = &graph->modules[site.module].targets[site.site];
	bool is_indirect = callee->function == MP_NONE;
	uint64_t nr = tree->nodes[node].self, nr_jumps;
	struct md_graph_jumps jumps;
	int r;

	if (!is_indirect && callee->module == function.module &&
	    callee->function == function.function)
		return add_calls(graph, site, function, nr);
	r = md_graph_jumps_find(graph, tree, node, site, function, &jumps);
	nr_jumps = jumps.most > nr || md_graph_is_near(jumps.most, nr) ? nr : jumps.most;
	if (!jumps.nr)
		nr_jumps = 0;
	if (!r)
		r = add_jumps(graph, &jumps, function, nr_jumps);
	free(jumps.jumps);
	/* Without a clock in the function that jumps, code alone tells. */
	if (!r && !is_indirect && nr > nr_jumps)
		site = md_graph_entry_find(tails, site, function).site;
	return r ? r : add_calls(graph, site, function, nr - nr_jumps);
}

/* How @function, which a sample of time shows below the call @site, was entered. */
static struct md_graph_entry find_entry(const struct md_call_graph *graph,
					const struct md_graph_tails *tails,
					struct md_graph_site site,
					struct md_graph_function function,
					const struct mp_context_tree *tree, uint32_t node)
{
	const struct md_graph_jump jump = md_graph_jump_seen(graph, tree, node, site, function);

	if (jump.site.site == MP_NONE)
		return md_graph_entry_find(tails, site, function);
	return (struct md_graph_entry){jump.site, jump.from, site};
}

static int add_node(struct md_call_graph *graph, const struct md_graph_tails *tails,
		    const struct mp_context_tree *tree, uint32_t node, bool called)
{
	const struct mp_context_node *n = &tree->nodes[node];
	const struct mp_context_key key = mp_context_key_of(tree, node);
	const struct mp_context_key above = mp_context_key_of(tree, n->parent);
	struct md_graph_entry entry = {.site.site = MP_NONE, .through.function = MP_NONE};
	bool is_called = n->parent && above.kind == MP_CONTEXT_CALL;
	const struct md_graph_function f = md_call_graph_place(graph, &key);

	if (is_called) {
		uint32_t caller = md_call_graph_place(graph, &above).module;

		entry.site.module = caller;
		if (caller != MP_NONE)
			entry.site.site =
				md_graph_site_before(&graph->modules[caller], above.vaddr);
	}
	if (f.function == MP_NONE || (is_called && entry.site.site == MP_NONE)) {
		graph->nr_unknown += n->nr_new;
		return 0;
	}
	if (called && is_called)
		return add_called(graph, tails, entry.site, f, tree, node);
	if (called)
		return add_calls(graph, entry.site, f, n->self);
	if (is_called)
		entry = find_entry(graph, tails, entry.site, f, tree, node);
	return add_samples(graph, &entry, f, n);
}

int md_graph_add_tree(struct md_call_graph *graph, const struct md_graph_tails *tails,
		      const struct mp_context_tree *tree, bool called)
{
	int r = 0;

	for (uint32_t i = 1; i < tree->nr_nodes && !r; i++)
		r = add_node(graph, tails, tree, i, called);
	return r;
}

/* ---- code ------------------------------------------------------------------------------------ */

int md_graph_add_direct(struct md_call_graph *graph)
{
	for (uint32_t i = 0; i < graph->nr_modules; i++) {
		struct md_graph_module *m = &graph->modules[i];

		for (uint32_t k = 0; k < m->sites.nr; k++) {
			const struct mp_call_site *site = &m->sites.sites[k];
			const struct md_graph_function *to = &m->targets[k];
			uint32_t s, f;

			if (to->function == MP_NONE ||
			    (m->site_ids[k] == MP_NONE &&
			     !(mp_call_site_count(m->code.cfg, &m->counts, site) > 0)))
				continue;
			s = md_call_graph_site(graph, i, k);
			f = md_call_graph_function(graph, to->module, to->function);
			if (s == MP_NONE || f == MP_NONE ||
			    md_call_graph_edge(graph, s, f) == MP_NONE)
				return -ENOMEM;
		}
	}
	return 0;
}
