// SPDX-License-Identifier: Apache-2.0
/*
 * instrument - chooses the counted edges, and puts their stubs into the plan. flow
 * decides the graph and the places on its edges.
 */
#include "editor/instrument/instrument.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/evidence/eligible.h"
#include "editor/evidence/flags/flags.h"
#include "editor/instrument/flow.h"
#include "editor/instrument/old_code.h"
#include "editor/unwind/unwind.h"
#include "libprof/base/grow.h"
#include "libprof/note/edge_table.h"
#include "libprof/insn/insn.h"

/* The condition codes of jp and jnp, less the bit that inverts. */
#define JUMP_PARITY 5

struct me_instrument {
	const struct mp_cfg *cfg;
	struct me_flags flags;
	struct me_flags with_carry; /* only if each thread has its own counters */
	struct me_flow flow;	    /* of the current function */
	uint32_t *order, *root;	    /* order: of its edges, root: of its vertices */
	uint32_t cap;
	uint8_t *in_tree, *spare; /* of its edges */
	struct me_instrument_report *report;
	uint32_t nr_uncounted[ME_NR_UNCOUNTED];
};

struct planner {
	struct me_instrument *in;
	struct mp_edge_table table;
	uint32_t cap_blocks, cap_edges;
	struct me_stubs stubs;
	bool threads; /* each has its own counters */
};

static const char *const uncounted_names[ME_NR_UNCOUNTED] = {
	[ME_UNCOUNTED_FLAGS] = "not counted: its callers or callees pass arithmetic flags",
	[ME_UNCOUNTED_OLD_CODE] = "not counted: control may stay in its old code",
	[ME_UNCOUNTED_CYCLE] = "not counted: the counters that can be placed do not determine "
			       "all its counts",
};

/* ---- the tree ---------------------------------------------------------------------------- */

static uint32_t find_root(uint32_t *root, uint32_t v)
{
	while (root[v] != v) {
		root[v] = root[root[v]];
		v = root[v];
	}
	return v;
}

static int compare_weight(const void *a, const void *b, void *edges)
{
	const struct me_flow_edge *x = (const struct me_flow_edge *)edges + *(const uint32_t *)a;
	const struct me_flow_edge *y = (const struct me_flow_edge *)edges + *(const uint32_t *)b;

	/* Edges that cannot be counted must be in the tree, so they come first; NaNs' ways are the last of these. */
	if (!x->place != !y->place)
		return x->place ? 1 : -1;
	if (!x->place && x->unordered != y->unordered)
		return x->unordered ? 1 : -1;
	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

/*
 * Compilers jump by parity behind comparisons of floating point numbers: the parity flag is set if one is a NaN.
 * Return: the way that this takes (enum mp_edge_kind); MP_EDGE_OUTSIDE: the block has no such jump.
 */
static uint8_t unordered_way(const struct mp_cfg *cfg, const struct mp_block *block)
{
	uint64_t vaddr = block->vaddr + block->size - block->term_len;
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, vaddr, block->term_len);
	const struct mp_edge *ways = &cfg->edges[block->first_edge];
	struct mp_insn insn;

	if (block->term != MP_TERM_COND || block->nr_edges != 2 || ways[0].to == ways[1].to ||
	    !bytes || mp_insn_decode(bytes, block->term_len, vaddr, &insn) ||
	    insn.cc >> 1 != JUMP_PARITY)
		return MP_EDGE_OUTSIDE;
	return insn.cc & 1 ? MP_EDGE_FALL : MP_EDGE_TAKEN;
}

/* Does control come to the edge's start from one block alone, which also leads to the edge's end? */
static bool is_triangle(const struct me_flow *flow, const struct me_flow_edge *edge)
{
	uint32_t from = flow->nr_blocks, nr = 0;
	bool leads = false;

	for (uint32_t e = 0; e < flow->nr_edges; e++)
		if (flow->edges[e].to == edge->from) {
			from = flow->edges[e].from;
			nr++;
		}
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		leads |= flow->edges[e].from == from && flow->edges[e].to == edge->to;
	return nr == 1 && from != flow->nr_blocks && leads;
}

static void find_unordered(const struct mp_cfg *cfg, struct me_flow *flow)
{
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		struct me_flow_edge *edge = &flow->edges[e];

		if (edge->kind != MP_EDGE_OUTSIDE && edge->place == ME_FLOW_NOWHERE)
			edge->unordered =
				edge->kind ==
					unordered_way(
						cfg,
						&cfg->blocks[flow->first_block + edge->from]) &&
				is_triangle(flow, edge);
	}
}

