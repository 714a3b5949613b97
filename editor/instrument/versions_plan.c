// SPDX-License-Identifier: Apache-2.0
/*
 * versions_plan - writes a plan anew in which some functions have two versions. A function's
 * version A precedes its version B, with the stub at the entry before both; the stub at an exit
 * precedes each copy of the exit. Called by optimize.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/base/grow.h"
#include "editor/evidence/eligible.h"
#include "editor/instrument/versions.h"

/* Compilers align functions and, in front of padding, loops like this at -O2. */
#define ALIGN_LOG2 4

struct writer {
	const struct mp_cfg *cfg;
	const uint8_t *chosen;
	struct me_plan out;
	uint32_t cap_blocks, cap_stubs;
	uint8_t *has;	  /* per block: the plan has its version B */
	uint32_t *number; /* per function: its number among the audited */
	bool failed;
};

static void put(struct writer *w, struct me_plan_block block)
{
	struct me_plan *out = &w->out;

	if (w->failed || !me_grow(&out->blocks, &w->cap_blocks, (uint64_t)out->nr_blocks + 1,
				  sizeof(*out->blocks))) {
		w->failed = true;
		return;
	}
	out->blocks[out->nr_blocks++] = block;
}

static void put_stub(struct writer *w, struct me_plan_block like, enum me_stub_arrivals arrivals,
		     enum me_stub_does does)
{
	struct me_plan *out = &w->out;

	if (w->failed || !me_grow(&out->stubs, &w->cap_stubs, (uint64_t)out->nr_stubs + 1,
				  sizeof(*out->stubs))) {
		w->failed = true;
		return;
	}
	out->stubs[out->nr_stubs++] = (struct me_stub){
		.counter = w->number[w->cfg->blocks[like.block].func],
		.arrivals = arrivals,
		.does = does,
	};
	like.why = ME_WHY_STUB;
	like.stub = true;
	like.run = like.favour_fall = 0;
	put(w, like);
}

/* A block of an audited function, in either version. */
static void put_block(struct writer *w, struct me_plan_block block)
{
	if (me_versions_is_exit(&w->cfg->blocks[block.block])) {
		put_stub(w, block, ME_STUB_ALL, ME_STUB_LEAVES);
		block.align_log2 = 0;
	}
	block.run = 0; /* the stubs changed what a run takes */
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

static void put_original(struct writer *w, uint32_t func, struct me_plan_block entry)
{
	const struct mp_func *f = &w->cfg->funcs[func];
	struct me_plan_block like = {.zone = entry.zone, .why = ME_WHY_ORIGINAL, .original = true};

	like.block = entry.block;
	like.align_log2 = entry.align_log2 > ALIGN_LOG2 ? entry.align_log2 : ALIGN_LOG2;
	put_stub(w, like, ME_STUB_OUTSIDE, ME_STUB_ENTERS);
	like.align_log2 = 0;
	put_block(w, like);
	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		if (b == entry.block || me_block_stays(&w->cfg->blocks[b]))
			continue;
		like.block = b;
		like.align_log2 = alignment_of(w->cfg, b, f->first_block);
		put_block(w, like);
	}
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

static void put_all(struct writer *w, const struct me_plan *plan, const uint32_t *last)
{
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		struct me_plan_block block = plan->blocks[i];
		uint32_t func = w->cfg->blocks[block.block].func;

		if (!w->chosen[func]) {
			put(w, block);
			continue;
		}
		if (!block.clone && w->cfg->blocks[block.block].flags & MP_BLOCK_ENTRY)
			put_original(w, func, block);
		if (!block.clone)
			put_block(w, block);
		if (last[func] == i)
			put_missing(w, func, block.zone);
	}
}

/* Sets @last[func] to the last element of the plan of each function. */
static void prepare(struct writer *w, const struct me_plan *plan, uint32_t *last)
{
	for (uint32_t f = 0; f < w->cfg->nr_funcs; f++) {
		w->number[f] = w->out.nr_audited;
		w->out.nr_audited += w->chosen[f];
	}
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		last[w->cfg->blocks[plan->blocks[i].block].func] = i;
		if (!plan->blocks[i].clone)
			w->has[plan->blocks[i].block] = 1;
	}
}

int me_versions_plan(const struct mp_cfg *cfg, const uint8_t *chosen, struct me_plan *plan,
		     struct mp_err *err)
{
	struct writer w = {
		.cfg = cfg,
		.chosen = chosen,
		.has = calloc((size_t)cfg->nr_blocks + 1, 1),
		.number = calloc((size_t)cfg->nr_funcs + 1, sizeof(*w.number)),
	};
	uint32_t *last = calloc((size_t)cfg->nr_funcs + 1, sizeof(*last));

	w.out.line_log2 = plan->line_log2;
	w.out.page_log2 = plan->page_log2;
	if (w.has && w.number && last) {
		prepare(&w, plan, last);
		put_all(&w, plan, last);
	} else {
		w.failed = true;
	}
	free(w.has);
	free(w.number);
	free(last);
	if (w.failed) {
		me_plan_fini(&w.out);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	free(plan->blocks);
	*plan = w.out;
	return 0;
}
