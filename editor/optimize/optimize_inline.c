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

#include "editor/evidence/leaf.h"
#include "editor/optimize/optimize_private.h"

enum answer {
	UNKNOWN,
	YES,
	NO,
};

struct finder {
	const struct me_job *job;
	uint8_t *copied, *hot; /* per block: does the plan copy it; into the hot zone? */
	uint8_t *callers;      /* per function: enum answer to me_leaf_caller() */
	uint8_t *callees;      /* per function: enum answer to me_leaf_find() */
};

/* Call again when blocks were cut. Return: false: out of memory. */
static bool read_plan(struct finder *f)
{
	const struct me_job *job = f->job;

	free(f->copied);
	free(f->hot);
	f->copied = me_job_find_copied(job);
	f->hot = calloc((size_t)job->cfg->nr_blocks + 1, 1);
	for (uint32_t i = 0; f->hot && i < job->plan.nr_blocks; i++) {
		const struct me_plan_block *planned = &job->plan.blocks[i];

		if (planned->zone == ME_ZONE_HOT && !planned->stub && !planned->left_out)
			f->hot[planned->block] = 1;
	}
	return f->copied && f->hot;
}

static bool finder_init(struct finder *f, const struct me_job *job)
{
	*f = (struct finder){
		.job = job,
		.callers = calloc((size_t)job->cfg->nr_funcs + 1, 1),
		.callees = calloc((size_t)job->cfg->nr_funcs + 1, 1),
	};
	return read_plan(f) && f->callers && f->callees;
}

static void finder_fini(struct finder *f)
{
	free(f->copied);
	free(f->hot);
	free(f->callers);
	free(f->callees);
}

static bool may_lose_calls(struct finder *f, uint32_t func)
{
	if (f->callers[func] == UNKNOWN)
		f->callers[func] = me_leaf_caller(f->job->cfg, func) ? YES : NO;
	return f->callers[func] == YES;
}

static bool is_leaf(struct finder *f, uint32_t func)
{
	const struct mp_cfg *cfg = f->job->cfg;
	struct me_leaf leaf;

	if (f->callees[func] == UNKNOWN)
		f->callees[func] = f->copied[cfg->funcs[func].first_block] &&
						   me_leaf_find(cfg, func, &leaf)
					   ? YES
					   : NO;
	return f->callees[func] == YES;
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
	    !f->hot[call->block] || end > block_end || !cfg->funcs[call->callee].nr_blocks ||
	    !is_leaf(f, call->callee) || !may_lose_calls(f, block->func) ||
	    mp_call_target(cfg, call) != cfg->funcs[call->callee].vaddr)
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

/* Cut blocks behind calls in their middle. Return: 0, or negative with @err. */
static int cut(struct finder *f, struct me_job *job, struct mp_err *err)
{
	const struct mp_cfg *cfg = job->cfg;
	uint64_t *cuts = malloc(((size_t)cfg->nr_calls + 1) * sizeof(*cuts));
	uint32_t nr = 0;
	int rc = 0;

	if (!cuts)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t c = 0; c < cfg->nr_calls; c++) {
		const struct mp_block *block = &cfg->blocks[cfg->calls[c].block];
		uint64_t end = end_of_call(f, &cfg->calls[c]);

		if (end && end < block->vaddr + block->size)
			cuts[nr++] = end;
	}
	if (nr)
		rc = me_job_cut_blocks(job, cuts, nr, err);
	free(cuts);
	return rc;
}

/* Mark the planned blocks that end in such a call. */
static int mark(struct finder *f, struct me_job *job, struct mp_err *err)
{
	const struct mp_cfg *cfg = job->cfg;
	uint8_t *ends = calloc((size_t)cfg->nr_blocks + 1, 1);

	if (!ends || !read_plan(f)) {
		free(ends);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	for (uint32_t c = 0; c < cfg->nr_calls; c++) {
		const struct mp_block *block = &cfg->blocks[cfg->calls[c].block];

		if (end_of_call(f, &cfg->calls[c]) == block->vaddr + block->size)
			ends[cfg->calls[c].block] = 1;
	}
	for (uint32_t i = 0; i < job->plan.nr_blocks; i++) {
		struct me_plan_block *planned = &job->plan.blocks[i];

		planned->inlined = planned->zone == ME_ZONE_HOT && !planned->stub &&
				   !planned->left_out && ends[planned->block];
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
		rc = cut(&f, job, err);
		if (!rc)
			rc = mark(&f, job, err);
	} else {
		rc = mp_err_set(err, ENOMEM, "out of memory");
	}
	finder_fini(&f);
	return rc;
}
