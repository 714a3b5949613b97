// SPDX-License-Identifier: Apache-2.0
/*
 * number - numbers the paths through one function after the other, and writes a table of what
 * the numbers mean. number_paths chooses the numbers, stubs places the stubs, registers finds
 * free registers. Called by optimize.
 */
#include "editor/instrument/number.h"

#include <errno.h>
#include <stdlib.h>

#include "editor/evidence/eligible.h"
#include "editor/instrument/old_code.h"
#include "editor/instrument/number_private.h"
#include "editor/place/poll_code.h"
#include "editor/evidence/vectors.h"
#include "libprof/base/grow.h"

static void bar(struct me_number *n, const uint16_t *barred)
{
	for (uint32_t b = 0; b < n->cfg->nr_blocks; b++) {
		uint32_t func = n->cfg->blocks[b].func;

		if (func == MP_NONE)
			continue;
		n->registers.free[b] &= (uint16_t)~barred[func];
		n->registers.dead[b] &= (uint16_t)~barred[func];
	}
}

int me_number_new(const struct mp_cfg *cfg, bool polls, const uint8_t *movable,
		  const uint16_t *barred, struct me_number **out, struct mp_err *err)
{
	struct me_number *n = calloc(1, sizeof(*n));
	int rc;

	*out = n;
	if (!n)
		return mp_err_set(err, ENOMEM, "out of memory");
	n->cfg = cfg;
	n->polls = polls;
	n->arrives = calloc((size_t)cfg->nr_blocks + 1, 1);
	if (!n->arrives) {
		me_number_free(n);
		*out = NULL;
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		if (movable[f])
			me_old_code_find_arrivals(cfg, f, n->arrives);
	rc = me_free_registers_find(cfg, movable, &n->registers, err);
	if (!rc && barred)
		bar(n, barred);
	if (!rc && polls) {
		n->vector = me_vectors_unnamed(cfg->elf);
		rc = me_flags_find(cfg, movable, true, &n->flags, err);
	}
	if (rc) {
		me_number_free(n);
		*out = NULL;
	}
	return rc;
}

void me_number_free(struct me_number *n)
{
	if (!n)
		return;
	me_free_registers_fini(&n->registers);
	free(n->arrives);
	me_flags_fini(&n->flags);
	me_flow_fini(&n->flow);
	me_stubs_fini(&n->stubs);
	free(n->vertices);
	free(n->edges);
	free(n->in);
	free(n->order);
	free(n->stack);
	free(n->offset);
	free(n->passing);
	free(n->next);
	free(n->table.funcs);
	free(n->table.blocks);
	free(n->table.edges);
	free(n);
}

static bool reserve(struct me_number *n)
{
	uint32_t vertices = n->flow.nr_blocks + 1, edges = n->flow.nr_edges + 1;

	if (vertices > n->cap_vertices) {
		struct me_number_vertex *more = reallocarray(n->vertices, vertices, sizeof(*more));
		uint32_t *order, *stack, *offset;

		n->vertices = more ? more : n->vertices;
		order = reallocarray(n->order, vertices, sizeof(*order));
		n->order = order ? order : n->order;
		stack = reallocarray(n->stack, 2 * (size_t)vertices, sizeof(*stack));
		n->stack = stack ? stack : n->stack;
		offset = reallocarray(n->offset, vertices, sizeof(*offset));
		n->offset = offset ? offset : n->offset;
		if (!more || !order || !stack || !offset)
			return false;
		n->cap_vertices = vertices;
	}
	if (edges > n->cap_edges) {
		struct me_number_edge *more = reallocarray(n->edges, edges, sizeof(*more));
		uint32_t *in = reallocarray(n->in, edges, sizeof(*in));
		struct me_register_offset_edge *passing =
			reallocarray(n->passing, edges, sizeof(*passing));

		n->edges = more ? more : n->edges;
		n->in = in ? in : n->in;
		n->passing = passing ? passing : n->passing;
		if (!more || !in || !passing)
			return false;
		n->cap_edges = edges;
	}
	return true;
}

/* ---- the table ----------------------------------------------------------------------------- */

static void sum_up(struct me_number *n)
{
	struct me_number_report *r = n->report;

	for (uint32_t v = 0; v < n->flow.nr_blocks; v++) {
		const struct me_number_vertex *at = &n->vertices[v];

		r->insns += at->weight * me_number_block(n, v)->nr_insns;
		if (at->nr_in < 2)
			continue;
		r->nr_merges++;
		r->merges += at->weight;
		if (at->starts)
			continue;
		r->nr_told_apart++;
		r->told_apart += at->weight;
	}
}

static bool add_to_table(struct me_number *n)
{
	struct mp_path_table *t = &n->table;
	const struct me_flow *flow = &n->flow;
	uint32_t first = t->nr_blocks, first_edge = t->nr_edges;

	if (mp_grow(t->blocks, n->cap_blocks, (uint64_t)first + flow->nr_blocks) ||
	    mp_grow(t->edges, n->cap_table_edges, (uint64_t)first_edge + flow->nr_edges))
		return false;
	for (uint32_t v = 0; v < flow->nr_blocks; v++) {
		const struct mp_block *block = me_number_block(n, v);
		const struct me_number_vertex *at = &n->vertices[v];

		t->blocks[t->nr_blocks++] = (struct mp_path_block){
			.vaddr = block->vaddr,
			.size = block->size,
			.term_off = block->size - block->term_len,
			.reg = at->reg,
			.starts = at->starts,
			.shift = at->shift,
			.fully_reported = at->fully_reported,
		};
		for (uint32_t k = 0; k < at->nr_in; k++) {
			uint32_t e = n->in[at->first_in + k];
			const struct me_flow_edge *edge = &flow->edges[e];

			t->edges[t->nr_edges++] = (struct mp_path_edge){
				.from = edge->from == flow->nr_blocks ? MP_NONE
								      : first + edge->from,
				.to = first + v,
				.kind = edge->kind,
				.carries = n->edges[e].carries,
				.value = n->edges[e].value,
			};
		}
	}
	t->funcs[t->nr_funcs++] =
		(struct mp_path_func){first, flow->nr_blocks, first_edge, t->nr_edges - first_edge};
	return true;
}

/* ---- the plan ------------------------------------------------------------------------------ */

/* Set @fully_reported of all blocks, successors first. */
static void find_fully_reported(struct me_number *n)
{
	for (uint32_t i = 0; i < n->flow.nr_blocks; i++) {
		struct me_number_vertex *at = &n->vertices[n->order[i]];
		bool all = at->nr_out && !mp_block_leaves(n->cfg, me_number_block(n, n->order[i]));

		for (uint32_t e = at->first_out; e < at->first_out + at->nr_out; e++)
			all = all && n->edges[e].carries &&
			      n->vertices[n->flow.edges[e].to].fully_reported;
		at->fully_reported = at->polls || all;
	}
}

static bool add_function(struct me_number *n)
{
	me_number_paths(n);
	if (!me_number_add_stubs(n))
		return false;
	find_fully_reported(n);
	sum_up(n);
	return add_to_table(n);
}

/* Fill @n->next: the block that follows in the plan. Blocks that the plan lacks keep their
 * order. */
static bool follow_plan(struct me_number *n, const struct me_plan *plan, const uint8_t *movable)
{
	const struct mp_cfg *cfg = n->cfg;
	uint8_t *planned = calloc((size_t)cfg->nr_blocks + 1, 1);
	uint32_t last = MP_NONE;

	n->next = malloc(((size_t)cfg->nr_blocks + 1) * sizeof(*n->next));
	if (!n->next || !planned) {
		free(planned);
		return false;
	}
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		n->next[b] = MP_NONE;
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		planned[plan->blocks[i].block] = 1;
		if (!plan->blocks[i].clone && i + 1 < plan->nr_blocks)
			n->next[plan->blocks[i].block] = plan->blocks[i + 1].block;
	}
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		uint32_t func = cfg->blocks[b].func;

		if (planned[b] || func == MP_NONE || !movable[func] ||
		    me_block_stays(&cfg->blocks[b]))
			continue;
		if (last != MP_NONE && cfg->blocks[last].func == func)
			n->next[last] = b;
		last = b;
	}
	free(planned);
	return true;
}

