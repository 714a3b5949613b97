// SPDX-License-Identifier: Apache-2.0
/*
 * versions_plan - writes a plan anew in which some functions have two versions. A function's
 * version A precedes its version B, with the stub at the entry before both; the stub at an exit
 * precedes each copy of the exit, that at a timing point each copy of its block. Behind them follow
 * both versions without stubs, which run after a verdict. Called by optimize.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/evidence/eligible.h"
#include "editor/instrument/versions.h"
#include "libprof/base/grow.h"
#include "libprof/note/audit_file.h"

/* Compilers align functions and, in front of padding, loops like this at -O2. */
#define ALIGN_LOG2 4

struct writer {
	const struct mp_cfg *cfg;
	const uint8_t *chosen;
	struct me_plan out;
	struct me_instrumentation added;
	uint32_t cap_blocks, cap_stubs;
	uint8_t *has;	  /* per block: the plan has its version B */
	uint32_t *number; /* per function: its number among the audited */
	/* per block: 1 + number of its timing point in @points; 0: none */
	uint32_t *point_of;
	const struct me_loop_points *points;
	bool failed;
};

static void put(struct writer *w, struct me_plan_block block)
{
	struct me_plan *out = &w->out;

	if (w->failed || mp_grow(out->blocks, w->cap_blocks, out->nr_blocks + 1)) {
		w->failed = true;
		return;
	}
	out->blocks[out->nr_blocks++] = block;
}

static void put_stub(struct writer *w, struct me_plan_block like, struct me_stub stub)
{
	struct me_instrumentation *added = &w->added;

	if (w->failed || mp_grow(added->stubs, w->cap_stubs, added->nr_stubs + 1)) {
		w->failed = true;
		return;
	}
	stub.counter = w->number[w->cfg->blocks[like.block].func];
	added->stubs[added->nr_stubs++] = stub;
	like.why = ME_WHY_STUB;
	like.stub = true;
	like.run = like.loop = like.pad = like.favour_fall = 0;
	put(w, like);
}

static void put_point(struct writer *w, struct me_plan_block block)
{
	uint32_t number = w->point_of[block.block] - 1;
	const struct me_loop_choice *choice = &w->points->list[number / ME_AUDIT_MAX_POINTS];
	struct me_stub stub = {.arrivals = ME_STUB_ALL,
			       .does = ME_STUB_TIMES,
			       .point = number % ME_AUDIT_MAX_POINTS,
			       .version = block.version == ME_VERSION_ORIGINAL ? MP_AUDIT_A
									       : MP_AUDIT_B};

	stub.value = (int32_t)choice->points[stub.point].rounds;
	put_stub(w, block, stub);
}

/* A block of an audited function, in either version with stubs. */
static void put_block(struct writer *w, struct me_plan_block block)
{
	bool exits = me_versions_is_exit(&w->cfg->blocks[block.block]);

	if (exits)
		put_stub(w, block,
			 (struct me_stub){.arrivals = ME_STUB_ALL, .does = ME_STUB_LEAVES});
	else if (w->point_of[block.block])
		put_point(w, block);
	if (exits || w->point_of[block.block])
		block.align_log2 = block.align_offset = block.new_line = 0;
	block.run = block.loop = block.pad = 0; /* the stubs changed what a run takes */
	put(w, block);
}

/* Blocks behind padding keep their alignment, since that is why the padding is there. */
static uint8_t alignment_of(const struct mp_cfg *cfg, uint32_t b, uint32_t first)
{
	const struct mp_block *block = &cfg->blocks[b];

	return b > first && block[-1].flags & MP_BLOCK_PADDING &&
			       block->vaddr % (1u << ALIGN_LOG2) == 0
		       ? ALIGN_LOG2
		       : 0;
}

/* All blocks of @entry's function in the original's order. @put_one: with stubs or without. */
static void put_original(struct writer *w, struct me_plan_block entry, enum me_version version,
			 void (*put_one)(struct writer *w, struct me_plan_block block))
{
	const struct mp_func *f = &w->cfg->funcs[w->cfg->blocks[entry.block].func];
	struct me_plan_block like = {
		.block = entry.block,
		.zone = entry.zone,
		.why = ME_WHY_ORIGINAL,
		.version = version,
	};

	put_one(w, like);
	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		if (b == entry.block || me_block_stays(&w->cfg->blocks[b]))
			continue;
		like.block = b;
		like.align_log2 = alignment_of(w->cfg, b, f->first_block);
		put_one(w, like);
	}
}

/* The stub at the entry, then version A. */
static void put_entry(struct writer *w, struct me_plan_block entry)
{
	const struct mp_func *f = &w->cfg->funcs[w->cfg->blocks[entry.block].func];
	struct me_plan_block like = {
		.block = entry.block,
		.zone = entry.zone,
		.why = ME_WHY_ORIGINAL,
		.version = ME_VERSION_ORIGINAL,
	};
	struct me_stub stub = {.arrivals = ME_STUB_OUTSIDE, .does = ME_STUB_ENTERS};

	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++)
		stub.value |= w->point_of[b] != 0;
	like.align_log2 = entry.align_log2 > ALIGN_LOG2 ? entry.align_log2 : ALIGN_LOG2;
	put_stub(w, like, stub);
	put_original(w, entry, ME_VERSION_ORIGINAL, put_block);
}

