// SPDX-License-Identifier: Apache-2.0
/* worth - savings of a layout, their effect on time, and the expected gain; see worth.h. */
#include "daemon/machine/worth.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/machine/worth_prior.h"
#include "libprof/base/grow.h"
#include "libprof/infer/counts_doubt.h"

/* ---- what a layout saves -------------------------------------------------------------------- */

/* An edge that may become a fall-through. */
struct way {
	double count;
	uint32_t from, to;
};

struct chains {
	uint32_t *next;	    /* per block of the cfg: the block behind it; MP_NONE */
	uint32_t *previous; /* MP_NONE: begins a chain */
	uint32_t *leader;   /* union-find: blocks of one chain have the same */
	struct way *ways;
	size_t max_ways;
};

static void chains_fini(struct chains *c)
{
	free(c->next);
	free(c->previous);
	free(c->leader);
	free(c->ways);
}

static int chains_init(struct chains *c, const struct mp_cfg *cfg)
{
	size_t nr = (size_t)cfg->nr_blocks + 1;

	*c = (struct chains){.next = malloc(nr * sizeof(*c->next)),
			     .previous = malloc(nr * sizeof(*c->previous)),
			     .leader = malloc(nr * sizeof(*c->leader))};
	if (!c->next || !c->previous || !c->leader)
		return -ENOMEM;
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		c->next[b] = c->previous[b] = MP_NONE;
		c->leader[b] = b;
	}
	return 0;
}

static uint32_t leader(struct chains *c, uint32_t block)
{
	while (c->leader[block] != block)
		block = c->leader[block] = c->leader[c->leader[block]];
	return block;
}

/* Only for these ends of a block do taken branches depend on which block lies behind it. */
static bool depends_on_layout(const struct mp_block *block)
{
	return block->term == MP_TERM_COND || block->term == MP_TERM_JUMP ||
	       block->term == MP_TERM_FALL;
}

static int compare_ways(const void *a, const void *b)
{
	const struct way *x = a, *y = b;

	if (x->count < y->count || x->count > y->count)
		return x->count < y->count ? 1 : -1;
	return x->from != y->from ? (x->from > y->from) - (x->from < y->from)
				  : (x->to > y->to) - (x->to < y->to);
}

static int collect_ways(struct chains *c, const struct mp_cfg *cfg, const struct mp_func *func,
			const double *edge, size_t *nr)
{
	*nr = 0;
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++) {
			if (!depends_on_layout(block) || !(edge[e] > 0))
				continue;
			if (mp_push(c->ways, *nr, c->max_ways,
				    (struct way){edge[e], b, cfg->edges[e].to}))
				return -ENOMEM;
		}
	}
	return 0;
}

/* The most frequent edges become fall-throughs, as far as they do not exclude each other. */
static int chain_blocks(struct chains *c, const struct mp_cfg *cfg, const struct mp_func *func,
			const double *edge)
{
	size_t nr;
	int r = collect_ways(c, cfg, func, edge, &nr);

	if (r)
		return r;
	if (nr)
		qsort(c->ways, nr, sizeof(*c->ways), compare_ways);
	for (size_t i = 0; i < nr; i++) {
		const struct way *w = &c->ways[i];

		if (c->next[w->from] != MP_NONE || c->previous[w->to] != MP_NONE ||
		    (cfg->blocks[w->to].flags & MP_BLOCK_ENTRY) ||
		    leader(c, w->from) == leader(c, w->to))
			continue;
		c->next[w->from] = w->to;
		c->previous[w->to] = w->from;
		c->leader[leader(c, w->to)] = leader(c, w->from);
	}
	return 0;
}

/* Taken branches at @block's end, if @behind is the block behind it. */
static double taken_at(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t b,
		       uint32_t behind)
{
	const struct mp_block *block = &cfg->blocks[b];
	double through = 0, sum = 0;

	if (!depends_on_layout(block))
		return 0;
	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++) {
		sum += counts->edge[e];
		if (cfg->edges[e].to == behind)
			through += counts->edge[e];
	}
	/* The other way leaves the function by a branch, in any layout. */
	if (block->term == MP_TERM_COND && block->nr_edges < 2 && counts->block[b] > sum)
		sum = counts->block[b];
	return sum - through;
}

struct sums {
	double insns, insns_movable, before, after;
	double left_alone[MP_NR_PROBLEMS];
};

