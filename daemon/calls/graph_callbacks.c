// SPDX-License-Identifier: Apache-2.0
/* graph_callbacks - joins what calls pass on with what the called functions call; see graph_callbacks.h. */
#include "daemon/calls/graph_callbacks.h"

#include <errno.h>
#include <stdlib.h>

#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/callgraph/call_arguments.h"

static int compare_functions(const struct md_graph_function *x, const struct md_graph_function *y)
{
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->function > y->function) - (x->function < y->function);
}

static int compare_passings(const void *a, const void *b)
{
	const struct md_graph_passing *x = a, *y = b;
	int r = compare_functions(&x->to, &y->to);

	return r ? r : compare_functions(&x->passed, &y->passed);
}

static int add_passings(struct md_call_graph *graph, uint32_t *max, uint32_t module, uint32_t site,
			struct mp_call_loads *loads)
{
	const struct md_graph_module *m = &graph->modules[module];
	uint32_t passed[MP_CALL_ARGUMENTS_MAX];
	uint32_t nr = mp_call_arguments(m->code.cfg, loads, &m->sites.sites[site], passed);

	for (uint32_t i = 0; i < nr; i++) {
		if (mp_push(graph->passings, graph->nr_passings, *max,
			    (struct md_graph_passing){m->targets[site], {module, passed[i]}}))
			return -ENOMEM;
	}
	return 0;
}

/* By module and function: does it call through a register, where the code does not show a target? */
static int find_callers(const struct md_call_graph *graph, bool **calls)
{
	for (uint32_t i = 0; i < graph->nr_modules; i++) {
		const struct md_graph_module *m = &graph->modules[i];

		if (!m->is_open)
			continue;
		calls[i] = calloc(m->code.cfg->nr_funcs + (size_t)1, sizeof(**calls));
		if (!calls[i])
			return -ENOMEM;
		for (uint32_t k = 0; k < m->sites.nr; k++)
			if (m->targets[k].function == MP_NONE &&
			    mp_call_site_count(m->code.cfg, &m->counts, &m->sites.sites[k]) > 0 &&
			    mp_call_is_by_register(m->code.cfg, &m->sites.sites[k]))
				calls[i][m->code.cfg->blocks[m->sites.sites[k].block].func] = true;
	}
	return 0;
}

static bool is_direct(enum mp_call_kind kind)
{
	return kind == MP_CALL_DIRECT || kind == MP_CALL_TAIL;
}

static int find_passings(struct md_call_graph *graph, bool *const *calls)
{
	uint32_t max = 0;
	int r = 0;

	for (uint32_t i = 0; i < graph->nr_modules && !r; i++) {
		const struct md_graph_module *m = &graph->modules[i];
		struct mp_call_loads loads = {.func = MP_NONE};

		for (uint32_t k = 0; k < m->sites.nr && !r; k++) {
			const struct md_graph_function *to = &m->targets[k];

			if (to->function != MP_NONE && is_direct(m->sites.sites[k].kind) &&
			    calls[to->module][to->function])
				r = add_passings(graph, &max, i, k, &loads);
		}
	}
	return r;
}

int md_graph_find_passed(struct md_call_graph *graph)
{
	bool **calls = calloc(graph->nr_modules + 1, sizeof(*calls));
	int r = calls ? find_callers(graph, calls) : -ENOMEM;

	if (!r)
		r = find_passings(graph, calls);
	for (uint32_t i = 0; calls && i < graph->nr_modules; i++)
		free(calls[i]);
	free(calls);
	if (graph->nr_passings)
		qsort(graph->passings, graph->nr_passings, sizeof(*graph->passings),
		      compare_passings);
	return r;
}

bool md_graph_is_passed_to(const struct md_call_graph *graph, struct md_graph_function to,
			   struct md_graph_function passed)
{
	size_t low = mp_search(i, 0, graph->nr_passings,
			       compare_functions(&graph->passings[i].to, &to) < 0);