/* The blocks of an audited function that the plan lacks follow its last ones. */
static void put_missing(struct writer *w, uint32_t func, uint8_t zone)
{
	const struct mp_func *f = &w->cfg->funcs[func];

	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++)
		if (!w->has[b] && !me_block_stays(&w->cfg->blocks[b]))
			put_block(w, (struct me_plan_block){
					     .block = b, .zone = zone, .why = ME_WHY_UNSAMPLED});
}

/*
 * The same blocks without stubs: those that w->out has from @first on, of version B, and those of
 * version A behind them.
 */
static void put_untimed(struct writer *w, uint32_t first)
{
	uint32_t end = w->out.nr_blocks;
	struct me_plan_block entry;
	bool has_entry = false;

	for (uint32_t i = first; i < end && !w->failed; i++) {
		struct me_plan_block block = w->out.blocks[i];

		if (block.stub || block.version != ME_VERSION_NEW)
			continue;
		block.version = ME_VERSION_NEW_UNTIMED;
		put(w, block);
		if (w->cfg->blocks[block.block].flags & MP_BLOCK_ENTRY) {
			has_entry = true;
			entry = block;
		}
	}
	if (has_entry)
		put_original(w, entry, ME_VERSION_ORIGINAL_UNTIMED, put);
}

/* Does the plan go on with another function, or another zone, behind element @i? */
static bool ends_run(const struct writer *w, const struct me_plan *plan, uint32_t i)
{
	const struct me_plan_block *block = &plan->blocks[i];

	return i + 1 == plan->nr_blocks || block[1].zone != block->zone ||
	       w->cfg->blocks[block[1].block].func != w->cfg->blocks[block->block].func;
}

static void put_all(struct writer *w, const struct me_plan *plan, const uint32_t *last)
{
	uint32_t run = 0; /* start in w->out of the function's blocks in this zone */

	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		struct me_plan_block block = plan->blocks[i];
		uint32_t func = w->cfg->blocks[block.block].func;

		if (!i || ends_run(w, plan, i - 1))
			run = w->out.nr_blocks;
		if (!w->chosen[func]) {
			put(w, block);
			continue;
		}
		if (!block.clone && w->cfg->blocks[block.block].flags & MP_BLOCK_ENTRY)
			put_entry(w, block);
		if (!block.clone)
			put_block(w, block);
		if (last[func] == i)
			put_missing(w, func, block.zone);
		if (ends_run(w, plan, i))
			put_untimed(w, run);
	}
}

/* Sets @last[func] to the last element of the plan of each function. */
static void prepare(struct writer *w, const struct me_plan *plan, uint32_t *last)
{
	for (uint32_t f = 0; f < w->cfg->nr_funcs; f++) {
		w->number[f] = w->added.nr_audited;
		w->added.nr_audited += w->chosen[f];
	}
	for (uint32_t i = 0; i < w->points->nr; i++)
		for (uint32_t p = 0; p < w->points->list[i].nr_points; p++)
			w->point_of[w->points->list[i].points[p].block] =
				1 + i * ME_AUDIT_MAX_POINTS + p;
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		last[w->cfg->blocks[plan->blocks[i].block].func] = i;
		if (!plan->blocks[i].clone)
			w->has[plan->blocks[i].block] = 1;
	}
}

int me_versions_plan(const struct mp_cfg *cfg, const uint8_t *chosen,
		     const struct me_loop_points *points, struct me_plan *plan,
		     struct me_instrumentation *added, struct mp_err *err)
{
	struct writer w = {
		.cfg = cfg,
		.chosen = chosen,
		.has = calloc((size_t)cfg->nr_blocks + 1, 1),
		.number = calloc((size_t)cfg->nr_funcs + 1, sizeof(*w.number)),
		.point_of = calloc((size_t)cfg->nr_blocks + 1, sizeof(*w.point_of)),
		.points = points,
	};
	uint32_t *last = calloc((size_t)cfg->nr_funcs + 1, sizeof(*last));

	w.out.line_log2 = plan->line_log2;
	w.out.page_log2 = plan->page_log2;
	if (w.has && w.number && w.point_of && last) {
		prepare(&w, plan, last);
		put_all(&w, plan, last);
	} else {
		w.failed = true;
	}
	free(w.has);
	free(w.number);
	free(w.point_of);
	free(last);
	if (w.failed) {
		me_plan_fini(&w.out);
		me_instrumentation_fini(&w.added);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	free(plan->blocks);
	*plan = w.out;
	*added = w.added;
	return 0;
}
