// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_plt - lets calls and jumps to stubs of a PLT go through the stub's slot in copies. The
 * layout is decided before, so it does not depend on this. Called by optimize.c.
 *
 * The new call is one byte longer. Within a copied block all distances are the original's, so such
 * a call must be the last instruction of its block: blocks are cut behind these calls.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/evidence/plt_stub.h"
#include "editor/optimize/optimize_private.h"

/*
 * Return: the end of @call; 0: it stays as it is. A call that does not return runs at most once, so
 * a longer one would not pay.
 */
static uint64_t end_of_call(const struct mp_cfg *cfg, const struct mp_call *call)
{
	const struct mp_block *block = &cfg->blocks[call->block];
	uint64_t vaddr = mp_call_insn(cfg, call), end = vaddr + ME_PLT_BRANCH_SIZE;

	if (call->tail || (block->term == MP_TERM_NORETURN && end == block->vaddr + block->size))
		return 0;
	return me_plt_branch_slot(cfg->elf, vaddr, false) ? end : 0;
}

/* The ends of all such calls that are not the ends of their blocks. Ownership: free(*@cuts). */
static int find_cuts(const struct mp_cfg *cfg, const uint8_t *copied, uint64_t **cuts, uint32_t *nr)
{
	*nr = 0;
	*cuts = malloc(((size_t)cfg->nr_calls + 1) * sizeof(**cuts));
	if (!*cuts)
		return -ENOMEM;
	for (uint32_t c = 0; c < cfg->nr_calls; c++) {
		const struct mp_block *block = &cfg->blocks[cfg->calls[c].block];
		uint64_t end = copied[cfg->calls[c].block] ? end_of_call(cfg, &cfg->calls[c]) : 0;

		if (end && end < block->vaddr + block->size)
			(*cuts)[(*nr)++] = end;
	}
	return 0;
}

/* Mark the planned blocks that end in a call or a jump of a stub. */
static int mark(struct me_job *job, struct mp_err *err)
{
	const struct mp_cfg *cfg = job->cfg;
	uint8_t *copied = me_job_find_copied(job), *calls = calloc((size_t)cfg->nr_blocks + 1, 1);

	for (uint32_t c = 0; copied && calls && c < cfg->nr_calls; c++) {
		uint32_t b = cfg->calls[c].block;
		const struct mp_block *block = &cfg->blocks[b];

		if (copied[b] && block->term == MP_TERM_FALL &&
		    end_of_call(cfg, &cfg->calls[c]) == block->vaddr + block->size)
			calls[b] = 1;
	}
	for (uint32_t i = 0; copied && calls && i < job->plan.nr_blocks; i++) {
		struct me_plan_block *planned = &job->plan.blocks[i];
		const struct mp_block *block = &cfg->blocks[planned->block];

		if (planned->stub || planned->left_out)
			continue;
		planned->via_slot =
			block->term == MP_TERM_TAIL
				? me_plt_branch_slot(cfg->elf,
						     block->vaddr + block->size - block->term_len,
						     true) != 0
				: calls[planned->block];
	}
	free(copied);
	free(calls);
	return copied && calls ? 0 : mp_err_set(err, ENOMEM, "out of memory");
}

/* An output that counts many things, or numbers paths, keeps all calls. */
static bool may_use_slots(const struct me_optimize_options *o)
{
	return o->layout.slots && !o->layout.original &&
	       (!me_counting_any(&o->counting) || o->counting.meter);
}

int me_job_use_slots(struct me_job *job, struct mp_err *err)
{
	uint8_t *copied;
	uint64_t *cuts = NULL;
	uint32_t nr_cuts = 0;
	int rc;

	if (!may_use_slots(job->options))
		return 0;
	copied = me_job_find_copied(job);
	rc = copied ? find_cuts(job->cfg, copied, &cuts, &nr_cuts) : -ENOMEM;
	free(copied);
	rc = rc ? mp_err_code(err, -rc) : 0;
	if (!rc && nr_cuts)
		rc = me_job_cut_blocks(job, cuts, nr_cuts, err);
	free(cuts);
	return rc ? rc : mark(job, err);
}