static void add_function(const struct mp_cfg *cfg, const struct mp_counts *counts,
			 const struct chains *c, const struct mp_func *func, struct sums *sums)
{
	bool moves = func->problem == MP_PROBLEM_NONE;
	double before = 0, after = 0, insns = 0;

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		insns += counts->block[b] * cfg->blocks[b].nr_insns;
		before += taken_at(cfg, counts, b, mp_cfg_falls_to(cfg, b));
		after += taken_at(cfg, counts, b, c->next[b]);
	}
	sums->insns += insns;
	sums->before += before;
	/* A layout may always leave a function's order as it is. */
	sums->after += moves && after < before ? after : before;
	sums->insns_movable += moves ? insns : 0;
	if (func->problem < MP_NR_PROBLEMS)
		sums->left_alone[func->problem] += insns;
}

int md_saving_compute(const struct mp_cfg *cfg, const struct mp_counts *counts,
		      const struct mp_profile *profile, struct md_saving *out)
{
	struct sums sums = {0};
	struct mp_counts doubted = {0};
	struct chains chains;
	int r = chains_init(&chains, cfg);

	*out = (struct md_saving){.nr_samples = profile ? profile->nr_samples : 0};
	if (!r)
		r = mp_counts_add_doubt(cfg, counts, MP_DOUBT_FITTED, &doubted);
	for (uint32_t f = 0; f < cfg->nr_funcs && !r; f++) {
		/* The layout follows the counts themselves; only the prediction doubts them. */
		r = chain_blocks(&chains, cfg, &cfg->funcs[f], counts->edge);
		if (!r)
			add_function(cfg, &doubted, &chains, &cfg->funcs[f], &sums);
	}
	if (!r && sums.insns > 0) {
		out->movable = sums.insns_movable / sums.insns;
		out->taken = 1000 * sums.before / sums.insns;
		out->saved = 1000 * (sums.before - sums.after) / sums.insns;
		for (int i = 1; i < MP_NR_PROBLEMS; i++)
			out->left_alone[i] = sums.left_alone[i] / sums.insns;
	}
	free(doubted.edge);
	chains_fini(&chains);
	return r;
}

/* ---- what that is worth in time --------------------------------------------------------------- */

struct line {
	double xx, xy, yy;
	size_t nr;
};

static void line_add(struct line *line, double x, double y)
{
	line->xx += x * x;
	line->xy += x * y;
	line->yy += y * y;
	line->nr++;
}

/* Sum of the squared distances from the line with this slope. */
static double distances(const struct line *line, double slope)
{
	double sum = line->yy - 2 * slope * line->xy + slope * slope * line->xx;

	return sum > 0 ? sum : 0;
}

void md_effect_fit(const struct md_effect_point *here, size_t nr, struct md_effect *out)
{
	struct line prior = {0}, own = {0};
	double slope, precision, spread2;

	for (size_t i = 0; i < MD_NR_WORTH_PRIOR; i++)
		line_add(&prior, md_worth_prior[i].saved, md_worth_prior[i].gain);
	for (size_t i = 0; i < nr; i++)
		if (isfinite(here[i].saved) && isfinite(here[i].gain))
			line_add(&own, here[i].saved, here[i].gain);
	slope = prior.xy / prior.xx;
	spread2 = distances(&prior, slope) / (double)(prior.nr - 1);
	/* The spread of this machine's own audits joins the prior's by their numbers. */
	if (own.nr > 1)
		spread2 = (spread2 * (double)(prior.nr - 1) +
			   distances(&own, own.xx > 0 ? own.xy / own.xx : slope)) /
			  (double)(prior.nr + own.nr - 2);
	precision = 1 / (slope * slope) + own.xx / spread2;
	out->slope = (1 / slope + own.xy / spread2) / precision;
	out->slope_sd = sqrt(1 / precision);
	out->spread = sqrt(spread2);
	out->nr_here = own.nr;
}

/* Half of an interval that holds nine of ten values of a normal distribution. */
#define NINE_OF_TEN 1.6449

struct md_worth md_worth_compute(const struct md_saving *saving, const struct md_effect *effect,
				 double share)
{
	double saved_sd = MD_WORTH_PREDICTED_SD / 100 * saving->taken * saving->movable;
	double a = effect->slope_sd * saving->saved, b = effect->slope * saved_sd;
	double c = saving->movable > 0 ? effect->spread * saving->movable : 0;
	double half = NINE_OF_TEN * sqrt(a * a + b * b + c * c) * share;
	double gain = effect->slope * saving->saved * share;

	return (struct md_worth){gain, gain - half, gain + half};
}