static int add_functions(struct me_number *n, const struct mp_counts *counts,
			 const uint8_t *movable)
{
	const struct mp_cfg *cfg = n->cfg;

	n->table.funcs = malloc(((size_t)cfg->nr_funcs + 1) * sizeof(*n->table.funcs));
	if (!n->table.funcs)
		return -ENOMEM;
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		if (!movable[f] || !cfg->funcs[f].nr_blocks)
			continue;
		if (me_flow_build(cfg, NULL, counts, f, false, &n->flow) || !reserve(n) ||
		    !add_function(n))
			return -ENOMEM;
	}
	return 0;
}

int me_number_plan(struct me_number *n, const struct mp_counts *counts, const uint8_t *movable,
		   struct me_plan *plan, struct me_instrumentation *added,
		   struct me_number_report *report, struct mp_err *err)
{
	int rc;

	*report = (struct me_number_report){0};
	n->report = report;
	rc = follow_plan(n, plan, movable) ? add_functions(n, counts, movable) : -ENOMEM;
	report->nr_funcs = n->table.nr_funcs;
	if (!rc)
		rc = me_stubs_put(n->cfg, movable, &n->stubs, plan, added, &report->nr_inline);
	if (rc)
		return mp_err_code(err, -rc);
	if (report->nr_polls) {
		added->polls = true;
		added->nr_counters = ME_POLLS_BYTES / 8;
	}
	added->table_name = MP_PATH_TABLE_SECTION;
	return mp_path_table_encode(&n->table, &added->table, &added->table_size, err);
}
