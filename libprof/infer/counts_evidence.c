// SPDX-License-Identifier: Apache-2.0
/* counts_evidence - sums over samples, transfers and paths of a module. Called by counts. */
#include <math.h>
#include <stdlib.h>

#include "libprof/infer/counts_private.h"

void mp_counts_fill_witnesses(const struct mp_cfg *cfg, const struct mp_profile *profile,
			      uint64_t *witnesses)
{
	/* Most of a program never runs. Do not write zeros: untouched pages take no memory. */
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		if (profile->block_samples[b])
			witnesses[b] = profile->block_samples[b];
	if (!profile->nr_transfers)
		return;
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		if (profile->block_leavings[b])
			witnesses[b] += profile->block_leavings[b];
	for (uint32_t e = 0; e < cfg->nr_edges; e++) {
		if (!profile->edge_transfers[e])
			continue;
		witnesses[cfg->edges[e].from] += profile->edge_transfers[e];
		witnesses[cfg->edges[e].to] += profile->edge_transfers[e];
	}
}

double mp_counts_transfer_weight(const struct mp_cfg *cfg, const struct mp_profile *profile,
				 const struct mp_counts *counts)
{
	double seen = 0, counted = 0;

	for (uint32_t e = 0; e < cfg->nr_edges; e++) {
		if (cfg->edges[e].kind == MP_EDGE_FALL)
			continue;
		seen += (double)profile->edge_transfers[e];
		counted += counts->edge[e];
	}
	return counted > 0 && seen > 0 ? fmin(seen / counted, 1e6) : 1;
}

double mp_counts_reported_weight(const struct mp_cfg *cfg, const struct mp_path_evidence *paths,
				 const struct mp_counts *counts)
{
	double reported = 0, counted = 0;

	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		if (!paths->reported[b])
			continue;
		reported += (double)paths->reported[b];
		counted += counts->block[b];
	}
	return counted > 0 ? reported / counted : 0;
}

uint64_t *mp_counts_visits_new(const struct mp_cfg *cfg, const struct mp_path_evidence *paths)
{
	uint64_t *visits = calloc((size_t)cfg->nr_blocks + 1, sizeof(*visits));

	for (uint32_t b = 0; visits && b < cfg->nr_blocks; b++)
		visits[b] = paths->outside[b];
	for (uint32_t e = 0; visits && e < cfg->nr_edges; e++)
		visits[cfg->edges[e].to] += paths->edge[e];
	for (uint32_t b = 0; visits && b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		uint64_t out = 0;

		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
			out += paths->edge[e];
		if (out > visits[b])
			visits[b] = out;
	}
	return visits;
}
