// SPDX-License-Identifier: Apache-2.0
/*
 * layout_line - marks runs of blocks, and loops, that should lie in as few lines as possible.
 *
 * A run begins where a branch leads, and ends where control likely leaves by a branch. A processor
 * fetches whole lines of the instruction cache and of the cache of decoded instructions. A run that
 * lies in one line more than necessary costs a fetch each time, and such a loop costs one each round;
 * place_line.c chooses their addresses. Called by layout.c when the order is final.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/layout/layout_private.h"
#include "editor/layout/predict.h"

/* Blocks rarer than this share of the hottest block are not worth the padding. */
#define MIN_HEAT 1e-3
/* place.c looks at no more blocks of a run. */
#define MAX_RUN 32
/* A loop ends where so large a part of its rounds has ended: rarer ways back may be longer. */
#define LOOP_SHARE 0.75
/* At least this share of the executions of a loop's first block come from the loop itself. */
#define MIN_ROUNDS 0.5
/* No-ops may execute before a loop if control falls into at most this share of its rounds. */
#define MAX_FALLS 0.125

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

/* How often control falls into index @i at most. Clones have only what falls into the first of them. */
static double fall_count(const struct mp_cfg *cfg, const struct mp_counts *counts,
			 const struct me_plan *plan, uint32_t i)
{
	uint32_t from = i - 1;

	while (from && plan->blocks[from].clone)
		from--;
	return me_way_count(cfg, counts, plan->blocks[from].block, plan->blocks[from + 1].block);
}

/* The number of blocks, from index @i on, that likely execute in sequence. */
static uint8_t run_length(const struct mp_cfg *cfg, const struct mp_counts *counts,
			  const struct me_plan *plan, uint32_t i)
{
	uint8_t nr = 1;

	for (; nr < MAX_RUN && i + 1 < plan->nr_blocks; i++, nr++) {
		const struct me_plan_block *at = &plan->blocks[i];

		if (at[1].zone != at->zone || me_way_count(cfg, counts, at->block, at[1].block) <
						      0.5 * counts->block[at->block])
			break;
	}
	return nr;
}

/* The ways back to each block of a plan from the blocks behind it, and the block itself. */
struct loops {
	uint32_t *at;	/* per block of the CFG: its index in the plan; MP_NONE: not hot */
	double *rounds; /* per index: executions of all ways back */
	double *seen;	/* those that were looked at */
};

static int loops_init(const struct mp_cfg *cfg, const struct me_plan *plan, struct loops *loops)
{
	loops->at = malloc(((size_t)cfg->nr_blocks + 1) * sizeof(*loops->at));
	loops->rounds = calloc((size_t)plan->nr_blocks + 1, sizeof(*loops->rounds));
	loops->seen = calloc((size_t)plan->nr_blocks + 1, sizeof(*loops->seen));
	if (!loops->at || !loops->rounds || !loops->seen)
		return -ENOMEM;
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		loops->at[b] = MP_NONE;
	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		if (plan->blocks[i].zone == ME_ZONE_HOT && !plan->blocks[i].clone)
			loops->at[plan->blocks[i].block] = i;
	return 0;
}

static void loops_fini(struct loops *loops)
{
	free(loops->at);
	free(loops->rounds);
	free(loops->seen);
}

/* Adds the ways back from index @i to @sum. @plan: mark the loops that end with these; NULL: none. */
static void add_rounds(const struct mp_cfg *cfg, const struct mp_counts *counts,
		       const struct loops *loops, uint32_t i, uint32_t b, double *sum,
		       struct me_plan *plan)
{
	const struct mp_block *block = &cfg->blocks[b];

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++) {
		uint32_t to = loops->at[cfg->edges[e].to];
		double all;

		if (to == MP_NONE || to > i || cfg->blocks[cfg->edges[e].to].func != block->func)
			continue;
		all = LOOP_SHARE * loops->rounds[to];
		if (plan && sum[to] < all && sum[to] + counts->edge[e] >= all && i - to < MAX_RUN)
			plan->blocks[to].loop = (uint8_t)(i - to + 1);
		sum[to] += counts->edge[e];
	}
}

static int mark_loops(const struct mp_cfg *cfg, const struct mp_counts *counts, double least,
		      struct me_plan *plan)
{
	struct loops loops;
	int ret = loops_init(cfg, plan, &loops);

	for (int pass = 0; pass < 2 && !ret; pass++)
		for (uint32_t i = 0; i < plan->nr_blocks; i++)
			if (loops.at[plan->blocks[i].block] == i)
				add_rounds(cfg, counts, &loops, i, plan->blocks[i].block,
					   pass ? loops.seen : loops.rounds, pass ? plan : NULL);
	for (uint32_t i = 0; i < plan->nr_blocks && !ret; i++)
		if (loops.rounds[i] < least ||
		    loops.rounds[i] < MIN_ROUNDS * counts->block[plan->blocks[i].block])
			plan->blocks[i].loop = 0;
	loops_fini(&loops);
	return ret;
}

int me_lines_keep(const struct mp_cfg *cfg, const struct mp_counts *counts, uint8_t line_log2,
		  struct me_plan *plan)
{
	double hottest = 0;
	int ret;

	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		if (counts->block[plan->blocks[i].block] > hottest)
			hottest = counts->block[plan->blocks[i].block];
	plan->line_log2 = line_log2;
	if (!(hottest > 0))
		return 0;
	ret = mark_loops(cfg, counts, MIN_HEAT * hottest, plan);
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		struct me_plan_block *at = &plan->blocks[i];
		double count = counts->block[at->block];

		if (at->zone != ME_ZONE_HOT || at->clone || count < MIN_HEAT * hottest)
			continue;
		at->heat = (float)count;
		if (i && leads_to(cfg, at[-1].block, at->block)) {
			at->pad = at->loop && fall_count(cfg, counts, plan, i) <= MAX_FALLS * count;
			continue;
		}
		at->run = run_length(cfg, counts, plan, i);
	}
	return ret;
}
