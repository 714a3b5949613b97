// SPDX-License-Identifier: Apache-2.0
/*
 * flow - builds the graph, chooses places, and sets weights. instrument decides which
 * edges are counted.
 */
#include "editor/instrument/flow.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "editor/evidence/eligible.h"
#include "editor/instrument/old_code.h"
#include "libprof/base/grow.h"
#include "libprof/note/edge_table.h"

/* Without counts: assumed runs of a loop, and how many nested loops are considered. Ball and Larus
 * assume 10 ("Optimally profiling and tracing programs"); products of a power of two are exact. */
#define LOOP_RUNS  8
#define MAX_NESTED 6

static bool reserve(struct me_flow *flow, const struct mp_cfg *cfg, const struct mp_func *func)
{
	const struct mp_block *last = &cfg->blocks[func->first_block + func->nr_blocks - 1];
	uint32_t edges = last->first_edge + last->nr_edges -
			 cfg->blocks[func->first_block].first_edge + 2 * func->nr_blocks;

	if (edges > flow->cap) {
		if (mp_resize(flow->edges, edges))
			return false;
		flow->cap = edges;
	}
	if (func->nr_blocks >= flow->cap_vertices) {
		uint32_t cap = func->nr_blocks + 1;

		if (mp_resize(flow->degree, 2 * cap))
			return false;
		flow->cap_vertices = cap;
	}
	return true;
}

/* Two ways from one block to the same block are one edge. */
static bool has_edge(const struct me_flow *flow, uint32_t first, uint32_t to)
{
	for (uint32_t e = first; e < flow->nr_edges; e++)
		if (flow->edges[e].to == to)
			return true;
	return false;
}

static void add(struct me_flow *flow, uint32_t from, uint32_t to, uint8_t kind, double weight)
{
	flow->edges[flow->nr_edges++] =
		(struct me_flow_edge){.from = from, .to = to, .kind = kind, .weight = weight};
}

/* Sets in @is_target the targets of all jumps through tables. */
static void find_table_targets(const struct me_flow *flow, const struct mp_cfg *cfg,
			       uint32_t *is_target)
{
	memset(is_target, 0, ((size_t)flow->nr_blocks + 1) * sizeof(*is_target));
	for (uint32_t i = 0; i < flow->nr_blocks; i++) {
		const struct mp_block *block = &cfg->blocks[flow->first_block + i];

		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
			if (cfg->edges[e].kind == MP_EDGE_TABLE)
				is_target[cfg->edges[e].to - flow->first_block] = 1;
	}
}

static void add_edges(struct me_flow *flow, const struct mp_cfg *cfg,
		      const struct mp_counts *counts, bool tables_leave)
{
	const uint32_t outside = flow->nr_blocks;
	uint32_t *is_target = flow->degree;

	if (tables_leave)
		find_table_targets(flow, cfg, is_target);
	for (uint32_t i = 0; i < flow->nr_blocks; i++) {
		uint32_t b = flow->first_block + i, first;
		const struct mp_block *block = &cfg->blocks[b];
		double left = counts ? counts->block[b] : 0;
		bool leaves = mp_block_leaves(cfg, block) || !block->nr_edges;

		if (block->flags & MP_BLOCK_PADDING)
			continue;
		if (mp_block_enters(block) || (tables_leave && is_target[i]))
			add(flow, outside, i, MP_EDGE_OUTSIDE, 0);
		first = flow->nr_edges;
		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++) {
			const struct mp_edge *edge = &cfg->edges[e];
			double weight = counts ? counts->edge[e] : 0;

			if (tables_leave && edge->kind == MP_EDGE_TABLE) {
				leaves = true;
				continue;
			}
			left -= weight;
			if (!has_edge(flow, first, edge->to - flow->first_block))
				add(flow, i, edge->to - flow->first_block, edge->kind, weight);
		}
		if (leaves)
			add(flow, i, outside, MP_EDGE_OUTSIDE, fmax(left, 0));
	}
}

static void count_degrees(struct me_flow *flow)
{
	uint32_t *in = flow->degree, *out = flow->degree + flow->nr_blocks + 1;

	memset(flow->degree, 0, 2 * ((size_t)flow->nr_blocks + 1) * sizeof(*flow->degree));
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		out[flow->edges[e].from]++;
		in[flow->edges[e].to]++;
	}
}

/* May an instruction that changes flags stand before the block? Without @flags: always. */
static bool is_free(const struct me_flags *flags, uint32_t block)
{
	return !flags || !flags->live[block];
}

/*
 * Edges of the first instruction of a function, which also runs in old code where others enter the function.
 * From there control comes to copies, so counters before other blocks count all of it. *@place: set if that
 * decides.
 */
static bool place_at_head(const struct me_flow *flow, const struct mp_cfg *cfg,
			  const struct me_flags *flags, const struct me_flow_edge *edge,
			  enum me_flow_place *place)
{
	const uint32_t *in = flow->degree, outside = flow->nr_blocks;
	const uint32_t from = flow->first_block + edge->from, to = flow->first_block + edge->to;