static bool reserve_tree(struct me_instrument *in)
{
	uint32_t cap = in->flow.nr_edges + in->flow.nr_blocks + 1;

	if (cap <= in->cap)
		return true;
	if (mp_resize(in->order, cap) || mp_resize(in->root, cap) || mp_resize(in->in_tree, cap) ||
	    mp_resize(in->spare, cap))
		return false;
	in->cap = cap;
	return true;
}

/* Remove the edges that are not in the tree and cannot be counted. */
static void leave_out_unordered(struct me_instrument *in)
{
	struct me_flow *flow = &in->flow;
	uint32_t nr = 0;

	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		if (!in->in_tree[e] && flow->edges[e].place == ME_FLOW_NOWHERE)
			continue;
		in->in_tree[nr] = in->in_tree[e];
		flow->edges[nr++] = flow->edges[e];
	}
	flow->nr_edges = nr;
}

/*
 * Kruskal's algorithm. If a way that only NaNs take closes a cycle, it is left out, as if it never ran: blocks behind
 * it keep their counts, only not how control came there. Return: 0, -ENOMEM, -EDOM: another edge that cannot be
 * counted closes a cycle.
 */
static int span(struct me_instrument *in)
{
	struct me_flow *flow = &in->flow;

	if (!reserve_tree(in))
		return -ENOMEM;
	find_unordered(in->cfg, flow);
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		in->order[e] = e;
	for (uint32_t v = 0; v <= flow->nr_blocks; v++)
		in->root[v] = v;
	qsort_r(in->order, flow->nr_edges, sizeof(*in->order), compare_weight, flow->edges);
	for (uint32_t i = 0; i < flow->nr_edges; i++) {
		const struct me_flow_edge *edge = &flow->edges[in->order[i]];
		uint32_t a = find_root(in->root, edge->from), b = find_root(in->root, edge->to);

		in->in_tree[in->order[i]] = a != b;
		if (a == b && edge->place == ME_FLOW_NOWHERE && !edge->unordered)
			return -EDOM;
		in->root[a] = b;
	}
	leave_out_unordered(in);
	return 0;
}

/* Builds the graph of @func and its tree. Return: 0, -ENOMEM, -EDOM: it cannot be counted. */
static int build(struct me_instrument *in, const struct mp_counts *counts, uint32_t func)
{
	int rc = -EDOM;

	for (int tables_leave = 0; tables_leave <= 1 && rc == -EDOM; tables_leave++) {
		rc = me_flow_build(in->cfg, &in->flags, counts, func, tables_leave, &in->flow);
		if (!rc)
			rc = span(in);
	}
	return rc;
}

/* ---- which functions --------------------------------------------------------------------- */

static int choose(struct me_instrument *in, uint32_t func, enum me_uncounted *why)
{
	int rc;

	*why = ME_COUNTED;
	if (in->flags.shared[func]) {
		*why = ME_UNCOUNTED_FLAGS;
	} else if (me_old_code_may_run(in->cfg, func)) {
		*why = ME_UNCOUNTED_OLD_CODE;
	} else {
		rc = build(in, NULL, func);
		if (rc == -ENOMEM)
			return rc;
		*why = rc ? ME_UNCOUNTED_CYCLE : ME_COUNTED;
	}
	return 0;
}

int me_instrument_new(const struct mp_cfg *cfg, uint8_t *movable, const char **detail,
		      struct me_instrument **out, struct mp_err *err)
{
	struct me_instrument *in = calloc(1, sizeof(*in));
	int rc;

	*out = in;
	if (!in)
		return mp_err_set(err, ENOMEM, "out of memory");
	in->cfg = cfg;
	rc = me_flags_find(cfg, movable, false, &in->flags, err);
	for (uint32_t f = 0; !rc && f < cfg->nr_funcs; f++) {
		enum me_uncounted why;

		if (!movable[f])
			continue;
		rc = choose(in, f, &why);
		if (rc)
			mp_err_code(err, -rc);
		in->nr_uncounted[why]++;
		movable[f] = why == ME_COUNTED;
		if (why != ME_COUNTED)
			detail[f] = uncounted_names[why];
	}
	if (rc) {
		me_instrument_free(in);
		*out = NULL;
	}
	return rc;
}

