// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_inline - replaces calls of small leaf functions by these functions' instructions, in hot
 * copies. evidence/leaf.h says which functions; verify_inline.c proves the result. The layout is
 * decided before, so it does not depend on this. Called by optimize.c.
 *
 * The replacement has another length than the call. So the call must be the last instruction of its
 * block: blocks are cut behind these calls.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/base/mix.h"
#include "editor/evidence/leaf.h"
#include "editor/optimize/optimize_private.h"

/*
 * Code of at most ME_LEAF_BODY_MAX bytes, some 16 instructions, replaces calls that are at least this part of all
 * calls; rarer ones save less than their code costs in the hot zone (results.md, "Times of slots and inlining").
 * Jikes RVM's limit for functions without counts was 23 instructions, and 17 in Lee et al. (TACO 2015,
 * section 5.2).
 */
#define SHARE_OF_CALLS 0.001
/* For larger code, as in the inliner that they began with (Arnold et al. 2000). */
#define SHARE_OF_CALLS_LARGE 0.01

enum answer {
	UNKNOWN,
	YES,
	NO,
	LARGE, /* yes, but its code is large */
};

struct finder {
	const struct me_job *job;
	uint8_t *copied, *hot; /* per block: does the plan copy it; into the hot zone? */
	uint8_t *callers;      /* per function: enum answer to me_leaf_caller() */
	uint8_t *callees;      /* per function: enum answer to me_leaf_find() */
	double nr_calls;       /* executed; 0: not known */
	uint64_t *ends;	       /* of the calls that are replaced */
	uint32_t nr_ends;
};

static bool finder_init(struct finder *f, const struct me_job *job)
{
	*f = (struct finder){
		.job = job,
		.copied = me_job_find_copied(job),
		.hot = calloc((size_t)job->cfg->nr_blocks + 1, 1),
		.callers = calloc((size_t)job->cfg->nr_funcs + 1, 1),
		.callees = calloc((size_t)job->cfg->nr_funcs + 1, 1),
		.ends = malloc(((size_t)job->cfg->nr_calls + 1) * sizeof(*f->ends)),
	};
	for (uint32_t i = 0; f->hot && i < job->plan.nr_blocks; i++) {
		const struct me_plan_block *planned = &job->plan.blocks[i];

		if (planned->zone == ME_ZONE_HOT && !planned->stub && !planned->left_out)
			f->hot[planned->block] = 1;
	}
	for (uint32_t c = 0; job->counts.block && c < job->cfg->nr_calls; c++)
		if (!job->cfg->calls[c].tail)
			f->nr_calls += job->counts.block[job->cfg->calls[c].block];
	return f->copied && f->hot && f->callers && f->callees && f->ends;
}

static void finder_fini(struct finder *f)
{
	free(f->copied);
	free(f->hot);
	free(f->callers);
	free(f->callees);
	free(f->ends);
}

/* A number between 0 and 3 for the place @at, at random by the seed of --stress-inline. */
static uint64_t throw_dice(uint64_t seed, uint64_t at)
{
	return me_mix(seed * UINT64_C(0x9e3779b97f4a7c15) + at) % 4;
}

static bool may_lose_calls(struct finder *f, uint32_t func)
{
	if (f->callers[func] == UNKNOWN)
		f->callers[func] = me_leaf_caller(f->job->cfg, func) ? YES : NO;
	return f->callers[func] == YES;
}

/* Does the plan copy all of @func? verify wants that of functions that replace calls. */
static bool is_copied(const struct finder *f, uint32_t func)
{
	const struct mp_func *fn = &f->job->cfg->funcs[func];

	for (uint32_t b = fn->first_block; b < fn->first_block + fn->nr_blocks; b++)
		if (!f->copied[b] && !(f->job->cfg->blocks[b].flags & MP_BLOCK_PADDING))
			return false;
	return true;
}

/* Return: YES, NO or LARGE. */
static enum answer ask_leaf(struct finder *f, uint32_t func)
{
	struct me_leaf leaf;

	if (f->callees[func] == UNKNOWN)
		f->callees[func] = !is_copied(f, func) || !me_leaf_find(f->job->cfg, func, &leaf)
					   ? NO
				   : leaf.size > ME_LEAF_BODY_MAX ? LARGE
								  : YES;
	return f->callees[func];
}

