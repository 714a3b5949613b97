// SPDX-License-Identifier: Apache-2.0
/*
 * layout_line - marks runs of blocks that should lie in as few lines as possible.
 *
 * A run begins where a branch leads, and ends where control likely leaves by a branch. A processor
 * fetches whole lines of the instruction cache and of the cache of decoded instructions. A run that
 * lies in one line more than necessary costs a fetch each time; place.c then moves the run to the
 * next line. Called by layout.c when the order is final.
 */
#include "editor/layout/layout_private.h"

/* Blocks rarer than this share of the hottest block are not worth the padding. */
#define MIN_HEAT 1e-3
/* place.c looks at no more blocks of a run. */
#define MAX_RUN 32

static double way_count(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t from,
			uint32_t to)
{
	const struct mp_block *block = &cfg->blocks[from];
	double sum = 0;

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		if (cfg->edges[e].to == to)
			sum += counts->edge[e];
	return sum;
}

/* Control may fall from @from into @to, and padding between them would execute. This counts even
 * if it never happened: on other input the padding cost more than the saved lines. */
static bool leads_to(const struct mp_cfg *cfg, uint32_t from, uint32_t to)
{
	const struct mp_block *block = &cfg->blocks[from];

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		if (cfg->edges[e].to == to)
			return true;
	return false;
}

/* The number of blocks, from index @i on, that likely execute in sequence. */
static uint8_t run_length(const struct mp_cfg *cfg, const struct mp_counts *counts,
			  const struct me_plan *plan, uint32_t i)
{
	uint8_t nr = 1;

	for (; nr < MAX_RUN && i + 1 < plan->nr_blocks; i++, nr++) {
		const struct me_plan_block *at = &plan->blocks[i];

		if (at[1].zone != at->zone ||
		    way_count(cfg, counts, at->block, at[1].block) < 0.5 * counts->block[at->block])
			break;
	}
	return nr;
}

void me_lines_keep(const struct mp_cfg *cfg, const struct mp_counts *counts, uint8_t line_log2,
		   struct me_plan *plan)
{
	double hottest = 0;

	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		if (counts->block[plan->blocks[i].block] > hottest)
			hottest = counts->block[plan->blocks[i].block];
	plan->line_log2 = line_log2;
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		struct me_plan_block *at = &plan->blocks[i];
		double count = counts->block[at->block];

		if (at->zone != ME_ZONE_HOT || at->clone || count < MIN_HEAT * hottest ||
		    !(count > 0))
			continue;
		if (i && leads_to(cfg, at[-1].block, at->block))
			continue;
		at->run = run_length(cfg, counts, plan, i);
	}
}