void me_instrument_free(struct me_instrument *in)
{
	if (!in)
		return;
	me_flags_fini(&in->flags);
	me_flags_fini(&in->with_carry);
	me_flow_fini(&in->flow);
	free(in->order);
	free(in->root);
	free(in->in_tree);
	free(in->spare);
	free(in);
}

/* ---- counters ---------------------------------------------------------------------------- */

static bool calls(const struct mp_cfg *cfg, uint32_t func)
{
	const struct mp_func *f = &cfg->funcs[func];

	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
		struct mp_insn insn;

		for (uint32_t off = 0; bytes && off < block->size; off += insn.len) {
			if (mp_insn_decode(bytes + off, block->size - off, block->vaddr + off,
					   &insn))
				break;
			if (insn.kind == MP_INSN_CALL || insn.kind == MP_INSN_ICALL)
				return true;
		}
	}
	return false;
}

/* The stub that counts @edge. */
static struct me_stub_to stub_of(const struct me_flow *flow, const struct me_flow_edge *edge,
				 uint32_t counter)
{
	struct me_stub_to stub = {.block = flow->first_block + edge->to,
				  .what = {.counter = counter}};

	switch (edge->place) {
	case ME_FLOW_BEFORE_TARGET: stub.what.arrivals = ME_STUB_ALL; break;
	case ME_FLOW_BEFORE_SOURCE:
		stub.block = flow->first_block + edge->from;
		stub.what.arrivals = ME_STUB_ALL;
		break;
	case ME_FLOW_BEHIND_TARGET:
		stub.block++;
		stub.what.arrivals = ME_STUB_ALL;
		break;
	case ME_FLOW_AT_ENTRY: stub.what.arrivals = ME_STUB_OUTSIDE; break;
	default: stub.what.arrivals = ME_STUB_EDGE; stub.what.from = flow->first_block + edge->from;
	}
	return stub;
}

/*
 * The block of the flow of which the counter of @edge counts every arrival; MP_NONE: it
 * counts one way only.
 */
static uint32_t before_block(const struct me_flow_edge *edge)
{
	switch (edge->place) {
	case ME_FLOW_BEFORE_TARGET: return edge->to;
	case ME_FLOW_BEFORE_SOURCE: return edge->from;
	case ME_FLOW_BEHIND_TARGET: return edge->to + 1;
	default: return MP_NONE;
	}
}

/*
 * A call may never return (an exception, say). If the function calls, entries and exits
 * in the tree get counters as well, which show how often that happens. A block never
 * gets two counters before it: both would count the same. @spare: per edge of the flow.
 */
static void find_spare_counters(const struct planner *p, uint32_t func, uint8_t *spare)
{
	const struct me_flow *flow = &p->in->flow;
	uint32_t *taken = flow->degree; /* per vertex: a counter stands before it */

	memset(spare, 0, flow->nr_edges);
	if (!calls(p->in->cfg, func))
		return;
	memset(taken, 0, (flow->nr_blocks + 1) * sizeof(*taken));
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		if (!p->in->in_tree[e] && before_block(&flow->edges[e]) != MP_NONE)
			taken[before_block(&flow->edges[e])] = 1;
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		const struct me_flow_edge *edge = &flow->edges[e];
		uint32_t before = before_block(edge);

		if (!p->in->in_tree[e] || edge->place == ME_FLOW_NOWHERE ||
		    (edge->from != flow->nr_blocks && edge->to != flow->nr_blocks) ||
		    (before != MP_NONE && taken[before]))
			continue;
		if (before != MP_NONE)
			taken[before] = 1;
		spare[e] = 1;
	}
}

/* The block at which the function is entered; MP_NONE: it stays in old code. */
static uint32_t entry_of(const struct mp_cfg *cfg, uint32_t func)
{
	const struct mp_func *f = &cfg->funcs[func];

	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++)
		if (cfg->blocks[b].flags & MP_BLOCK_ENTRY)
			return me_block_stays(&cfg->blocks[b]) ? MP_NONE : b;
	return MP_NONE;
}

/*
 * Can @func be the first code of the file that a thread runs? Threads start at a
 * function whose address was passed, or come from a library that calls such a function
 * or an exported one.
 */
