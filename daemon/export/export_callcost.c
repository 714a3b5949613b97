// SPDX-License-Identifier: Apache-2.0
/*
 * export_callcost - finds the cycles of the call graph (Tarjan, 1972, without recursion) and
 * adds up costs from the leaves; see export_callcost.h.
 */
#include "daemon/export/export_callcost.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define NONE MP_NONE

/* Calls by caller: those of function f are cost->calls[first[f] .. first[f + 1]). */
struct graph {
	size_t *first, *at;
	/* state of Tarjan's algorithm */
	uint32_t *number, *low, *stack, *path;
	uint32_t nr_stack, nr_path, next;
};

static void graph_fini(struct graph *g)
{
	free(g->first);
	free(g->number);
	free(g->low);
	free(g->stack);
	free(g->path);
	free(g->at);
}

static int graph_init(struct graph *g, const struct md_callcost *cost)
{
	uint32_t nr_funcs = cost->m->code->cfg->nr_funcs;
	size_t nr = (size_t)nr_funcs + 2;

	g->first = calloc(nr, sizeof(*g->first));
	g->at = calloc(nr, sizeof(*g->at));
	g->number = calloc(nr, sizeof(*g->number));
	g->low = calloc(nr, sizeof(*g->low));
	g->stack = calloc(nr, sizeof(*g->stack));
	g->path = calloc(nr, sizeof(*g->path));
	if (!g->first || !g->at || !g->number || !g->low || !g->stack || !g->path)
		return -ENOMEM;
	for (size_t i = 0; i < cost->nr_calls; i++)
		g->first[cost->calls[i].caller + 1]++;
	for (uint32_t f = 0; f < nr_funcs; f++)
		g->first[f + 1] += g->first[f];
	for (uint32_t f = 0; f < nr_funcs; f++)
		g->at[f] = g->first[f];
	return 0;
}

static void visit(struct graph *g, uint32_t f)
{
	g->number[f] = g->low[f] = ++g->next;
	g->stack[g->nr_stack++] = f;
	g->path[g->nr_path++] = f;
}

/* Visits all functions reachable from @root. A cycle is numbered after all cycles that it calls. */
static void walk(struct md_callcost *cost, struct graph *g, uint32_t root)
{
	visit(g, root);
	while (g->nr_path) {
		uint32_t f = g->path[g->nr_path - 1], callee;

		if (g->at[f] < g->first[f + 1]) {
			callee = cost->calls[g->at[f]++].callee;
			if (!g->number[callee])
				visit(g, callee);
			else if (cost->cycle[callee] == NONE && g->number[callee] < g->low[f])
				g->low[f] = g->number[callee];
			continue;
		}
		g->nr_path--;
		if (g->nr_path && g->low[f] < g->low[g->path[g->nr_path - 1]])
			g->low[g->path[g->nr_path - 1]] = g->low[f];
		if (g->low[f] != g->number[f])
			continue;
		do {
			callee = g->stack[--g->nr_stack];
			cost->cycle[callee] = cost->nr_cycles;
		} while (callee != f);
		cost->nr_cycles++;
	}
}

static double call_cost(const struct md_callcost *cost, const struct md_export_call *call)
{
	uint32_t from = cost->cycle[call->caller], to = cost->cycle[call->callee];

	if (from == to || !(cost->entered[to] > 0))
		return 0;
	return cost->total[to] * (call->count / cost->entered[to]);
}

/* Executions of the function's entry that no edge inside the function explains. */
static double entered_func(const struct md_callcost *cost, uint32_t f, const double *into)
{
	const struct mp_cfg *cfg = cost->m->code->cfg;
	const struct mp_func *func = &cfg->funcs[f];

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		if (cfg->blocks[b].flags & MP_BLOCK_ENTRY)
			return fmax(cost->m->inferred->block[b] - into[b], 0);
	return 0;
}

static int sum_entered(struct md_callcost *cost)
{
	const struct mp_cfg *cfg = cost->m->code->cfg;
	double *into = calloc((size_t)cfg->nr_blocks + 1, sizeof(*into));
	double *known = calloc((size_t)cfg->nr_funcs + 1, sizeof(*known));
	double *outside = calloc((size_t)cfg->nr_funcs + 1, sizeof(*outside));

	if (!into || !known || !outside) {
		free(into);
		free(known);
		free(outside);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < cfg->nr_edges; i++)
		into[cfg->edges[i].to] += cost->m->inferred->edge[i];
	for (size_t i = 0; i < cost->nr_calls; i++) {
		const struct md_export_call *call = &cost->calls[i];

		known[call->callee] += call->count;
		if (cost->cycle[call->caller] != cost->cycle[call->callee])
			outside[call->callee] += call->count;
	}
	/* The two estimates may disagree: use at least the number of known calls. */
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		cost->entered[cost->cycle[f]] +=
			outside[f] + fmax(entered_func(cost, f, into) - known[f], 0);
	free(into);
	free(known);
	free(outside);
	return 0;
}

static int sum_costs(struct md_callcost *cost, struct graph *g, const uint64_t *samples)
{
	const struct mp_cfg *cfg = cost->m->code->cfg;
	uint32_t *order = g->path; /* functions ordered by cycle: callees first */
	uint32_t *begin = calloc((size_t)cost->nr_cycles + 2, sizeof(*begin));

	if (!begin)
		return -ENOMEM;
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		cost->total[cost->cycle[f]] += (double)samples[f];
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		begin[cost->cycle[f] + 1]++;
	for (uint32_t c = 0; c < cost->nr_cycles; c++)
		begin[c + 1] += begin[c];
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		order[begin[cost->cycle[f]]++] = f;
	for (uint32_t i = 0; i < cfg->nr_funcs; i++) {
		uint32_t f = order[i];

		for (size_t c = g->first[f]; c < g->first[f + 1]; c++)
			cost->total[cost->cycle[f]] += call_cost(cost, &cost->calls[c]);
	}
	free(begin);
	return 0;
}

int md_callcost_init(struct md_callcost *cost, const struct md_export_module *m,
		     const uint64_t *samples)
{
	const struct mp_cfg *cfg = m->code->cfg;
	size_t nr = (size_t)cfg->nr_funcs + 1;
	struct graph g = {0};
	int r;

	*cost = (struct md_callcost){.m = m};
	cost->total = calloc(nr, sizeof(*cost->total));
	cost->entered = calloc(nr, sizeof(*cost->entered));
	cost->cycle = malloc(nr * sizeof(*cost->cycle));
	r = md_export_calls(m, &cost->calls, &cost->nr_calls);
	if (!r)
		r = graph_init(&g, cost);
	if (!cost->total || !cost->entered || !cost->cycle)
		r = -ENOMEM;
	if (!r) {
		for (uint32_t f = 0; f < cfg->nr_funcs; f++)
			cost->cycle[f] = NONE;
		for (uint32_t f = 0; f < cfg->nr_funcs; f++)
			if (!g.number[f])
				walk(cost, &g, f);
		r = sum_entered(cost);
	}
	if (!r)
		r = sum_costs(cost, &g, samples);
	graph_fini(&g);
	return r;
}

void md_callcost_fini(struct md_callcost *cost)
{
	free(cost->calls);
	free(cost->total);
	free(cost->entered);
	free(cost->cycle);
	*cost = (struct md_callcost){0};
}

uint64_t md_callcost_of(const struct md_callcost *cost, const struct md_export_call *call)
{
	double samples = call_cost(cost, call);

	return samples > 0 ? (uint64_t)llround(samples) : 0;
}