	for (; low < graph->nr_passings && !compare_functions(&graph->passings[low].to, &to); low++)
		if (passed.function == MP_NONE ||
		    !compare_functions(&graph->passings[low].passed, &passed))
			return true;
	return false;
}

/* Adds edges to @passed from the sites of @to that call through a register. */
static int add_from(struct md_call_graph *graph, struct md_graph_function to,
		    struct md_graph_function passed)
{
	struct md_graph_module *m = &graph->modules[to.module];
	const struct mp_func *func = &m->code.cfg->funcs[to.function];

	for (uint32_t r = func->first_range; r < func->first_range + func->nr_ranges; r++) {
		const struct mp_range *range = &m->code.cfg->ranges[r];

		for (uint32_t i = md_graph_first_site(m, range->start);
		     i < m->sites.nr && m->sites.sites[i].vaddr - range->start < range->size; i++) {
			const struct mp_call_site *site = &m->sites.sites[i];
			uint32_t s, f;

			if (m->targets[i].function != MP_NONE ||
			    !mp_call_is_by_register(m->code.cfg, site) ||
			    !(mp_call_site_count(m->code.cfg, &m->counts, site) > 0))
				continue;
			s = md_call_graph_site(graph, to.module, i);
			f = md_call_graph_function(graph, passed.module, passed.function);
			if (s == MP_NONE || f == MP_NONE ||
			    md_call_graph_edge(graph, s, f) == MP_NONE)
				return -ENOMEM;
		}
	}
	return 0;
}

/* Edges by their sites. */
struct by_site {
	uint32_t *first, *next; /* by site, and by edge: an edge, or MP_NONE */
};

static int index_edges(const struct mp_callgraph *graph, struct by_site *by)
{
	by->first = malloc((graph->nr_sites + (size_t)1) * sizeof(*by->first));
	by->next = malloc((graph->nr_edges + (size_t)1) * sizeof(*by->next));
	if (!by->first || !by->next)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->nr_sites; i++)
		by->first[i] = MP_NONE;
	for (uint32_t e = 0; e < graph->nr_edges; e++) {
		uint32_t site = graph->edges[e].site;

		by->next[e] = site != MP_CALLGRAPH_OUTSIDE ? by->first[site] : MP_NONE;
		if (site != MP_CALLGRAPH_OUTSIDE)
			by->first[site] = e;
	}
	return 0;
}

/* @nr_sites: of the graph before edges were added. */
static int add_module(struct md_call_graph *graph, uint32_t module, const struct by_site *by,
		      uint32_t nr_sites)
{
	const struct md_graph_module *m = &graph->modules[module];
	struct mp_call_loads loads = {.func = MP_NONE};
	uint32_t passed[MP_CALL_ARGUMENTS_MAX];
	int r = 0;

	for (uint32_t k = 0; k < m->sites.nr && !r; k++) {
		uint32_t site = m->site_ids[k], nr;

		if (site >= nr_sites || by->first[site] == MP_NONE)
			continue;
		nr = mp_call_arguments(m->code.cfg, &loads, &m->sites.sites[k], passed);
		for (uint32_t e = by->first[site]; nr && e != MP_NONE && !r; e = by->next[e])
			for (uint32_t i = 0; i < nr && !r; i++)
				r = add_from(graph,
					     graph->functions[graph->graph.edges[e].function],
					     (struct md_graph_function){module, passed[i]});
	}
	return r;
}

int md_graph_add_callbacks(struct md_call_graph *graph)
{
	uint32_t nr_sites = graph->graph.nr_sites;
	struct by_site by = {NULL, NULL};
	int r = index_edges(&graph->graph, &by);

	for (uint32_t i = 0; i < graph->nr_modules && !r; i++)
		r = add_module(graph, i, &by, nr_sites);
	free(by.first);
	free(by.next);
	return r;
}
