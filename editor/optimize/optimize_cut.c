// SPDX-License-Identifier: Apache-2.0
/*
 * optimize_cut - cuts the blocks of a finished plan where calls change their lengths in copies. Called by
 * optimize_plt.c and optimize_inline.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/optimize/optimize_private.h"

uint8_t *me_job_find_copied(const struct me_job *job)
{
	uint8_t *copied = calloc((size_t)job->cfg->nr_blocks + 1, 1);

	for (uint32_t i = 0; copied && i < job->plan.nr_blocks; i++) {
		const struct me_plan_block *planned = &job->plan.blocks[i];

		if (!planned->stub && !planned->left_out)
			copied[planned->block] = 1;
	}
	return copied;
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* In how many parts @nr blocks from @i on are cut, by @at, the index of each block's first part. */
static uint8_t nr_parts_of(const struct me_plan *plan, const uint32_t *at, uint32_t i, uint8_t nr)
{
	uint32_t end = i + nr < plan->nr_blocks ? i + nr : plan->nr_blocks, parts = at[end] - at[i];

	return parts < UINT8_MAX ? (uint8_t)parts : UINT8_MAX;
}

/* Plan the parts of each block where the plan has the block. Return: 0, -ENOMEM. */
static int cut_plan(struct me_plan *plan, const uint32_t *first)
{
	uint32_t *at = malloc(((size_t)plan->nr_blocks + 1) * sizeof(*at)), nr = 0;
	struct me_plan_block *blocks = NULL;

	for (uint32_t i = 0; at && i < plan->nr_blocks; i++) {
		const struct me_plan_block *planned = &plan->blocks[i];

		at[i] = nr;
		nr += planned->stub || planned->apart
			      ? 1
			      : first[planned->block + 1] - first[planned->block];
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
		for (uint32_t k = 0; k < nr_parts; k++)
			parts[k] = (struct me_plan_block){.block = first[planned->block] + k,
							  .zone = planned->zone,
							  .why = planned->why,
							  .clone = planned->clone,
							  .version = planned->version};
		parts[0] = *planned;
		/* The call that is replaced is in the last part. */
		parts[0].block = planned->apart ? first[planned->block + 1] - 1
						: first[planned->block];
		parts[0].favour_fall = parts[0].via_slot = parts[0].inlined = 0;
		parts[0].run = nr_parts_of(plan, at, i, planned->run);
		parts[0].loop = nr_parts_of(plan, at, i, planned->loop);
		parts[nr_parts - 1].favour_fall = planned->favour_fall;
		parts[nr_parts - 1].via_slot = planned->via_slot;
		parts[nr_parts - 1].inlined = planned->inlined;
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

int me_job_cut_blocks(struct me_job *job, uint64_t *cuts, uint32_t nr_cuts, struct mp_err *err)
{
	uint32_t nr_old = job->cfg->nr_blocks, nr_old_edges = job->cfg->nr_edges, *first = NULL;
	int rc;

	qsort(cuts, nr_cuts, sizeof(*cuts), by_address);
	rc = mp_cfg_cut(job->cfg, cuts, nr_cuts, &first, err);
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
	return rc ? mp_err_code(err, -rc) : 0;
}