	*place = ME_FLOW_NOWHERE;
	if (edge->from == outside) {
		if (!mp_cfg_is_first_insn(cfg, to))
			return false;
		if (in[edge->to] == 1 && in[edge->to + 1] == 1 &&
		    !me_old_code_is_head(cfg, to + 1) && !me_block_stays(&cfg->blocks[to + 1]) &&
		    is_free(flags, to + 1))
			*place = ME_FLOW_BEHIND_TARGET;
		return *place != ME_FLOW_NOWHERE || me_old_code_is_head(cfg, to);
	}
	/* The counter of the edge from outside counts the same. */
	if (mp_cfg_is_first_insn(cfg, from) && in[edge->from] == 1)
		return true;
	if (!me_old_code_is_head(cfg, from))
		return false;
	if (edge->to != outside && in[edge->to] == 1 && !me_old_code_is_head(cfg, to) &&
	    !me_block_stays(&cfg->blocks[to]) && is_free(flags, to))
		*place = ME_FLOW_BEFORE_TARGET;
	return true;
}

static enum me_flow_place place_of(const struct me_flow *flow, const struct mp_cfg *cfg,
				   const struct me_flags *flags, const struct me_flow_edge *edge)
{
	const uint32_t *in = flow->degree, *out = flow->degree + flow->nr_blocks + 1;
	const uint32_t outside = flow->nr_blocks;
	const struct mp_block *from = NULL, *to = NULL;
	bool at_from = false, at_to = false;
	enum me_flow_place place;

	if (edge->from != outside) {
		from = &cfg->blocks[flow->first_block + edge->from];
		at_from = !me_block_stays(from);
	}
	if (edge->to != outside) {
		to = &cfg->blocks[flow->first_block + edge->to];
		at_to = !me_block_stays(to) && is_free(flags, flow->first_block + edge->to);
	}
	if (place_at_head(flow, cfg, flags, edge, &place))
		return place;
	if (at_to && in[edge->to] == 1)
		return ME_FLOW_BEFORE_TARGET;
	if (at_from && out[edge->from] == 1 && is_free(flags, flow->first_block + edge->from))
		return ME_FLOW_BEFORE_SOURCE;
	if (at_to && !from)
		return ME_FLOW_AT_ENTRY;
	if (at_from && to && is_free(flags, flow->first_block + edge->to) &&
	    from->term != MP_TERM_TABLE && from->term != MP_TERM_UNRESOLVED)
		return ME_FLOW_ON_EDGE;
	return ME_FLOW_NOWHERE;
}

/* Weight of an edge from outside: the block's count minus that of its other edges. */
static void weigh_entries(struct me_flow *flow, const struct mp_counts *counts)
{
	const uint32_t outside = flow->nr_blocks;
	uint32_t *entry = flow->degree; /* vertex -> its edge from outside */

	for (uint32_t i = 0; i <= outside; i++)
		entry[i] = MP_NONE;
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		struct me_flow_edge *edge = &flow->edges[e];

		if (edge->from != outside)
			continue;
		entry[edge->to] = e;
		edge->weight = counts->block[flow->first_block + edge->to];
	}
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		const struct me_flow_edge *edge = &flow->edges[e];

		if (edge->from != outside && entry[edge->to] != MP_NONE)
			flow->edges[entry[edge->to]].weight -= edge->weight;
	}
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		flow->edges[e].weight = fmax(flow->edges[e].weight, 0);
}

/* Without counts: the more loops contain an edge, the heavier it is. */
static void weigh_by_loops(struct me_flow *flow)
{
	uint32_t *opens = flow->degree, *closes = flow->degree + flow->nr_blocks + 1;
	const uint32_t outside = flow->nr_blocks;
	uint32_t depth = 0;

	memset(flow->degree, 0, 2 * ((size_t)flow->nr_blocks + 1) * sizeof(*flow->degree));
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		const struct me_flow_edge *edge = &flow->edges[e];

		if (edge->from != outside && edge->to <= edge->from) {
			opens[edge->to]++;
			closes[edge->from]++;
		}
	}
	for (uint32_t i = 0; i < flow->nr_blocks; i++) {
		depth += opens[i];
		opens[i] = depth < MAX_NESTED ? depth : MAX_NESTED;
		depth -= closes[i];
	}
	opens[outside] = 0;
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		struct me_flow_edge *edge = &flow->edges[e];
		uint32_t a = opens[edge->from], b = opens[edge->to];

		edge->weight = pow(LOOP_RUNS, a < b ? a : b);
	}
}

static bool has_counts(const struct me_flow *flow, const struct mp_counts *counts)
{
	for (uint32_t i = 0; counts && i < flow->nr_blocks; i++)
		if (counts->block[flow->first_block + i] > 0)
			return true;
	return false;
}

int me_flow_build(const struct mp_cfg *cfg, const struct me_flags *flags,
		  const struct mp_counts *counts, uint32_t func, bool tables_leave,
		  struct me_flow *flow)
{
	const struct mp_func *f = &cfg->funcs[func];

	flow->first_block = f->first_block;
	flow->nr_blocks = f->nr_blocks;
	flow->nr_edges = 0;
	if (!f->nr_blocks)
		return 0;
	if (!reserve(flow, cfg, f))
		return -ENOMEM;
	add_edges(flow, cfg, counts, tables_leave);
	count_degrees(flow);
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		flow->edges[e].place = place_of(flow, cfg, flags, &flow->edges[e]);
	if (has_counts(flow, counts))
		weigh_entries(flow, counts);
	else
		weigh_by_loops(flow);
	return 0;
}

void me_flow_fini(struct me_flow *flow)
{
	free(flow->edges);
	free(flow->degree);
	*flow = (struct me_flow){0};
}
