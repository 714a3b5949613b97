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

/* Per block: does the plan copy it? NULL: out of memory. */
static uint8_t *find_copied(const struct me_job *job)
{
	uint8_t *copied = calloc((size_t)job->cfg->nr_blocks + 1, 1);

	for (uint32_t i = 0; copied && i < job->plan.nr_blocks; i++) {
		const struct me_plan_block *planned = &job->plan.blocks[i];

		if (!planned->stub && !planned->left_out)
			copied[planned->block] = 1;
	}
	return copied;
}

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

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
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
	qsort(*cuts, *nr, sizeof(**cuts), by_address);
	return 0;
}

/* Plan the parts of each block where the plan has the block. Return: 0, -ENOMEM. */
static int cut_plan(struct me_plan *plan, const uint32_t *first)
{
	uint32_t *at = malloc(((size_t)plan->nr_blocks + 1) * sizeof(*at)), nr = 0;
	struct me_plan_block *blocks = NULL;

	for (uint32_t i = 0; at && i < plan->nr_blocks; i++) {
		const struct me_plan_block *planned = &plan->blocks[i];

		at[i] = nr;
		nr += planned->stub ? 1 : first[planned->block + 1] - first[planned->block];
	}
	if (at)
		blocks = calloc((size_t)nr + 1, sizeof(*blocks));
	if (!blocks) {
		free(at);
		return -ENOMEM;
	}
	at[plan->nr_blocks] = nr;
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		const struct me_plan_block *planned = &plan->blocks[i];
		struct me_plan_block *parts = &blocks[at[i]];
		uint32_t nr_parts = at[i + 1] - at[i];
		uint32_t run_end = i + planned->run, run;

		run_end = run_end < plan->nr_blocks ? run_end : plan->nr_blocks;
		run = at[run_end] - at[i];
		for (uint32_t k = 0; k < nr_parts; k++)
			parts[k] = (struct me_plan_block){.block = first[planned->block] + k,
							  .zone = planned->zone,
							  .why = planned->why,
							  .clone = planned->clone,
							  .version = planned->version};
		parts[0] = *planned;
		parts[0].block = first[planned->block];
		parts[0].favour_fall = 0;
		parts[0].run = run < UINT8_MAX ? (uint8_t)run : UINT8_MAX;
		parts[nr_parts - 1].favour_fall = planned->favour_fall;
	}
	free(at);
	free(plan->blocks);
	plan->blocks = blocks;
	plan->nr_blocks = nr;
	return 0;
}

/* The counts that are printed beside places. Parts run as often as their block did. */
static int cut_counts(struct me_job *job, const uint32_t *first, uint32_t nr_old,
		      uint32_t nr_old_edges)
{
	const struct mp_cfg *cfg = job->cfg;
	struct mp_counts *counts = &job->counts;
	double *block = calloc((size_t)cfg->nr_blocks + 1, sizeof(*block));
	uint64_t *samples = calloc((size_t)cfg->nr_blocks + 1, sizeof(*samples));
	double *edge = realloc(counts->edge, ((size_t)cfg->nr_edges + 1) * sizeof(*edge));

	if (edge)
		counts->edge = edge;
	if (!block || !samples || !edge) {
		free(block);
		free(samples);
		return -ENOMEM;
	}
	for (uint32_t b = 0; b < nr_old; b++) {
		samples[first[b]] = counts->samples[b];
		for (uint32_t n = first[b]; n < first[b + 1]; n++)
			block[n] = counts->block[b];
	}
	for (uint32_t e = nr_old_edges; e < cfg->nr_edges; e++)
		edge[e] = block[cfg->edges[e].from];
	free(counts->block);
	free(counts->samples);
	counts->block = block;
	counts->samples = samples;
	return 0;
}

static int cut_blocks(struct me_job *job, const uint64_t *cuts, uint32_t nr_cuts,
		      struct mp_err *err)
{
	uint32_t nr_old = job->cfg->nr_blocks, nr_old_edges = job->cfg->nr_edges, *first = NULL;
	int rc = mp_cfg_cut(job->cfg, cuts, nr_cuts, &first, err);

	if (rc)
		return rc;
	rc = cut_plan(&job->plan, first);
	if (!rc && job->options->print && job->counts.block)
		rc = cut_counts(job, first, nr_old, nr_old_edges);
	for (uint32_t s = 0; s < job->added.nr_stubs; s++)
		if (job->added.stubs[s].arrivals == ME_STUB_EDGE)
			job->added.stubs[s].from = first[job->added.stubs[s].from + 1] - 1;
	for (uint32_t f = 0; job->adjustments && f < job->cfg->nr_funcs; f++)
		if (job->adjustments[f].loop != MP_NONE)
			job->adjustments[f].loop = first[job->adjustments[f].loop];
	free(first);
	return rc ? mp_err_set(err, -rc, "out of memory") : 0;
}

/* Mark the planned blocks that end in a call or a jump of a stub. */
static int mark(struct me_job *job, struct mp_err *err)
{
	const struct mp_cfg *cfg = job->cfg;
	uint8_t *copied = find_copied(job), *calls = calloc((size_t)cfg->nr_blocks + 1, 1);

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

int me_job_use_slots(struct me_job *job, struct mp_err *err)
{
	uint8_t *copied;
	uint64_t *cuts = NULL;
	uint32_t nr_cuts = 0;
	int rc;

	if (!job->options->layout.slots || me_counting_any(&job->options->counting))
		return 0;
	copied = find_copied(job);
	rc = copied ? find_cuts(job->cfg, copied, &cuts, &nr_cuts) : -ENOMEM;
	free(copied);
	rc = rc ? mp_err_set(err, ENOMEM, "out of memory") : 0;
	if (!rc && nr_cuts)
		rc = cut_blocks(job, cuts, nr_cuts, err);
	free(cuts);
	return rc ? rc : mark(job, err);
}
