// SPDX-License-Identifier: Apache-2.0
/*
 * predict - computes taken branches before and after a plan, from counts alone.
 *
 * Decides nothing. optimize uses it with inferred counts for the report; tools that measure
 * estimators use it with exact ones. Called by layout, entries, optimize and tests/tools.
 */
#include "editor/layout/predict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/infer/counts_doubt.h"

struct walk {
	const struct mp_cfg *cfg;
	const struct mp_counts *counts;
	const uint32_t *next; /* per block: the block behind its copy; MP_NONE: none */
	const uint8_t *copied;
	const double *share; /* per block: share of its count that clones leave; NULL: all */
	struct me_branches *sum;
	struct way *ways; /* per block; NULL: not wanted */
};

/* Taken branches at a block's end. */
struct way {
	double before, after;
};

/* Cost of @block's end if @follows is the block right behind it. */
static void block_add(const struct walk *w, const struct mp_block *block, uint32_t follows,
		      double *taken, double *jumps)
{
	const struct mp_edge *edges = &w->cfg->edges[block->first_edge];
	const double *counts = &w->counts->edge[block->first_edge];
	double through = 0, rarest = 0, sum = 0;
	bool jump_needed = true;

	if (block->term != MP_TERM_COND && block->term != MP_TERM_JUMP &&
	    block->term != MP_TERM_FALL)
		return;
	for (uint32_t i = 0; i < block->nr_edges; i++) {
		sum += counts[i];
		rarest = i == 0 || counts[i] < rarest ? counts[i] : rarest;
		if (edges[i].to == follows) {
			through += counts[i];
			jump_needed = false;
		}
	}
	/* One edge leaves the function: only the other one can fall through. */
	if (block->term == MP_TERM_COND && block->nr_edges < 2)
		sum = w->counts->block[block - w->cfg->blocks];
	*taken += sum - through;
	if (jump_needed && block->nr_edges)
		*jumps += rarest;
}

/*
 * Old code that falls into a copied block runs the jump over its old start. A branch there
 * leads to the copy, at the same cost as before.
 */
static void patch_add(const struct walk *w, const struct mp_block *block)
{
	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		if (w->cfg->edges[e].kind == MP_EDGE_FALL && w->copied[w->cfg->edges[e].to]) {
			w->sum->taken_after += w->counts->edge[e];
			w->sum->insns_after += w->counts->edge[e];
		}
}

static void way_add(const struct walk *w, uint32_t block, double before, double after)
{
	if (!w->ways)
		return;
	w->ways[block].before += before;
	w->ways[block].after += after;
}

static bool block_runs(const struct walk *w, uint32_t b)
{
	const struct mp_block *block = &w->cfg->blocks[b];
	bool runs = w->counts->block[b] > 0;

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges && !runs; e++)
		runs = w->counts->edge[e] > 0;
	return runs;
}

static void func_add(const struct walk *w, uint32_t f)
{
	const struct mp_func *func = &w->cfg->funcs[f];
	struct me_branches *sum = w->sum;

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		const struct mp_block *block = &w->cfg->blocks[b];
		double insns = w->counts->block[b] * block->nr_insns;
		double before = 0, after = 0, jumps_before = 0, jumps_after = 0, share;
		uint32_t fall = MP_NONE;

		if (!block_runs(w, b))
			continue;
		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
			if (w->cfg->edges[e].kind == MP_EDGE_FALL)
				fall = w->cfg->edges[e].to;
		block_add(w, block, fall, &before, &jumps_before);
		sum->taken_before += before;
		sum->insns_before += insns;
		sum->insns_after += insns;
		if (!w->copied[b]) {
			sum->taken_after += before;
			way_add(w, b, before, before);
			patch_add(w, block);
			continue;
		}
		sum->insns_moved += insns;
		block_add(w, block, w->next[b], &after, &jumps_after);
		share = w->share ? w->share[b] : 1;
		sum->taken_after += share * after;
		sum->insns_after += share * jumps_after - jumps_before;
		way_add(w, b, before, share * after);
	}
}

/* Functions that never ran add only zeros, and are most of a large program. */
static bool func_runs(const struct walk *w, uint32_t f)
{
	const struct mp_func *func = &w->cfg->funcs[f];
	const struct mp_block *last = &w->cfg->blocks[func->first_block + func->nr_blocks - 1];
	uint32_t b = func->first_block, e;

	if (!func->nr_blocks)
		return false;
	e = w->cfg->blocks[b].first_edge;
	while (b < func->first_block + func->nr_blocks && !(w->counts->block[b] > 0))
		b++;
	while (e < last->first_edge + last->nr_edges && !(w->counts->edge[e] > 0))
		e++;
	return b < func->first_block + func->nr_blocks || e < last->first_edge + last->nr_edges;
}

void me_branches_add(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t func,
		     const uint32_t *next, const uint8_t *copied, struct me_branches *sum)
{
	struct walk w = {cfg, counts, next, copied, NULL, sum, NULL};

	func_add(&w, func);
}

