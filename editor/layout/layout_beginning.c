// SPDX-License-Identifier: Apache-2.0
/*
 * layout_beginning - where a hot block would jump to another function (a tail call), a copy of that function's beginning
 * follows the block instead.
 *
 * The function's own copy begins with blocks that control falls through. The clone repeats them in this order, so each
 * way through the clone has as many taken branches as the same way through the function's own copy, and one jump less.
 * Only a clone that ends earlier has one more for the control that reaches its end.
 */
#include "editor/layout/layout_beginning.h"

#include <errno.h>
#include <stdlib.h>

#include "editor/base/mix.h"
#include "editor/layout/predict.h"

#define MAX_BLOCKS 32
/* At most so many bytes replace a jump. */
#define MAX_BYTES 256
/* A beginning ends where so large a part of what it can save is saved. */
#define ENOUGH 0.9
/* A jump is worth replacing if it is at least this part of all executions of blocks. */
#define MIN_SHARE 1e-5
/* Beginnings may add this share of the bytes of the hot zone, or so many bytes. */
#define MAX_GROWTH 0.1
#define MIN_BUDGET 1024
/* A beginning may end in a jump to another function. */
#define ROUNDS 2

struct beginning {
	uint32_t at;	/* index in the plan: the clones follow this block */
	uint32_t entry; /* index in the plan of the first block that they repeat */
	uint32_t nr_blocks, bytes;
	double saved; /* jumps, in units of counts */
};

struct finder {
	const struct mp_cfg *cfg;
	const struct mp_counts *counts;
	const uint8_t *allowed;
	const struct me_plan *plan;
	uint32_t *planned_at; /* per cfg block: index in the plan of its copy; MP_NONE: it has none */
	struct beginning *found;
	uint32_t nr, nr_clones;
};

static bool finder_init(struct finder *f)
{
	f->planned_at = malloc(((size_t)f->cfg->nr_blocks + 1) * sizeof(*f->planned_at));
	f->found = malloc(((size_t)f->plan->nr_blocks + 1) * sizeof(*f->found));
	if (!f->planned_at || !f->found)
		return false;
	for (uint32_t b = 0; b < f->cfg->nr_blocks; b++)
		f->planned_at[b] = MP_NONE;
	for (uint32_t i = 0; i < f->plan->nr_blocks; i++)
		if (!f->plan->blocks[i].clone)
			f->planned_at[f->plan->blocks[i].block] = i;
	return true;
}

static void finder_fini(struct finder *f)
{
	free(f->planned_at);
	free(f->found);
}

/* Return: the entry block of the function to which @block jumps at its end; MP_NONE: it jumps to no function's entry. */
static uint32_t entry_behind(const struct mp_cfg *cfg, uint32_t block)
{
	uint32_t c = mp_cfg_call_from(cfg, 0, cfg->nr_calls, block);

	for (; c < cfg->nr_calls && cfg->calls[c].block == block; c++) {
		const struct mp_func *func;

		if (!cfg->calls[c].tail || cfg->calls[c].callee == MP_NONE)
			continue;
		func = &cfg->funcs[cfg->calls[c].callee];
		if (func->nr_blocks &&
		    mp_block_target(&cfg->blocks[block]) == func->vaddr &&
		    cfg->blocks[func->first_block].vaddr == func->vaddr)
			return func->first_block;
	}
	return MP_NONE;
}

/*
 * Return: where the plan has the entry of the function to which the block at index @i jumps; MP_NONE: it jumps to none,
 * or the entry is not copied into that zone, or follows anyway.
 */
static uint32_t entered(const struct finder *f, uint32_t i)
{
	const struct me_plan_block *planned = &f->plan->blocks[i];
	const struct mp_block *block = &f->cfg->blocks[planned->block];
	uint32_t to;

	if (block->term != MP_TERM_TAIL || planned->left_out || !f->allowed[block->func])
		return MP_NONE;
	to = entry_behind(f->cfg, planned->block);
	if (to == MP_NONE || f->planned_at[to] == MP_NONE || !f->allowed[f->cfg->blocks[to].func] ||
	    f->plan->blocks[f->planned_at[to]].zone != planned->zone ||
	    (i + 1 < f->plan->nr_blocks && planned[1].block == to))
		return MP_NONE;
	return f->planned_at[to];
}