static bool may_begin_thread(const struct planner *p, uint32_t func, uint32_t entry)
{
	const struct mp_cfg *cfg = p->in->cfg;

	return entry != MP_NONE &&
	       (cfg->blocks[entry].flags & (MP_BLOCK_ADDRESS_TAKEN | MP_BLOCK_NAMED) ||
		cfg->funcs[func].flags & MP_FUNC_EXPORTED) &&
	       !p->in->with_carry.shared[func] && !p->in->with_carry.live[entry];
}

/*
 * Let a stub at the function's entry check whether the thread has its own counters.
 * Branches back to the first block do not check. @first: the function's first stub.
 */
static bool add_check(struct planner *p, uint32_t entry, uint32_t first)
{
	const struct me_flow *flow = &p->in->flow;
	bool again = false;

	for (uint32_t e = 0; e < flow->nr_edges; e++)
		again |= flow->edges[e].to == entry - flow->first_block &&
			 flow->edges[e].from != flow->nr_blocks;
	for (uint32_t i = first; i < p->stubs.nr; i++) {
		struct me_stub_to *stub = &p->stubs.list[i];

		if (stub->block == entry && (stub->what.arrivals == ME_STUB_OUTSIDE ||
					     (stub->what.arrivals == ME_STUB_ALL && !again))) {
			stub->what.checks = true;
			return true;
		}
	}
	return me_stubs_add(&p->stubs, (struct me_stub_to){.block = entry,
							   .what = {.arrivals = ME_STUB_OUTSIDE,
								    .does = ME_STUB_PASSES,
								    .checks = true}});
}

/* @checks: a thread may begin in it. */
static bool add_function(struct planner *p, uint32_t func, bool checks)
{
	struct mp_edge_table *t = &p->table;
	const struct me_flow *flow = &p->in->flow;
	const struct mp_cfg *cfg = p->in->cfg;
	uint32_t first = t->nr_blocks, first_stub = p->stubs.nr;

	if (mp_grow(t->blocks, p->cap_blocks, (uint64_t)t->nr_blocks + flow->nr_blocks) ||
	    mp_grow(t->edges, p->cap_edges, (uint64_t)t->nr_edges + flow->nr_edges))
		return false;
	find_spare_counters(p, func, p->in->spare);
	t->funcs[t->nr_funcs++] =
		(struct mp_counted_func){first, flow->nr_blocks, t->nr_edges, flow->nr_edges};
	for (uint32_t i = 0; i < flow->nr_blocks; i++) {
		const struct mp_block *block = &cfg->blocks[flow->first_block + i];

		t->blocks[t->nr_blocks++] = (struct mp_counted_block){
			block->vaddr, block->size, block->size - block->term_len};
	}
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		const struct me_flow_edge *edge = &flow->edges[e];
		struct mp_counted_edge *out = &t->edges[t->nr_edges++];
		bool spare = p->in->spare[e];

		*out = (struct mp_counted_edge){
			.from = edge->from == flow->nr_blocks ? MP_NONE : first + edge->from,
			.to = edge->to == flow->nr_blocks ? MP_NONE : first + edge->to,
			.counter = MP_NONE,
			.kind = edge->kind,
			.spare = spare,
		};
		p->in->report->flow += edge->weight;
		if (p->in->in_tree[e] && !spare)
			continue;
		p->in->report->counted += edge->weight;
		out->counter = t->nr_counters++;
		if (!me_stubs_add(&p->stubs, stub_of(flow, edge, out->counter)))
			return false;
	}
	return !checks || add_check(p, entry_of(cfg, func), first_stub);
}

static int add_functions(struct planner *p, const struct mp_counts *counts, const uint8_t *movable)
{
	const struct mp_cfg *cfg = p->in->cfg;

	p->table.funcs = malloc(((size_t)cfg->nr_funcs + 1) * sizeof(*p->table.funcs));
	if (!p->table.funcs)
		return -ENOMEM;
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		uint32_t entry = entry_of(cfg, f);
		int rc, checks = 0;

		if (!movable[f])
			continue;
		rc = build(p->in, counts, f);
		/* The check may call the runtime. */
		if (!rc && p->threads && may_begin_thread(p, f, entry))
			checks = me_unwind_has_frame(cfg, entry);
		if (rc || checks < 0)
			return rc ? rc : checks;
		if (p->in->flow.nr_blocks && !add_function(p, f, checks))
			return -ENOMEM;
	}
	return 0;
}

/* ---- single places ----------------------------------------------------------------------- */