/* The block right behind entry @i of @plan; MP_NONE: none. */
static uint32_t plan_next(const struct me_plan *plan, uint32_t i)
{
	const struct me_plan_block *at = &plan->blocks[i];

	return i + 1 < plan->nr_blocks && at[1].zone == at->zone ? at[1].block : MP_NONE;
}

double me_way_count(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t from,
		    uint32_t to)
{
	const struct mp_block *block = &cfg->blocks[from];
	double sum = 0;

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		if (cfg->edges[e].to == to)
			sum += counts->edge[e];
	return sum;
}

/*
 * How a block's count divides among its copies: a clone gets the count that the copy before it
 * sends there. All copies of a block send the same share. The primary copy keeps the rest. A
 * primary copy that loses count also sends less to clones behind it, so this is a system of
 * equations. After the first rounds only long chains of clones behind cloned blocks are
 * inexact.
 */
#define SHARE_ROUNDS 16

/* @share is set for blocks of the plan alone; most of a large program is in no plan. */
static void shares_divide(const struct walk *w, const struct me_plan *plan, double *clone,
			  double *share)
{
	bool changed = true;

	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		share[plan->blocks[i].block] = 1;
	for (int round = 0; round < SHARE_ROUNDS && changed; round++) {
		changed = false;
		for (uint32_t i = 1; i < plan->nr_blocks; i++) {
			const struct me_plan_block *at = &plan->blocks[i];
			double count, before, now = 0;

			if (!at->clone)
				continue;
			count = w->counts->block[at->block];
			before = at[-1].clone ? clone[i - 1] : share[at[-1].block];
			if (count > 0)
				now = fmax(before, 0) *
				      me_way_count(w->cfg, w->counts, at[-1].block, at->block) /
				      count;
			changed |= now != clone[i];
			share[at->block] += clone[i] - now;
			clone[i] = now;
		}
	}
	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		if (!(share[plan->blocks[i].block] > 0))
			share[plan->blocks[i].block] = 0;
}

static void clone_add(const struct walk *w, const struct me_plan *plan, uint32_t i, double share)
{
	double taken = 0, jumps = 0;

	block_add(w, &w->cfg->blocks[plan->blocks[i].block], plan_next(plan, i), &taken, &jumps);
	w->sum->taken_after += share * taken;
	w->sum->insns_after += share * jumps;
	way_add(w, plan->blocks[i].block, 0, share * taken);
}

/* Return: 0, -EINVAL. */
static int plan_read(const struct mp_cfg *cfg, const struct me_plan *plan, uint32_t *next,
		     uint8_t *copied, uint8_t *wanted)
{
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		const struct me_plan_block *at = &plan->blocks[i];

		if (at->block >= cfg->nr_blocks)
			return -EINVAL;
		if (at->clone)
			continue;
		copied[at->block] = 1;
		next[at->block] = plan_next(plan, i);
		if (cfg->blocks[at->block].func != MP_NONE)
			wanted[cfg->blocks[at->block].func] = 1;
	}
	return 0;
}

/* Results of a plan's counting: in @sum, or, if that is NULL, in @each per function; and in
 * @ways per block. */
struct tally {
	struct me_branches *sum, *each;
	struct way *ways;
};

/* Return: 0, -ENOMEM, -EINVAL. */
static int plan_count(const struct mp_cfg *cfg, const struct mp_counts *counts,
		      const struct me_plan *plan, const uint8_t *funcs, const struct tally *tally)
{
	uint8_t *wanted = calloc((size_t)cfg->nr_funcs + 1, 1);
	uint8_t *copied = calloc((size_t)cfg->nr_blocks + 1, 1);
	uint32_t *next = malloc(((size_t)cfg->nr_blocks + 1) * sizeof(*next));
	double *share = malloc(((size_t)cfg->nr_blocks + 1) * sizeof(*share));
	double *clone = calloc((size_t)plan->nr_blocks + 1, sizeof(*clone));
	struct walk w = {cfg, counts, next, copied, share, NULL, tally->ways};
	int ret = -ENOMEM;

	if (!wanted || !copied || !next || !share || !clone)
		goto out;
	ret = plan_read(cfg, plan, next, copied, wanted);
	if (ret)
		goto out;
	if (funcs)
		memcpy(wanted, funcs, cfg->nr_funcs);
	shares_divide(&w, plan, clone, share);
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		w.sum = tally->sum ? tally->sum : &tally->each[f];
		if (wanted[f] && func_runs(&w, f))
			func_add(&w, f);
	}
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		uint32_t f = cfg->blocks[plan->blocks[i].block].func;

		if (!plan->blocks[i].clone || f == MP_NONE || !wanted[f])
			continue;
		w.sum = tally->sum ? tally->sum : &tally->each[f];
		clone_add(&w, plan, i, clone[i]);
	}
out:
	free(wanted);
	free(copied);
	free(next);
	free(share);
	free(clone);
	return ret;
}

int me_branches_count(const struct mp_cfg *cfg, const struct mp_counts *counts,
		      const struct me_plan *plan, const uint8_t *funcs, struct me_branches *out)
{
	*out = (struct me_branches){0};
	return plan_count(cfg, counts, plan, funcs, &(struct tally){.sum = out});
}

