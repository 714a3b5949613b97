// SPDX-License-Identifier: Apache-2.0
/*
 * counts_exact - takes exact counts by division and subtraction, without likelihood or
 * prior. Called by counts.
 */
#include "libprof/infer/counts_exact.h"

#include <math.h>
#include <string.h>

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
		/*
		 * The taken way leads out of the function: the count of the next block is
		 * an upper bound.
		 */
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

/*
 * Largest accepted difference, as a share. Functions that are left in their middle, and
 * unknown jumps, cause less.
 */
#define MAX_OFF 0.125

bool mp_counts_agree(const struct mp_cfg *cfg, const struct mp_func *func,
		     const struct mp_counts *counts, double *in)
{
	const uint32_t first = func->first_block, end = first + func->nr_blocks;
	double off = 0, runs = 0;

	memset(in, 0, func->nr_blocks * sizeof(*in));
	for (uint32_t b = first; b < end; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
			in[cfg->edges[e].to - first] += counts->edge[e];
	}
	for (uint32_t b = first; b < end; b++) {
		/* Entry blocks may also be reached from outside the function. */
		off += mp_block_enters(&cfg->blocks[b]) ? fmax(0, in[b - first] - counts->block[b])
							: fabs(in[b - first] - counts->block[b]);
		runs += counts->block[b];
	}
	return off <= MAX_OFF * runs;
}
