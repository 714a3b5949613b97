// SPDX-License-Identifier: Apache-2.0
/*
 * adjust - copies a plan function by function, and changes the functions that have wishes.
 *
 * Decides which block of the plan each wish concerns. place decides addresses, and fills gaps.
 */
#include "editor/layout/adjust.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct adjuster {
	const struct mp_cfg *cfg;
	const struct mp_counts *counts;
	struct me_adjustment *adjustments;
	const struct me_plan *plan;
	struct me_plan out;
	struct me_stub *stubs; /* those of @out */
	uint32_t nr_stubs;
	uint32_t (*first)[ME_NR_ZONES]; /* per function: its first block in @plan; MP_NONE: none */
	bool alone;			/* what comes next must not share the last line */
	/* Scratch of find_loop(). */
	uint32_t *at; /* per cfg block: index in @out of its copy; MP_NONE: of another function */
	struct loop *loops; /* per index in @out */
};

/* A loop that begins with a copy, because branches lead back to the copy. */
struct loop {
	double rounds;	/* how often they do; 0: not counted */
	uint32_t end;	/* behind the last of these branches; 0: no loop begins here */
	int32_t deeper; /* loops that begin here, less those that end before here */
};

int me_adjustment_add(struct me_adjustment *a, enum me_adjust_kind kind, uint16_t bytes)
{
	static const uint16_t most[ME_NR_ADJUSTS] = {
		[ME_ADJUST_START] = (1 << ME_LINE_LOG2) - 1,
		[ME_ADJUST_LOOP] = (1 << ME_LINE_LOG2) - 1,
		[ME_ADJUST_WAIT] = ME_ADJUST_WAIT_MAX,
	};
	const uint8_t stay = 1 << ME_ADJUST_STAY;
	uint8_t now;

	if ((unsigned int)kind >= ME_NR_ADJUSTS || bytes > most[kind] ||
	    (kind == ME_ADJUST_WAIT && !bytes))
		return -EINVAL;
	if (me_adjustment_has(a, kind) && a->bytes[kind] != bytes)
		return -EINVAL;
	now = a->kinds | (uint8_t)(1 << kind);
	if (now & stay && now != stay)
		return -EINVAL;
	a->kinds = now;
	a->bytes[kind] = bytes;
	return 0;
}

/* The end of the run of @plan's blocks that begins at @i: one function's in one zone. */
static uint32_t run_end(const struct adjuster *x, uint32_t i)
{
	const struct me_plan_block *blocks = x->plan->blocks;
	uint32_t func = x->cfg->blocks[blocks[i].block].func, end = i;

	while (end < x->plan->nr_blocks && blocks[end].zone == blocks[i].zone &&
	       x->cfg->blocks[blocks[end].block].func == func)
		end++;
	return end;
}

static void copy_run(struct adjuster *x, uint32_t i, bool clones)
{
	for (uint32_t end = run_end(x, i); i < end; i++)
		if (clones || !x->plan->blocks[i].clone)
			x->out.blocks[x->out.nr_blocks++] = x->plan->blocks[i];
}

/* The entry, then what lies behind it, then what lies below it, each by address. */
static int compare_original(const void *a, const void *b, void *entry)
{
	const struct me_plan_block *x = a, *y = b;
	uint32_t dx = x->block - *(uint32_t *)entry, dy = y->block - *(uint32_t *)entry;

	return dx < dy ? -1 : dx > dy;
}

/* Adds the blocks of both zones, in the original's order, where those of @first belong. */
static void copy_in_order(struct adjuster *x, const uint32_t first[ME_NR_ZONES], uint8_t zone)
{
	struct me_plan_block *blocks = &x->out.blocks[x->out.nr_blocks];
	uint32_t before = x->out.nr_blocks, nr, entry;

	for (int z = 0; z < ME_NR_ZONES; z++)
		if (first[z] != MP_NONE)
			copy_run(x, first[z], false);
	nr = x->out.nr_blocks - before;
	entry = blocks[0].block;
	qsort_r(blocks, nr, sizeof(*blocks), compare_original, &entry);
	for (uint32_t i = 0; i < nr; i++) {
		blocks[i].zone = zone;
		blocks[i].why = ME_WHY_ORIGINAL;
		blocks[i].run = blocks[i].loop = blocks[i].pad = 0;
		if (i)
			blocks[i].align_log2 = 0;
	}
}