/* May a clone of the block at index @i be followed by one of the next block? *@part: so often control falls there. */
static bool falls(const struct finder *f, uint32_t i, double *part)
{
	const struct me_plan_block *planned = &f->plan->blocks[i];
	const struct mp_block *block = &f->cfg->blocks[planned->block];
	bool found = false;
	double sum = 0;

	*part = 0;
	if (i + 1 == f->plan->nr_blocks || planned[1].zone != planned->zone || planned[1].foreign ||
	    f->cfg->blocks[planned[1].block].flags & MP_BLOCK_LANDING_PAD ||
	    (block->term != MP_TERM_COND && block->term != MP_TERM_JUMP &&
	     block->term != MP_TERM_FALL))
		return false;
	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++) {
		if (f->cfg->edges[e].to != planned[1].block)
			continue;
		found = true;
		sum += f->counts ? f->counts->edge[e] : 0;
	}
	if (f->counts && f->counts->block[planned->block] > 0)
		*part = sum / f->counts->block[planned->block];
	return found;
}

/* The shortest beginning at @b->entry that saves most of the @flow jumps that could be saved. */
static void measure(const struct finder *f, double flow, struct beginning *b)
{
	double saved[MAX_BLOCKS], stays = 1, part;
	uint32_t bytes[MAX_BLOCKS], nr = 0, sum = 0;
	bool goes_on = true;

	while (goes_on && nr < MAX_BLOCKS) {
		uint32_t i = b->entry + nr;

		sum += f->cfg->blocks[f->plan->blocks[i].block].size;
		if (sum > MAX_BYTES)
			break;
		goes_on = falls(f, i, &part);
		stays *= goes_on ? part : 0;
		saved[nr] = flow * (1 - stays);
		bytes[nr++] = sum;
	}
	b->saved = 0;
	for (uint32_t k = 0; k < nr; k++) {
		if (saved[k] < ENOUGH * saved[nr - 1] || !(saved[k] > 0))
			continue;
		b->saved = saved[k];
		b->nr_blocks = k + 1;
		b->bytes = bytes[k];
		return;
	}
}

