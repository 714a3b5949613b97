// SPDX-License-Identifier: Apache-2.0
/*
 * layout_line - which runs of blocks ought to lie in as few lines as they can.
 *
 * A run is what executes from where control comes by a branch to where it likely leaves by one. A
 * processor fetches whole lines (of the instruction cache, of the cache of decoded instructions): a
 * run that lies in one more than it needs costs one more each time. Place moves it to the next line
 * then. Called by layout.c when the order is final; what lies where, place decides.
 */
#include "editor/layout_private.h"

/* Blocks this much rarer than the hottest one are not worth the bytes. */
#define MIN_HEAT 1e-3
/* Place looks at no more of a run than this. */
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

/* Whatever the counts say, control may fall from one into the other, and padding would run. Where other
 * input did what this input never did, that cost more than the lines it saved. */
static bool leads_to(const struct mp_cfg *cfg, uint32_t from, uint32_t to)
{
	const struct mp_block *block = &cfg->blocks[from];

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		if (cfg->edges[e].to == to)
			return true;
	return false;
}

/* How many blocks likely run one after the other from the one at @i on. */
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