/* Notes each branch of the copies from @first on that leads back to one of them. */
static void note_rounds(const struct adjuster *x, uint32_t first)
{
	const struct me_plan_block *blocks = x->out.blocks;

	for (uint32_t i = first; i < x->out.nr_blocks; i++) {
		const struct mp_block *block = &x->cfg->blocks[blocks[i].block];

		for (uint32_t k = 0; k < block->nr_edges && !blocks[i].clone; k++) {
			uint32_t e = block->first_edge + k, to = x->at[x->cfg->edges[e].to];

			if (to == MP_NONE || to > i)
				continue;
			x->loops[to].rounds += x->counts ? x->counts->edge[e] : 0;
			x->loops[to].end = i + 1;
		}
	}
}

/* The loop with most rounds; if none was counted, the first of those that most loops contain. */
static uint32_t choose_loop(const struct adjuster *x, uint32_t first)
{
	uint32_t most = MP_NONE, inmost = MP_NONE;
	int64_t depth = 0, deepest = 0;

	for (uint32_t i = first; i < x->out.nr_blocks; i++)
		if (x->loops[i].end) {
			x->loops[i].deeper++;
			x->loops[x->loops[i].end].deeper--;
		}
	for (uint32_t i = first; i < x->out.nr_blocks; i++) {
		depth += x->loops[i].deeper;
		if (!x->loops[i].end)
			continue;
		if (x->loops[i].rounds > (most == MP_NONE ? 0 : x->loops[most].rounds))
			most = i;
		if (depth > deepest) {
			deepest = depth;
			inmost = i;
		}
	}
	return most == MP_NONE ? inmost : most;
}

/* The index in @out of the block that begins the hottest loop of the function copied last, from
 * @first on; MP_NONE: there is no loop. */
static uint32_t find_loop(const struct adjuster *x, uint32_t first)
{
	const struct me_plan_block *blocks = x->out.blocks;
	uint32_t found, end = x->out.nr_blocks;

	memset(&x->loops[first], 0, (end - first + 1) * sizeof(*x->loops));
	for (uint32_t i = first; i < end; i++)
		if (!blocks[i].clone)
			x->at[blocks[i].block] = i;
	note_rounds(x, first);
	found = choose_loop(x, first);
	for (uint32_t i = first; i < end; i++)
		x->at[blocks[i].block] = MP_NONE;
	return found;
}

static void place_at(struct me_plan_block *block, uint16_t offset)
{
	block->align_log2 = ME_LINE_LOG2;
	block->align_offset = (uint8_t)offset;
	block->run = block->loop = block->pad = 0;
}

/* Puts a stub that waits before block @i of @out. */
static void put_wait(struct adjuster *x, uint32_t i, uint16_t bytes)
{
	struct me_plan_block *block = &x->out.blocks[i];

	memmove(block + 1, block, (x->out.nr_blocks++ - i) * sizeof(*block));
	block[0].why = ME_WHY_STUB;
	block[0].run = block[0].loop = block[0].pad = 0;
	block[0].stub = true;
	block[1].align_log2 = block[1].align_offset = block[1].new_line = block[1].run =
		block[1].loop = block[1].pad = 0;
	x->stubs[x->nr_stubs++] =
		(struct me_stub){.arrivals = ME_STUB_ALL, .does = ME_STUB_WAITS, .value = bytes};
}

/* Follows the wishes for one function, whose copies are those from @first on. */
static void follow(struct adjuster *x, struct me_adjustment *a, uint32_t first)
{
	struct me_plan_block *blocks = x->out.blocks;
	uint32_t loop = find_loop(x, first);

	a->loop = loop == MP_NONE ? MP_NONE : blocks[loop].block;
	a->done |= a->kinds & (1 << ME_ADJUST_ORIGINAL | 1 << ME_ADJUST_END);
	if (me_adjustment_has(a, ME_ADJUST_END))
		place_at(&blocks[first], 0);
	if (me_adjustment_has(a, ME_ADJUST_LOOP) && loop != MP_NONE) {
		place_at(&blocks[loop], a->bytes[ME_ADJUST_LOOP]);
		a->done |= 1 << ME_ADJUST_LOOP;
	}
	if (me_adjustment_has(a, ME_ADJUST_START)) {
		if (loop == first && a->bytes[ME_ADJUST_START] != a->bytes[ME_ADJUST_LOOP])
			a->done &= (uint8_t) ~(1 << ME_ADJUST_LOOP);
		place_at(&blocks[first], a->bytes[ME_ADJUST_START]);
		a->done |= 1 << ME_ADJUST_START;
	}
	if (me_adjustment_has(a, ME_ADJUST_END) || x->alone)
		blocks[first].new_line = true;
	x->alone = me_adjustment_has(a, ME_ADJUST_END);
	if (me_adjustment_has(a, ME_ADJUST_WAIT)) {
		put_wait(x, loop == MP_NONE ? first : loop, a->bytes[ME_ADJUST_WAIT]);
		a->done |= 1 << ME_ADJUST_WAIT;
	}
}