/* Does @call pay, if it may be replaced? Under stress, the seed chooses a quarter to all of the calls. */
static bool is_wanted(const struct finder *f, const struct mp_call *call, enum answer callee)
{
	const struct me_optimize_options *o = f->job->options;

	if (callee == NO)
		return false;
	if (o->stress_inline)
		return throw_dice(o->stress_inline_seed, mp_call_insn(f->job->cfg, call)) <=
		       o->stress_inline_seed % 4;
	if (!f->hot[call->block])
		return false;
	/* Without a profile, only small code replaces calls. */
	if (f->nr_calls <= 0)
		return callee == YES;
	return f->job->counts.block[call->block] >=
	       (callee == LARGE ? SHARE_OF_CALLS_LARGE : SHARE_OF_CALLS) * f->nr_calls;
}

/* Return: the end of @call, which may be replaced; 0: it stays. */
static uint64_t end_of_call(struct finder *f, const struct mp_call *call)
{
	const struct mp_cfg *cfg = f->job->cfg;
	const struct mp_block *block = &cfg->blocks[call->block];
	uint64_t vaddr = mp_call_insn(cfg, call);
	uint64_t end = vaddr + ME_LEAF_CALL_SIZE, block_end = block->vaddr + block->size;
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, vaddr, 1);
	uint32_t next;

	/* A prefix is not understood. */
	if (!bytes || *bytes != 0xe8 || call->tail || call->callee == MP_NONE ||
	    !f->copied[call->block] || end > block_end || !cfg->funcs[call->callee].nr_blocks ||
	    mp_call_target(cfg, call) != cfg->funcs[call->callee].vaddr ||
	    !is_wanted(f, call, ask_leaf(f, call->callee)) || !may_lose_calls(f, block->func))
		return 0;
	if (end < block_end)
		return end;
	/* Control must go on behind the call, in the same function. */
	next = mp_cfg_block_starting(cfg, end);
	return block->term == MP_TERM_FALL && next != MP_NONE &&
			       cfg->blocks[next].func == block->func &&
			       !(cfg->blocks[next].flags & MP_BLOCK_PADDING)
		       ? end
		       : 0;
}

static void choose(struct finder *f)
{
	const struct mp_cfg *cfg = f->job->cfg;

	for (uint32_t c = 0; c < cfg->nr_calls; c++) {
		uint64_t end = end_of_call(f, &cfg->calls[c]);

		if (end)
			f->ends[f->nr_ends++] = end;
	}
}

/* Cut blocks behind calls in their middle. Return: 0, or negative with @err. */
static int cut(const struct finder *f, struct me_job *job, struct mp_err *err)
{
	const struct mp_cfg *cfg = job->cfg;
	uint64_t *cuts = malloc(((size_t)f->nr_ends + 1) * sizeof(*cuts));
	uint32_t nr = 0;
	int rc = 0;

	if (!cuts)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < f->nr_ends; i++) {
		const struct mp_block *block = &cfg->blocks[mp_cfg_block_at(cfg, f->ends[i] - 1)];

		if (f->ends[i] < block->vaddr + block->size)
			cuts[nr++] = f->ends[i];
	}
	if (nr)
		rc = me_job_cut_blocks(job, cuts, nr, err);
	free(cuts);
	return rc;
}

/* Mark the planned blocks that end in such a call. Under stress, all of them or three in four, of all zones. */
static int mark(const struct finder *f, struct me_job *job, struct mp_err *err)
{
	const struct me_optimize_options *o = job->options;
	const struct mp_cfg *cfg = job->cfg;
	uint8_t *ends = calloc((size_t)cfg->nr_blocks + 1, 1);

	if (!ends)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < f->nr_ends; i++)
		ends[mp_cfg_block_at(cfg, f->ends[i] - 1)] = 1;
	for (uint32_t i = 0; i < job->plan.nr_blocks; i++) {
		struct me_plan_block *planned = &job->plan.blocks[i];
		bool wanted = o->stress_inline ? o->stress_inline_seed % 4 == 3 ||
							 throw_dice(~o->stress_inline_seed, i) != 0
					       : planned->zone == ME_ZONE_HOT;

		planned->inlined = wanted && !planned->stub && !planned->left_out &&
				   ends[planned->block];
	}
	free(ends);
	return 0;
}

int me_job_inline_leaves(struct me_job *job, struct mp_err *err)
{
	struct finder f;
	int rc;

	if (!job->options->layout.inline_leaves || me_counting_any(&job->options->counting) ||
	    job->added.nr_stubs)
		return 0;
	if (finder_init(&f, job)) {
		choose(&f);
		rc = cut(&f, job, err);
		if (!rc)
			rc = mark(&f, job, err);
	} else {
		rc = mp_err_set(err, ENOMEM, "out of memory");
	}
	finder_fini(&f);
	return rc;
}
