// SPDX-License-Identifier: Apache-2.0
/*
 * counts_calls - evidence across function boundaries.
 * Decides how much one function's counts tell about another's. A callee's entry runs as
 * often as its call sites, but flow never leaves a function. This relation is therefore
 * added as evidence, once. Called by counts.c.
 */
#include "libprof/infer/counts_calls.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Weight of the other side of a call, in instructions of the block itself. Tuned by
 * scripts/bench/bench-accuracy on programs that are not the test programs: 4 to 16 give similar
 * results, with 2 % fewer taken branches.
 */
#define CALL_WEIGHT 8.0

/* Limit of the walk below, for long functions and loops without an exit. */
#define STRAIGHT_BLOCKS 32

static uint32_t func_entry(const struct mp_cfg *cfg, uint32_t f)
{
	const struct mp_func *func = &cfg->funcs[f];

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		if (cfg->blocks[b].flags & MP_BLOCK_ENTRY)
			return b;
	return MP_NONE;
}

/* Flow that enters at @entry from outside. Flow that loops bring back to the entry is no call. */
static double func_entered(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t f,
			   uint32_t entry)
{
	const struct mp_func *func = &cfg->funcs[f];
	double sum = counts->block[entry];

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		for (uint32_t e = cfg->blocks[b].first_edge;
		     e < cfg->blocks[b].first_edge + cfg->blocks[b].nr_edges; e++)
			if (cfg->edges[e].to == entry)
				sum -= counts->edge[e];
	return sum > 0 ? sum : 0;
}

/*
 * Instructions that each call of function @f runs: those from its entry to the first branch.
 * 0 if the function has samples, no blocks, or blocks that the profile does not know.
 */
static uint32_t unsampled_insns(const struct mp_cfg *cfg, const struct mp_profile *profile,
				const struct mp_counts *counts, uint32_t f)
{
	const struct mp_func *func = &cfg->funcs[f];
	uint32_t b = func_entry(cfg, f), sum = 0;

	for (uint32_t i = func->first_block; i < func->first_block + func->nr_blocks; i++)
		if (counts->samples[i] || (profile->block_unknown && profile->block_unknown[i]))
			return 0;
	for (uint32_t i = 0; b != MP_NONE && i < STRAIGHT_BLOCKS; i++) {
		const struct mp_block *block = &cfg->blocks[b];

		sum += block->nr_insns;
		b = block->nr_edges == 1 ? cfg->edges[block->first_edge].to : MP_NONE;
	}
	return sum;
}

static bool func_has_samples(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t f)
{
	const struct mp_func *func = &cfg->funcs[f];

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		if (counts->samples[b])
			return true;
	return false;
}

int mp_calls_begin(const struct mp_cfg *cfg, const struct mp_profile *profile,
		   const struct mp_counts *counts, struct mp_calls_evidence *out)
{
	uint32_t *unsampled = calloc((size_t)cfg->nr_funcs + 1, sizeof(*unsampled));
	uint32_t last = MP_NONE;
	bool seen = false;

	out->samples = calloc((size_t)cfg->nr_blocks + 1, sizeof(*out->samples));
	out->insns = calloc((size_t)cfg->nr_blocks + 1, sizeof(*out->insns));
	if (!unsampled || !out->samples || !out->insns) {
		free(unsampled);
		return -ENOMEM;
	}
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		unsampled[f] = unsampled_insns(cfg, profile, counts, f);
	/* Functions without samples are not inferred: their part of the array takes no memory. */
	for (uint32_t i = 0; i < cfg->nr_calls; i++) {
		const struct mp_call *call = &cfg->calls[i];
		uint32_t caller = cfg->blocks[call->block].func;

		if (caller != last) {
			seen = func_has_samples(cfg, counts, caller);
			last = caller;
		}
		if (seen && call->callee != MP_NONE)
			out->insns[call->block] += unsampled[call->callee];
	}
	free(unsampled);
	return 0;
}

int mp_calls_weigh(const struct mp_cfg *cfg, const struct mp_counts *counts,
		   struct mp_calls_evidence *evidence)
{
	double *sites = calloc((size_t)cfg->nr_funcs + 1, sizeof(*sites));
	double *entered = calloc((size_t)cfg->nr_funcs + 1, sizeof(*entered));

	if (!sites || !entered) {
		free(sites);
		free(entered);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < cfg->nr_calls; i++)
		if (cfg->calls[i].callee != MP_NONE)
			sites[cfg->calls[i].callee] += counts->block[cfg->calls[i].block];
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		uint32_t entry = func_entry(cfg, f);

		/* Known call sites tell nothing if unknown code may call the function, too. */
		if (entry == MP_NONE || !(sites[f] > 0) ||
		    (cfg->funcs[f].flags &
		     (MP_FUNC_ADDRESS_TAKEN | MP_FUNC_EXPORTED | MP_FUNC_POINTED)))
			continue;
		entered[f] = func_entered(cfg, counts, f, entry);
		if (!(entered[f] > 0))
			continue;
		evidence->insns[entry] += CALL_WEIGHT;
		evidence->samples[entry] += CALL_WEIGHT * sites[f];
	}
	for (uint32_t i = 0; i < cfg->nr_calls; i++) {
		uint32_t callee = cfg->calls[i].callee, b = cfg->calls[i].block;

		if (callee == MP_NONE || !(entered[callee] > 0))
			continue;
		evidence->insns[b] += CALL_WEIGHT;
		evidence->samples[b] +=
			CALL_WEIGHT * entered[callee] * counts->block[b] / sites[callee];
	}
	free(sites);
	free(entered);
	return 0;
}

void mp_calls_evidence_fini(struct mp_calls_evidence *evidence)
{
	free(evidence->samples);
	free(evidence->insns);
	*evidence = (struct mp_calls_evidence){0};
}