static uint8_t zone_of(const struct adjuster *x, uint32_t func)
{
	return x->first[func][ME_ZONE_HOT] != MP_NONE ? ME_ZONE_HOT : ME_ZONE_WARM;
}

/* Copies the run that begins at @i. Wishes apply to the first run of a function only. */
static void adjust_run(struct adjuster *x, uint32_t i)
{
	uint32_t func = x->cfg->blocks[x->plan->blocks[i].block].func;
	struct me_adjustment *a = &x->adjustments[func];
	uint32_t before = x->out.nr_blocks;
	bool is_first = x->plan->blocks[i].zone == zone_of(x, func);

	if (is_first && a->kinds && me_adjustment_has(a, ME_ADJUST_ORIGINAL))
		copy_in_order(x, x->first[func], zone_of(x, func));
	else if (is_first || !me_adjustment_has(a, ME_ADJUST_ORIGINAL))
		copy_run(x, i, !me_adjustment_has(a, ME_ADJUST_WAIT));
	else
		return;
	if (is_first && a->kinds) {
		follow(x, a, before);
	} else if (x->alone) {
		x->out.blocks[before].new_line = true;
		x->alone = false;
	}
}

/*
 * Copies the runs of one zone, from @i on: those of functions with ME_ADJUST_END come last. Return:
 * the index behind the zone.
 */
static uint32_t adjust_zone(struct adjuster *x, uint32_t i)
{
	const struct me_plan_block *blocks = x->plan->blocks;
	uint32_t first = i;

	for (int end = 0; end < 2; end++)
		for (i = first; i < x->plan->nr_blocks && blocks[i].zone == blocks[first].zone;
		     i = run_end(x, i)) {
			uint32_t func = x->cfg->blocks[blocks[i].block].func;
			bool last = me_adjustment_has(&x->adjustments[func], ME_ADJUST_END) &&
				    blocks[i].zone == zone_of(x, func);

			if (last == (end == 1))
				adjust_run(x, i);
		}
	return i;
}

static void find_runs(struct adjuster *x)
{
	memset(x->first, 0xff, x->cfg->nr_funcs * sizeof(*x->first)); /* MP_NONE */
	for (uint32_t i = 0; i < x->plan->nr_blocks; i = run_end(x, i)) {
		const struct me_plan_block *at = &x->plan->blocks[i];

		x->first[x->cfg->blocks[at->block].func][at->zone] = i;
	}
}

int me_adjust_plan(const struct mp_cfg *cfg, const struct mp_counts *counts,
		   struct me_adjustment *adjustments, struct me_plan *plan,
		   struct me_instrumentation *added, struct mp_err *err)
{
	struct adjuster x = {
		.cfg = cfg, .counts = counts, .adjustments = adjustments, .plan = plan};
	size_t nr_funcs = (size_t)cfg->nr_funcs + 1, nr_waits = 1, nr_all;
	int rc = 0;

	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		adjustments[f].done = 0;
		adjustments[f].loop = MP_NONE;
		nr_waits += me_adjustment_has(&adjustments[f], ME_ADJUST_WAIT);
	}
	nr_all = plan->nr_blocks + nr_waits;
	x.first = malloc(nr_funcs * sizeof(*x.first));
	x.at = malloc(((size_t)cfg->nr_blocks + 1) * sizeof(*x.at));
	x.loops = malloc((nr_all + 1) * sizeof(*x.loops));
	x.out.blocks = malloc(nr_all * sizeof(*x.out.blocks));
	x.stubs = malloc(nr_waits * sizeof(*x.stubs));
	if (x.first && x.at && x.loops && x.out.blocks && x.stubs) {
		memset(x.at, 0xff, cfg->nr_blocks * sizeof(*x.at)); /* MP_NONE */
		find_runs(&x);
		for (uint32_t i = 0; i < plan->nr_blocks;)
			i = adjust_zone(&x, i);
		free(plan->blocks);
		plan->blocks = x.out.blocks;
		plan->nr_blocks = x.out.nr_blocks;
		added->stubs = x.stubs;
		added->nr_stubs = x.nr_stubs;
	} else {
		rc = mp_err_set(err, ENOMEM, "out of memory");
		me_plan_fini(&x.out);
		free(x.stubs);
	}
	free(x.first);
	free(x.at);
	free(x.loops);
	return rc;
}
