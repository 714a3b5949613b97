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

int mp_calls_weigh(const struct mp_cfg *cfg, const struct mp_counts *counts,
		   struct mp_calls_evidence *out)
{
	double *sites = calloc((size_t)cfg->nr_funcs + 1, sizeof(*sites));
	double *entered = calloc((size_t)cfg->nr_funcs + 1, sizeof(*entered));

	out->samples = calloc((size_t)cfg->nr_blocks + 1, sizeof(*out->samples));
	out->insns = calloc((size_t)cfg->nr_blocks + 1, sizeof(*out->insns));
	if (!sites || !entered || !out->samples || !out->insns) {
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
		out->insns[entry] += CALL_WEIGHT;
		out->samples[entry] += CALL_WEIGHT * sites[f];
	}
	for (uint32_t i = 0; i < cfg->nr_calls; i++) {
		uint32_t callee = cfg->calls[i].callee, b = cfg->calls[i].block;

		if (callee == MP_NONE || !(entered[callee] > 0))
			continue;
		out->insns[b] += CALL_WEIGHT;
		out->samples[b] += CALL_WEIGHT * entered[callee] * counts->block[b] / sites[callee];
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
