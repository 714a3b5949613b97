// SPDX-License-Identifier: Apache-2.0
/*
 * agreement - computes the measures; see agreement.h. The caller decides how counts are
 * estimated. Called by tests/tools/accuracy.
 */
#include "tests/support/agreement.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

struct pair {
	double estimate, exact;
};

/* Sums of two distributions, from which shares follow. */
struct sums {
	double estimate, exact;
};

static void sums_add(struct sums *s, struct pair p)
{
	s->estimate += p.estimate;
	s->exact += p.exact;
}

static double shared(const struct sums *s, struct pair p)
{
	if (!(s->estimate > 0) || !(s->exact > 0))
		return 0;
	return fmin(p.estimate / s->estimate, p.exact / s->exact);
}

/* Counts of both ways of a conditional branch. One way may leave the function. */
struct ways {
	struct pair fall, taken;
};

static bool block_is_branch(const struct mp_block *block)
{
	return block->term == MP_TERM_COND && block->nr_edges;
}

static struct ways block_ways(const struct mp_cfg *cfg, const struct mp_counts *estimate,
			      const struct mp_counts *exact, uint32_t b)
{
	const struct mp_block *block = &cfg->blocks[b];
	struct ways w = {0};

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++) {
		struct pair *p = cfg->edges[e].kind == MP_EDGE_FALL ? &w.fall : &w.taken;

		p->estimate += estimate->edge[e];
		p->exact += exact->edge[e];
	}
	if (block->nr_edges == 1) {
		bool falls = cfg->edges[block->first_edge].kind == MP_EDGE_FALL;
		struct pair *here = falls ? &w.fall : &w.taken, *out = falls ? &w.taken : &w.fall;

		out->estimate = fmax(0, estimate->block[b] - here->estimate);
		out->exact = fmax(0, exact->block[b] - here->exact);
	}
	return w;
}

static double taken_share(double fall, double taken)
{
	return fall + taken > 0 ? taken / (fall + taken) : 0.5;
}

static void func_blocks(const struct mp_func *func, const struct mp_counts *estimate,
			const struct mp_counts *exact, const struct sums *all,
			struct agreement *out, double *inside_weight)
{
	struct sums own = {0};
	double inside = 0;
	uint32_t end = func->first_block + func->nr_blocks;

	for (uint32_t b = func->first_block; b < end; b++)
		sums_add(&own, (struct pair){estimate->block[b], exact->block[b]});
	for (uint32_t b = func->first_block; b < end; b++) {
		struct pair p = {estimate->block[b], exact->block[b]};

		out->blocks += shared(all, p);
		inside += shared(&own, p);
	}
	/* Functions without samples only count in @blocks. */
	if (own.estimate > 0 && own.exact > 0) {
		out->inside += own.exact * inside;
		*inside_weight += own.exact;
	}
}

static int hotter(const void *a, const void *b, void *arg)
{
	const double *count = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (count[x] != count[y])
		return count[x] > count[y] ? -1 : 1;
	return (x > y) - (x < y);
}

/* @blocks: numbers of @nr blocks of the functions in question. */
static double hot_matched(const struct mp_counts *estimate, const struct mp_counts *exact,
			  double all, uint32_t *blocks, uint32_t nr)
{
	double hot = 0, found = 0;
	uint32_t nr_hot = 0;

	for (uint32_t i = 0; i < nr; i++) {
		if (!(exact->block[blocks[i]] >= AGREEMENT_HOT * all))
			continue;
		hot += exact->block[blocks[i]];
		nr_hot++;
	}
	qsort_r(blocks, nr, sizeof(*blocks), hotter, estimate->block);
	for (uint32_t i = 0; i < nr_hot; i++)
		if (estimate->block[blocks[i]] > 0 &&
		    exact->block[blocks[i]] >= AGREEMENT_HOT * all)
			found += exact->block[blocks[i]];
	return hot > 0 ? found / hot : 0;
}

int agreement_measure(const struct mp_cfg *cfg, const struct mp_counts *estimate,
		      const struct mp_counts *exact, const uint8_t *funcs, struct agreement *out)
{
	uint32_t *blocks = malloc(((size_t)cfg->nr_blocks + 1) * sizeof(*blocks));
	struct sums all = {0}, branches = {0};
	double inside_weight = 0;
	uint32_t nr = 0;

	*out = (struct agreement){0};
	if (!blocks)
		return -ENOMEM;
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		struct ways w;

		if (cfg->blocks[b].func == MP_NONE || !funcs[cfg->blocks[b].func])
			continue;
		blocks[nr++] = b;
		sums_add(&all, (struct pair){estimate->block[b], exact->block[b]});
		if (!block_is_branch(&cfg->blocks[b]))
			continue;
		w = block_ways(cfg, estimate, exact, b);
		sums_add(&branches, w.fall);
		sums_add(&branches, w.taken);
		out->relative += (w.fall.exact + w.taken.exact) *
				 (1 - fabs(taken_share(w.fall.estimate, w.taken.estimate) -
					   taken_share(w.fall.exact, w.taken.exact)));
	}
	for (uint32_t i = 0; i < nr; i++) {
		struct ways w;

		if (!block_is_branch(&cfg->blocks[blocks[i]]))
			continue;
		w = block_ways(cfg, estimate, exact, blocks[i]);
		out->absolute += shared(&branches, w.fall) + shared(&branches, w.taken);
	}
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		if (funcs[f])
			func_blocks(&cfg->funcs[f], estimate, exact, &all, out, &inside_weight);
	out->relative = branches.exact > 0 ? out->relative / branches.exact : 0;
	out->inside = inside_weight > 0 ? out->inside / inside_weight : 0;
	out->hot = hot_matched(estimate, exact, all.exact, blocks, nr);
	free(blocks);
	return 0;
}
