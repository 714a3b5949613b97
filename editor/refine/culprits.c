// SPDX-License-Identifier: Apache-2.0
/* culprits - tests each function's samples; see culprits.h for the method. */
#include "editor/refine/culprits.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "editor/refine/student.h"

/* The runs of one version. */
struct side {
	double nr, mean, sum_squares; /* of the differences from the mean */
};

static double count_of(const struct me_samples *s, size_t run, size_t func)
{
	double sum = 0;

	if (func < s->nr_funcs)
		return (double)s->counts[run * s->nr_funcs + func];
	for (size_t f = 0; f < s->nr_funcs; f++)
		sum += (double)s->counts[run * s->nr_funcs + f];
	return sum;
}

/* @func nr_funcs: whole runs. */
static struct side side_of(const struct me_samples *s, bool changed, size_t func)
{
	struct side side = {0};

	for (size_t run = 0; run < s->nr_runs; run++)
		if (s->changed[run] == changed) {
			side.nr++;
			side.mean += count_of(s, run, func);
		}
	side.mean /= side.nr > 0 ? side.nr : 1;
	for (size_t run = 0; run < s->nr_runs; run++)
		if (s->changed[run] == changed) {
			double d = count_of(s, run, func) - side.mean;

			side.sum_squares += d * d;
		}
	return side;
}

/* Variance of runs beyond sampling, in units of the squared mean; below 0 by chance. */
static double excess(const struct side *a, const struct side *b)
{
	const struct side *sides[] = {a, b};
	double sum = 0, df = 0;

	for (int i = 0; i < 2; i++) {
		double m = sides[i]->mean;

		if (m <= 0 || sides[i]->nr < 2)
			continue;
		sum += (sides[i]->sum_squares - (sides[i]->nr - 1) * m) / (m * m);
		df += sides[i]->nr - 1;
	}
	return df > 0 ? sum / df : 0;
}

struct tested {
	struct side a, b;
	double phi;
};

static bool is_tested(const struct tested *t)
{
	return t->a.nr * t->a.mean + t->b.nr * t->b.mean >= ME_CULPRIT_LEAST_SAMPLES;
}

/* Functions with many samples say most about what runs have in common. */
static double pooled_excess(const struct tested *tested, size_t nr)
{
	double sum = 0, weights = 0;

	for (size_t f = 0; f < nr; f++)
		if (is_tested(&tested[f])) {
			double weight = tested[f].a.mean + tested[f].b.mean;

			sum += weight * tested[f].phi;
			weights += weight;
		}
	return weights > 0 ? sum / weights : 0;
}

static struct me_culprit test(const struct tested *t, uint32_t func, double phi_common,
			      double whole)
{
	/* Half a sample more, so that a function may have none in one version. */
	double before = t->a.nr * t->a.mean + 0.5, after = t->b.nr * t->b.mean + 0.5;
	double phi = fmax(fmax(phi_common, t->phi), 0);
	double ratio = log(after / t->b.nr) - log(before / t->a.nr);
	double sd = sqrt(1 / before + 1 / after + phi * (1 / t->a.nr + 1 / t->b.nr));

	return (struct me_culprit){
		.func = func,
		.before = (uint64_t)(t->a.nr * t->a.mean + 0.5),
		.after = (uint64_t)(t->b.nr * t->b.mean + 0.5),
		.factor = exp(ratio),
		.p = me_student_tail(ratio / sd, t->a.nr + t->b.nr - 2),
		.harm = whole > 0 ? (t->b.mean - t->a.mean) / whole : 0,
	};
}

static int compare_p(const void *x, const void *y)
{
	const struct me_culprit *a = x, *b = y;

	if (a->p < b->p || a->p > b->p)
		return a->p < b->p ? -1 : 1;
	return (a->func > b->func) - (a->func < b->func);
}

static int compare_harm(const void *x, const void *y)
{
	const struct me_culprit *a = x, *b = y;

	if (a->harm < b->harm || a->harm > b->harm)
		return a->harm > b->harm ? -1 : 1;
	return compare_p(x, y);
}

/* Corrects all for their number, and keeps those that rose. Return: their number. */
static size_t keep_significant(struct me_culprit *all, size_t nr, double alpha)
{
	double highest = 0;
	size_t kept = 0;

	if (nr)
		qsort(all, nr, sizeof(*all), compare_p);
	for (size_t i = 0; i < nr; i++) {
		highest = fmax(highest, fmin(1, all[i].p * (double)(nr - i)));
		all[i].p = highest;
		if (highest <= alpha && all[i].harm >= ME_CULPRIT_LEAST_HARM)
			all[kept++] = all[i];
	}
	if (kept)
		qsort(all, kept, sizeof(*all), compare_harm);
	return kept;
}

int me_culprits_find(const struct me_samples *s, double alpha, struct me_culprit **out, size_t *nr)
{
	struct side a = side_of(s, false, s->nr_funcs), b = side_of(s, true, s->nr_funcs);
	struct tested *tested = calloc(s->nr_funcs + 1, sizeof(*tested));
	struct me_culprit *all = calloc(s->nr_funcs + 1, sizeof(*all));
	double phi_common;
	size_t n = 0;

	*out = NULL;
	*nr = 0;
	if (!tested || !all || a.nr < ME_CULPRIT_LEAST_RUNS || b.nr < ME_CULPRIT_LEAST_RUNS) {
		free(tested);
		free(all);
		return tested && all ? -EINVAL : -ENOMEM;
	}
	for (size_t f = 0; f < s->nr_funcs; f++) {
		tested[f].a = side_of(s, false, f);
		tested[f].b = side_of(s, true, f);
		tested[f].phi = excess(&tested[f].a, &tested[f].b);
	}
	phi_common = fmax(excess(&a, &b), pooled_excess(tested, s->nr_funcs));
	for (size_t f = 0; f < s->nr_funcs; f++)
		if (is_tested(&tested[f]))
			all[n++] = test(&tested[f], (uint32_t)f, phi_common, a.mean);
	*nr = keep_significant(all, n, alpha);
	*out = all;
	free(tested);
	return 0;
}
