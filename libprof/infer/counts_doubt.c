// SPDX-License-Identifier: Apache-2.0
/*
 * counts_doubt - moves the shares of branches towards one half. Called by code that judges
 * a layout by the counts that it was made from.
 */
#include "libprof/infer/counts_doubt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Evidence about a branch's direction: samples of its two sides, paths over them, and transfers. */
static double branch_evidence(const struct mp_cfg *cfg, const struct mp_counts *counts,
			      uint32_t edge, double runs)
{
	const struct mp_edge *ways = &cfg->edges[edge];
	double insns = (cfg->blocks[ways[0].to].nr_insns + cfg->blocks[ways[1].to].nr_insns) / 2.0;
	double sum = runs * ((counts->unsampled ? 0 : insns) + counts->transfer_weight);

	if (counts->paths_over_edge)
		sum += (double)(counts->paths_over_edge[edge] + counts->paths_over_edge[edge + 1]);
	return sum;
}

int mp_counts_add_doubt(const struct mp_cfg *cfg, const struct mp_counts *counts, double doubt,
			struct mp_counts *out)
{
	*out = *counts;
	out->edge = malloc(((size_t)cfg->nr_edges + 1) * sizeof(*out->edge));
	if (!out->edge)
		return -ENOMEM;
	memcpy(out->edge, counts->edge, cfg->nr_edges * sizeof(*out->edge));
	for (uint32_t b = 0; b < cfg->nr_blocks && !counts->exact; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		double *way = &out->edge[block->first_edge];
		double runs, evidence;

		if (block->term != MP_TERM_COND || block->nr_edges != 2)
			continue;
		runs = way[0] + way[1];
		if (!(runs > 0))
			continue;
		evidence = branch_evidence(cfg, counts, block->first_edge, runs);
		way[0] = (way[0] * evidence + runs * doubt / 2) / (evidence + doubt);
		way[1] = runs - way[0];
	}
	return 0;
}