static int compare_worth(const void *a, const void *b)
{
	const struct beginning *x = a, *y = b;
	double wx = x->saved / x->bytes, wy = y->saved / y->bytes;

	if (wx != wy)
		return wx > wy ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int compare_place(const void *a, const void *b)
{
	const struct beginning *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Keeps the beginnings with the highest worth per byte, in the order of the plan. @budget: bytes. */
static void choose(struct finder *f, double *budget)
{
	uint32_t kept = 0;

	if (f->nr)
		qsort(f->found, f->nr, sizeof(*f->found), compare_worth);
	for (uint32_t i = 0; i < f->nr; i++) {
		if (f->found[i].bytes > *budget)
			continue;
		*budget -= f->found[i].bytes;
		f->nr_clones += f->found[i].nr_blocks;
		f->found[kept++] = f->found[i];
	}
	f->nr = kept;
	if (kept)
		qsort(f->found, kept, sizeof(*f->found), compare_place);
}

/* Adds clones to the plan: a loop with clones in it has more blocks. Return: 0, -ENOMEM. */
static int insert(const struct finder *f, struct me_plan *plan)
{
	struct me_plan_block *blocks =
		malloc(((size_t)plan->nr_blocks + f->nr_clones + 1) * sizeof(*blocks));
	uint32_t *now = malloc(((size_t)plan->nr_blocks + 1) * sizeof(*now));
	uint32_t nr = 0, next = 0;

	if (!blocks || !now) {
		free(blocks);
		free(now);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		now[i] = nr;
		blocks[nr++] = plan->blocks[i];
		if (next == f->nr || f->found[next].at != i)
			continue;
		for (uint32_t k = 0; k < f->found[next].nr_blocks; k++) {
			const struct me_plan_block *of = &plan->blocks[f->found[next].entry + k];

			blocks[nr++] = (struct me_plan_block){.block = of->block,
							      .zone = plan->blocks[i].zone,
							      .why = ME_WHY_BEGINNING,
							      .favour_fall = of->favour_fall,
							      .clone = true,
							      .foreign = true};
		}
		next++;
	}
	now[plan->nr_blocks] = nr;
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		uint32_t end = i + plan->blocks[i].loop, loop;

		if (!plan->blocks[i].loop || end > plan->nr_blocks)
			continue;
		loop = now[end] - now[i];
		blocks[now[i]].loop = loop < UINT8_MAX ? (uint8_t)loop : 0;
	}
	free(now);
	free(plan->blocks);
	plan->blocks = blocks;
	plan->nr_blocks = nr;
	return 0;
}

static double hot_bytes(const struct mp_cfg *cfg, const struct me_plan *plan)
{
	double sum = 0;

	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		if (plan->blocks[i].zone == ME_ZONE_HOT)
			sum += cfg->blocks[plan->blocks[i].block].size;
	return sum;
}

static int add_round(struct finder *f, double least, double *budget, struct me_plan *plan)
{
	double *flow = malloc(((size_t)plan->nr_blocks + 1) * sizeof(*flow));
	int ret = flow && finder_init(f) ? me_plan_flows(f->cfg, f->counts, plan, flow) : -ENOMEM;

	for (uint32_t i = 0; i < plan->nr_blocks && !ret; i++) {
		struct beginning *b = &f->found[f->nr];

		if (plan->blocks[i].zone != ME_ZONE_HOT || flow[i] < least)
			continue;
		*b = (struct beginning){.at = i, .entry = entered(f, i)};
		if (b->entry == MP_NONE)
			continue;
		measure(f, flow[i], b);
		f->nr += b->saved >= least;
	}
	if (!ret) {
		choose(f, budget);
		ret = insert(f, plan);
	}
	free(flow);
	finder_fini(f);
	return ret;
}

int me_beginnings_add(const struct mp_cfg *cfg, const struct mp_counts *counts,
		      const uint8_t *allowed, struct me_plan *plan)
{
	double budget = MAX_GROWTH * hot_bytes(cfg, plan), least = 0;
	int ret = 0;

	budget = budget > MIN_BUDGET ? budget : MIN_BUDGET;
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		least += MIN_SHARE * counts->block[b];
	for (int round = 0; round < ROUNDS && least > 0 && !ret; round++) {
		struct finder f = {.cfg = cfg, .counts = counts, .allowed = allowed, .plan = plan};

		ret = add_round(&f, least, &budget, plan);
	}
	return ret;
}

int me_beginnings_add_random(const struct mp_cfg *cfg, const uint8_t *allowed, uint64_t seed,
			     struct me_plan *plan)
{
	struct finder f = {.cfg = cfg, .allowed = allowed, .plan = plan};
	uint64_t state = seed;
	int ret = finder_init(&f) ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < plan->nr_blocks && !ret; i++) {
		struct beginning *b = &f.found[f.nr];
		uint32_t wanted = 1 + (uint32_t)(me_next_random(&state) % 8);
		double part;

		*b = (struct beginning){.at = i, .entry = entered(&f, i), .nr_blocks = 1};
		if (b->entry == MP_NONE || me_next_random(&state) % 4 == 0)
			continue;
		while (b->nr_blocks < wanted && falls(&f, b->entry + b->nr_blocks - 1, &part))
			b->nr_blocks++;
		f.nr_clones += b->nr_blocks;
		f.nr++;
	}
	if (!ret)
		ret = insert(&f, plan);
	finder_fini(&f);
	return ret;
}