/* Is a stub that counts all control to @block possible? */
static bool takes_stub(const struct me_instrument *in, uint32_t block)
{
	return !me_block_stays(&in->cfg->blocks[block]) && !in->flags.live[block];
}

/*
 * The first instruction of a function also runs in old code, from where control comes to the block behind it. *@to: is
 * that block then, if all control comes to it by the first instruction. Return: 0; -EPERM: some does not; -errno.
 */
static int leave_head(struct me_instrument *in, uint32_t *to)
{
	const struct mp_cfg *cfg = in->cfg;
	const struct me_flow *flow = &in->flow;
	uint32_t ways = 0, next = *to + 1;
	int rc;

	if (!mp_cfg_is_first_insn(cfg, *to) || !me_old_code_is_head(cfg, *to))
		return 0;
	rc = build(in, NULL, cfg->blocks[*to].func);
	if (rc)
		return rc == -EDOM ? -EPERM : rc;
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		ways += flow->edges[e].to != flow->nr_blocks &&
			flow->first_block + flow->edges[e].to == next;
	if (ways != 1 || me_old_code_is_head(cfg, next))
		return -EPERM;
	*to = next;
	return 0;
}

int me_instrument_stub(struct me_instrument *in, const struct mp_edge_place *place,
		       struct me_stub_to *out)
{
	const struct mp_cfg *cfg = in->cfg;
	const struct me_flow *flow = &in->flow;
	uint32_t to = mp_cfg_block_starting(cfg, place->block), from = MP_NONE;
	int rc;

	if (to == MP_NONE || cfg->blocks[to].func == MP_NONE)
		return -ENOENT;
	if (place->from == MP_PLACE_ALL) {
		rc = leave_head(in, &to);
		if (rc)
			return rc;
		*out = (struct me_stub_to){.block = to, .what = {.arrivals = ME_STUB_ALL}};
		return takes_stub(in, to) ? 0 : -EPERM;
	}
	if (place->from != MP_PLACE_OUTSIDE) {
		from = mp_cfg_block_starting(cfg, place->from);
		if (from == MP_NONE || cfg->blocks[from].func != cfg->blocks[to].func)
			return -ENOENT;
	}
	rc = build(in, NULL, cfg->blocks[to].func);
	if (rc)
		return rc == -EDOM ? -EPERM : rc;
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		const struct me_flow_edge *edge = &flow->edges[e];

		if (edge->to == flow->nr_blocks || flow->first_block + edge->to != to ||
		    (from == MP_NONE ? edge->from != flow->nr_blocks
				     : edge->from == flow->nr_blocks ||
					       flow->first_block + edge->from != from))
			continue;
		*out = stub_of(flow, edge, 0);
		return edge->place == ME_FLOW_NOWHERE ? -EPERM : 0;
	}
	return -ENOENT;
}

/* ---- the plan ---------------------------------------------------------------------------- */

int me_instrument_plan(struct me_instrument *in, const struct mp_counts *counts,
		       const uint8_t *movable, struct me_plan *plan,
		       struct me_instrumentation *added, struct me_instrument_report *report,
		       struct mp_err *err)
{
	struct planner p = {.in = in, .threads = added->counters == ME_COUNTERS_THREADS};
	int rc = 0;

	*report = (struct me_instrument_report){0};
	in->report = report;
	memcpy(report->nr_uncounted, in->nr_uncounted, sizeof(report->nr_uncounted));
	if (p.threads)
		rc = me_flags_find(in->cfg, movable, true, &in->with_carry, err);
	if (!rc)
		rc = add_functions(&p, counts, movable);
	if (!rc)
		rc = me_stubs_put(in->cfg, movable, &p.stubs, plan, added, &report->nr_inline);
	if (!rc) {
		added->nr_counters = p.table.nr_counters;
		added->table_name = MP_EDGE_TABLE_SECTION;
		rc = mp_edge_table_encode(&p.table, &added->table, &added->table_size, err);
	}
	if (!rc) {
		report->nr_funcs = p.table.nr_funcs;
		report->nr_counters = p.table.nr_counters;
		report->nr_edges = p.table.nr_edges;
	}
	free(p.table.funcs);
	free(p.table.blocks);
	free(p.table.edges);
	me_stubs_fini(&p.stubs);
	return rc == -ENOMEM ? mp_err_set(err, ENOMEM, "out of memory") : rc;
}