int me_layout_savings(const struct mp_cfg *cfg, const struct mp_counts *counts,
		      const struct me_plan *plan, double *saved)
{
	struct me_branches *each = calloc((size_t)cfg->nr_funcs + 1, sizeof(*each));
	struct mp_counts doubted;
	int ret = mp_counts_add_doubt(cfg, counts, MP_DOUBT_FITTED, &doubted);

	if (!ret && !each)
		ret = -ENOMEM;
	if (!ret)
		ret = plan_count(cfg, &doubted, plan, NULL, &(struct tally){.each = each});
	for (uint32_t f = 0; f < cfg->nr_funcs && !ret; f++)
		saved[f] = each[f].taken_before - each[f].taken_after;
	free(doubted.edge);
	free(each);
	return ret;
}

/* Arrivals by pointers at functions that @plan copies: each runs the jump over the old start. */
static double plan_arrivals(const struct mp_cfg *cfg, const struct me_plan *plan,
			    const double *arrivals)
{
	double sum = 0;

	for (uint32_t i = 0; arrivals && i < plan->nr_blocks; i++) {
		const struct mp_block *block = &cfg->blocks[plan->blocks[i].block];

		if (block->flags & MP_BLOCK_ENTRY && block->func != MP_NONE &&
		    !plan->blocks[i].clone && !plan->blocks[i].stub)
			sum += arrivals[block->func];
	}
	return sum;
}

/*
 * Error of the ratio. Functions, and blocks in them, take longer or shorter than their
 * instructions suggest, so their counts are wrong by a factor. These are standard deviations of
 * its logarithm, for perl and cc1 against exact counts: functions 0.56 and 0.55; blocks from
 * 0.5 (many instructions) to 1.2 (two).
 */
#define FUNC_DEVIATION	0.56
#define BLOCK_DEVIATION 0.8
/* Doubting the counts changes the ratio; that change may be wrong by this share of it (a
 * guess). */
#define DOUBT_DEVIATION 0.3
#define NINE_OF_TEN	1.645

static double ratio_deviation(const struct mp_cfg *cfg, const struct me_branches *each,
			      const struct way *ways, double ratio, double before)
{
	double funcs = 0, blocks = 0;

	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		double off = each[f].taken_after - ratio * each[f].taken_before;

		funcs += off * off;
	}
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		double off = ways[b].after - ratio * ways[b].before;

		blocks += off * off;
	}
	return sqrt(funcs * FUNC_DEVIATION * FUNC_DEVIATION +
		    blocks * BLOCK_DEVIATION * BLOCK_DEVIATION) /
	       before;
}

/* The ratio by doubted counts, and its interval. */
static int ratio_expect(const struct mp_cfg *cfg, const struct mp_counts *counts,
			const struct me_plan *plan, const uint8_t *every, double led_on,
			struct me_prediction *out)
{
	struct me_branches *each = calloc((size_t)cfg->nr_funcs + 1, sizeof(*each));
	struct way *ways = calloc((size_t)cfg->nr_blocks + 1, sizeof(*ways));
	struct mp_counts doubted = {0};
	double before = 0, after = led_on;
	int ret = each && ways ? mp_counts_add_doubt(cfg, counts, MP_DOUBT_FITTED, &doubted)
			       : -ENOMEM;

	if (!ret)
		ret = plan_count(cfg, &doubted, plan, every,
				 &(struct tally){.each = each, .ways = ways});
	for (uint32_t f = 0; f < cfg->nr_funcs && !ret; f++) {
		before += each[f].taken_before;
		after += each[f].taken_after;
	}
	if (!ret && before > 0) {
		double off = 0;

		out->ratio = after / before;
		if (!counts->exact)
			off = NINE_OF_TEN *
			      hypot(ratio_deviation(cfg, each, ways, out->ratio, before),
				    DOUBT_DEVIATION *
					    (out->ratio - out->taken_after / out->taken_before));
		out->least = fmax(0, out->ratio - off);
		out->most = out->ratio + off;
	}
	free(doubted.edge);
	free(ways);
	free(each);
	return ret;
}

int me_layout_predict(const struct mp_cfg *cfg, const struct mp_counts *counts,
		      const struct me_plan *plan, const double *arrivals, struct me_prediction *out,
		      struct mp_err *err)
{
	uint8_t *every = malloc((size_t)cfg->nr_funcs + 1);
	double led_on;
	struct me_branches all;
	int ret = every ? 0 : -ENOMEM;

	*out = (struct me_prediction){.ratio = 1, .least = 1, .most = 1};
	if (!ret) {
		memset(every, 1, cfg->nr_funcs);
		ret = me_branches_count(cfg, counts, plan, every, &all);
	}
	if (!ret) {
		led_on = plan_arrivals(cfg, plan, arrivals);
		out->taken_before = all.taken_before;
		out->taken_after = all.taken_after + led_on;
	}
	if (!ret && all.taken_before > 0)
		ret = ratio_expect(cfg, counts, plan, every, led_on, out);
	free(every);
	if (ret)
		return mp_err_set(err, -ret, "prediction: %s",
				  ret == -ENOMEM ? "out of memory" : "the plan names no block");
	return 0;
}
