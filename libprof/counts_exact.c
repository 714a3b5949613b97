// SPDX-License-Identifier: Apache-2.0
/*
 * counts_exact - no likelihood, no prior: division and subtraction. Called by counts.
 */
#include "libprof/counts_exact.h"

#include <math.h>

static void take_edges(const struct mp_cfg *cfg, const struct mp_profile *profile,
		       const struct mp_block *block, double runs, double *edges)
{
	double left = runs;
	uint32_t end = block->first_edge + block->nr_edges;

	for (uint32_t e = block->first_edge; e < end; e++) {
		if (cfg->edges[e].kind == MP_EDGE_FALL)
			continue;
		edges[e] = (double)profile->edge_transfers[e];
		left -= edges[e];
	}
	for (uint32_t e = block->first_edge; e < end; e++) {
		const struct mp_edge *edge = &cfg->edges[e];

		if (edge->kind != MP_EDGE_FALL)
			continue;
		edges[e] = fmax(left, 0);
		/* The other way leads out of the function: who comes in below is a bound. */
		if (block->term == MP_TERM_COND && block->nr_edges == 1)
			edges[e] =
				fmin(edges[e], mp_profile_weight(profile->block_samples[edge->to],
								 cfg->blocks[edge->to].nr_insns));
	}
}

void mp_counts_take_exact(const struct mp_cfg *cfg, const struct mp_profile *profile,
			  struct mp_counts *out)
{
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		out->block[b] = mp_profile_weight(profile->block_samples[b], block->nr_insns);
		take_edges(cfg, profile, block, out->block[b], out->edge);
	}
}
