// SPDX-License-Identifier: Apache-2.0
/*
 * foreseen - makes ways of branches that samples' registers showed evidence of the branches' edges.
 * mp_foreseen_add() is called by all who read ways from a store, the rest by counts.
 */
#include "libprof/infer/foreseen.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/*
 * The most samples that count at one branch: more of them tell its share no better than this, since
 * samples before one way may take longer than before the other. From 30 to 1000, four of five programs
 * get the same layouts.
 */
#define MOST 100.0
/* Before the number of runs is known, the odds weigh as those of looks do (HINT_WEIGHT in counts.c). */
#define ODDS_WEIGHT 5.0

int mp_foreseen_add(const struct mp_cfg *cfg, const struct mp_way_count *ways, size_t nr,
		    struct mp_profile *profile, struct mp_err *err)
{
	profile->edge_foreseen = calloc((size_t)cfg->nr_edges + 1, sizeof(*profile->edge_foreseen));
	if (!profile->edge_foreseen)
		return mp_err_set(err, ENOMEM, "profile: out of memory");
	for (size_t i = 0; i < nr; i++) {
		uint32_t b = mp_cfg_block_at(cfg, ways[i].vaddr);
		const struct mp_block *block = b == MP_NONE ? NULL : &cfg->blocks[b];

		if (!block || block->term != MP_TERM_COND || block->nr_edges != 2 ||
		    ways[i].vaddr != block->vaddr + block->size - block->term_len)
			continue;
		for (uint32_t e = block->first_edge; e < block->first_edge + 2; e++)
			profile->edge_foreseen[e] +=
				cfg->edges[e].kind == MP_EDGE_TAKEN ? ways[i].taken : ways[i].fell;
	}
	return 0;
}

void mp_foreseen_fill(const struct mp_cfg *cfg, const struct mp_profile *profile, uint32_t e,
		      double runs, struct mp_flow_edge *out)
{
	const struct mp_block *block = &cfg->blocks[cfg->edges[e].from];
	double seen = (double)profile->edge_foreseen[e], sum = 0, weight;

	if (block->term != MP_TERM_COND || block->nr_edges != 2)
		return;
	for (uint32_t i = block->first_edge; i < block->first_edge + 2; i++)
		sum += (double)profile->edge_foreseen[i];
	if (!(sum > 0))
		return;
	weight = MOST / (MOST + sum);
	if (runs > 0) {
		/* Transfers of which so many are seen per run that the block's own count does not change. */
		out->counted = true;
		out->transfers = seen * weight;
		out->rate = sum * weight / runs;
	} else {
		out->against = fmax(0, ODDS_WEIGHT * log((sum - seen + 0.5) / (seen + 0.5)));
	}
}
