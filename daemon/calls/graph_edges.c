// SPDX-License-Identifier: Apache-2.0
/* graph_edges - from paths of call sites to edges; see graph_edges.h. */
#include "daemon/calls/graph_edges.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/calls/graph_tails.h"

/* ---- trees ----------------------------------------------------------------------------------- */

static uint32_t module_of(const struct md_call_graph *graph, uint64_t id)
{
	for (uint32_t i = 0; id && i < graph->nr_modules; i++)
		if (graph->modules[i].id == id)
			return i;
	return MP_NONE;
}

/* Return: the function that a node stands in; *@module: MP_NONE if not known. */
static uint32_t function_of(const struct md_call_graph *graph, const struct mp_context_key *key,
			    uint32_t *module)
{
	uint32_t f = MP_NONE;

	*module = key->kind <= MP_CONTEXT_FUNCTION ? module_of(graph, key->module) : MP_NONE;
	if (*module != MP_NONE)
		f = md_graph_function_at(&graph->modules[*module],
					 key->vaddr - (key->kind == MP_CONTEXT_CALL));
	return f;
}

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

/* Fewer samples do not tell whether two functions were called equally often. */
#define ENOUGH 20

/* Could two numbers of samples be drawn from equally many calls? */
static bool is_near(uint64_t a, uint64_t b)
{
	double difference = (double)a - (double)b;

	return difference * difference <= 9 * ((double)a + (double)b);
}

/*
 * A clock samples a function that ends with a jump as well as the function that it jumps to, below the
 * same call. Return: the jump by which @function, at @node, was entered; .site MP_NONE: none is known.
 * *@most: samples of the function that jumps.
 */
static struct md_graph_site find_jump(const struct md_call_graph *graph,
				      const struct mp_context_tree *tree, uint32_t node,
				      struct md_graph_function function, uint64_t *most)
{
	struct md_graph_site known = {0, MP_NONE}, pointer = known;
	uint64_t by_pointer = 0;

	*most = 0;
	for (uint32_t i = tree->nodes[tree->nodes[node].parent].first; i; i = tree->nodes[i].next) {
		const struct mp_context_key key = mp_context_key_of(tree, i);
		uint64_t self = tree->nodes[i].self;
		struct md_graph_function from;
		struct md_graph_site tail;

		from.function = function_of(graph, &key, &from.module);
		if (i == node || from.function == MP_NONE)
			continue;
		tail = md_graph_tail_to(graph, from, function);
		if (tail.site != MP_NONE && self > *most) {
			*most = self;
			known = tail;
		}
		/* A pointer at a fixed address mostly leads to one function. */
		if (tail.site != MP_NONE || self < ENOUGH || !is_near(self, tree->nodes[node].self))
			continue;
		tail = md_graph_tail_by_pointer(graph, from);
		if (tail.site == MP_NONE)
			continue;
		by_pointer = self;
		pointer = tail;
	}
	if (known.site != MP_NONE)
		return known;
	*most = by_pointer;
	return pointer;
}

/* Adds the calls of @function that a clock sampled below the call @site. */
static int add_called(struct md_call_graph *graph, const struct md_graph_tails *tails,
		      struct md_graph_site site, struct md_graph_function function,
		      const struct mp_context_tree *tree, uint32_t node)
{
	const struct md_graph_function *callee = &graph->modules[site.module].targets[site.site];
	bool is_indirect = callee->function == MP_NONE;
	uint64_t nr = tree->nodes[node].self, most, jumps = 0;
	struct md_graph_site jump;
	int r = 0;

	if (!is_indirect && callee->module == function.module &&
	    callee->function == function.function)
		return add_calls(graph, site, function, nr);
	jump = find_jump(graph, tree, node, function, &most);
	if (jump.site != MP_NONE) {
		jumps = most > nr || is_near(most, nr) ? nr : most;
		r = add_calls(graph, jump, function, jumps);
	}
	/* Without a clock in the function that jumps, code alone tells. */
	if (!r && !is_indirect && nr > jumps)
		site = md_graph_entry_find(tails, site, function).site;
	return r ? r : add_calls(graph, site, function, nr - jumps);
}

static int add_node(struct md_call_graph *graph, const struct md_graph_tails *tails,
		    const struct mp_context_tree *tree, uint32_t node, bool called)
{
	const struct mp_context_node *n = &tree->nodes[node];
	const struct mp_context_key key = mp_context_key_of(tree, node);
	const struct mp_context_key above = mp_context_key_of(tree, n->parent);
	struct md_graph_entry entry = {.site.site = MP_NONE, .through.function = MP_NONE};
	bool is_called = n->parent && above.kind == MP_CONTEXT_CALL;
	struct md_graph_function f;
	uint32_t caller;

	f.function = function_of(graph, &key, &f.module);
	if (is_called) {
		caller = module_of(graph, above.module);
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
		entry = md_graph_entry_find(tails, entry.site, f);
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
