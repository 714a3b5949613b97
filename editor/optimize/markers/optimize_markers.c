// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_markers - leaves the code of markers out of copies. Instructions that serve only
 * markers become blocks of their own, whose copies are empty. Called by optimize.c and
 * optimize_read.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/optimize/optimize_private.h"
#include "libprof/base/search.h"

/* Each such instruction is a block of its own. */
static uint32_t find_cuts(const struct me_slices *slices, uint64_t *cuts)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < slices->nr_insns; i++) {
		const struct me_slice_insn *insn = &slices->insns[i];

		if (!nr || cuts[nr - 1] != insn->vaddr)
			cuts[nr++] = insn->vaddr;
		cuts[nr++] = insn->vaddr + insn->len;
	}
	return nr;
}

static int cut_blocks(struct me_job *job, struct mp_err *err)
{
	struct mp_cfg_options options = {0};
	uint64_t *cuts;
	int rc;

	if (!job->slices.nr_insns)
		return 0;
	cuts = calloc(2 * (size_t)job->slices.nr_insns, sizeof(*cuts));
	if (!cuts)
		return mp_err_set(err, ENOMEM, "out of memory");
	options.cuts = cuts;
	options.nr_cuts = find_cuts(&job->slices, cuts);
	mp_cfg_free(job->cfg);
	job->cfg = NULL;
	rc = mp_cfg_build(job->elf, &options, &job->cfg, err);
	free(cuts);
	return rc;
}

int me_job_find_markers(struct me_job *job, struct mp_err *err)
{
	struct me_markers markers;
	int rc = me_markers_find(job->elf, &markers, err);

	if (!rc)
		rc = me_slices_find(job->cfg, &markers, &job->learnt->needed, &job->slices, err);
	job->report->markers.nr_markers = markers.nr;
	job->report->markers.nr_accesses = job->slices.nr_accesses;
	me_markers_fini(&markers);
	return rc ? rc : cut_blocks(job, err);
}

static bool is_left_out(const struct me_slices *slices, const struct mp_block *block)
{
	uint32_t lo = mp_search(i, 0, slices->nr_insns, slices->insns[i].vaddr < block->vaddr);

	return lo < slices->nr_insns && slices->insns[lo].vaddr == block->vaddr &&
	       slices->insns[lo].len == block->size && block->term == MP_TERM_FALL;
}

/* Does the plan copy a block, and with its instructions? */
enum copying {
	NOT_COPIED,
	COPIED,
	LEFT_OUT,
};

/* @copying: per block, enum copying. */
static void account(struct me_job *job, const uint8_t *copying)
{
	struct me_markers_report *r = &job->report->markers;

	for (uint32_t i = 0; i < job->slices.nr_accesses; i++) {
		const struct me_slice_access *access = &job->slices.accesses[i];
		uint32_t block = mp_cfg_block_at(job->cfg, access->vaddr);

		if (block == MP_NONE || copying[block] == NOT_COPIED)
			r->nr_not_copied++;
		else if (copying[block] == LEFT_OUT)
			r->nr_removed++;
		else
			r->stays[access->stays == ME_SLICE_GOES ? ME_SLICE_BLOCK : access->stays]++;
	}
}

int me_job_leave_markers_out(struct me_job *job, struct mp_err *err)
{
	uint8_t *copying = calloc((size_t)job->cfg->nr_blocks + 1, 1);

	if (!copying)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < job->plan.nr_blocks; i++) {
		struct me_plan_block *planned = &job->plan.blocks[i];
		const struct mp_block *block = &job->cfg->blocks[planned->block];

		planned->left_out = !planned->stub && is_left_out(&job->slices, block);
		if (planned->left_out && copying[planned->block] == NOT_COPIED)
			job->report->markers.nr_insns += block->nr_insns;
		copying[planned->block] = planned->left_out ? LEFT_OUT : COPIED;
	}
	account(job, copying);
	free(copying);
	return 0;
}
