// SPDX-License-Identifier: Apache-2.0
/*
 * sequential - a test of paired differences that stays valid however often one looks at it.
 *
 * The method and its promise stand in sequential.h. Here: the bets, their capital, and the
 * search for the effects that the bets do not reject.
 */
#include "editor/sequential.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Stakes per spread. The last one bets on the sign alone. */
static const double seq_boldness[ME_SEQ_NR_GAMBLERS] = {0.1, 0.2, 0.4, 0.8, 1.6, 16};

/* Nobody stakes everything: one wrong sign would ruin him for good. */
#define SEQ_STAKE_MAX 0.99
/* Until the spread can be judged: run times commonly scatter by a per cent. */
#define SEQ_SCALE_FIRST 0.01
#define SEQ_NR_FIRST	4
/* Clocks count in microseconds or worse; a spread of exactly 0 would divide by zero. */
#define SEQ_SCALE_MIN 1e-7
/* Effects beyond a factor of e^20 are not told apart. */
#define SEQ_EFFECT_MAX 20.0

void me_seq_init(struct me_seq *seq, double alpha)
{
	memset(seq, 0, sizeof(*seq));
	seq->alpha = alpha;
}

void me_seq_fini(struct me_seq *seq)
{
	free(seq->d);
	free(seq->scale);
	free(seq->sorted);
	memset(seq, 0, sizeof(*seq));
}

static int seq_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double seq_median(const double *sorted, size_t nr)
{
	return nr % 2 ? sorted[nr / 2] : (sorted[nr / 2 - 1] + sorted[nr / 2]) / 2;
}

/*
 * The spread of the pairs seen so far. Only those: a stake may depend on the past but not on the
 * pair it is laid on. Half the distance between the quartiles, so that a few outliers do not
 * make everybody timid; 0.6745 turns it into a standard deviation if the noise is Gaussian.
 */
static double seq_spread(const struct me_seq *seq)
{
	double q1, q3;

	if (seq->nr < SEQ_NR_FIRST)
		return SEQ_SCALE_FIRST;
	q1 = seq->sorted[seq->nr / 4];
	q3 = seq->sorted[seq->nr - 1 - seq->nr / 4];
	return fmax((q3 - q1) / 2 / 0.6745, SEQ_SCALE_MIN);
}

/* log of the factor by which a gambler's capital grows who bets that @d lies above @effect. */
static double seq_growth(int gambler, double d, double scale, double effect)
{
	return log1p(SEQ_STAKE_MAX * tanh(seq_boldness[gambler] * (d - effect) / scale));
}

/* log of the capital of all gamblers together; each began with an equal share of 1. */
static double seq_capital(const double *logs)
{
	double max = logs[0], sum = 0;
	int g;

	for (g = 1; g < ME_SEQ_NR_GAMBLERS; g++)
		max = fmax(max, logs[g]);
	for (g = 0; g < ME_SEQ_NR_GAMBLERS; g++)
		sum += exp(logs[g] - max);
	return max + log(sum / ME_SEQ_NR_GAMBLERS);
}

/*
 * What the capital must reach: two directions share the permitted error, and half of it is kept
 * in reserve. Against signs alone the inequality is nearly tight; without the reserve a
 * simulation of the promise would see it broken by chance every other time.
 */
static double seq_threshold(const struct me_seq *seq)
{
	return log(4 / seq->alpha);
}

static int seq_reserve(struct me_seq *seq)
{
	size_t nr_alloc = seq->nr_alloc ? 2 * seq->nr_alloc : 64;
	double **arrays[] = {&seq->d, &seq->scale, &seq->sorted};
	size_t i;

	if (seq->nr < seq->nr_alloc)
		return 0;
	for (i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
		double *grown = realloc(*arrays[i], nr_alloc * sizeof(double));

		if (!grown)
			return -ENOMEM;
		*arrays[i] = grown;
	}
	seq->nr_alloc = nr_alloc;
	return 0;
}

static void seq_insert(struct me_seq *seq, double d)
{
	size_t i = seq->nr;

	while (i > 0 && seq->sorted[i - 1] > d) {
		seq->sorted[i] = seq->sorted[i - 1];
		i--;
	}
	seq->sorted[i] = d;
}

int me_seq_add(struct me_seq *seq, double d)
{
	double scale;
	int err, g;

	if (!isfinite(d))
		return -EINVAL;
	err = seq_reserve(seq);
	if (err)
		return err;
	scale = seq_spread(seq);
	seq_insert(seq, d);
	seq->d[seq->nr] = d;
	seq->scale[seq->nr] = scale;
	seq->nr++;
	for (g = 0; g < ME_SEQ_NR_GAMBLERS; g++) {
		seq->up[g] += seq_growth(g, d, scale, 0);
		seq->down[g] += seq_growth(g, -d, scale, 0);
	}
	if (seq->verdict != ME_SEQ_UNDECIDED)
		return 0;
	if (seq_capital(seq->up) >= seq_threshold(seq))
		seq->verdict = ME_SEQ_POSITIVE;
	else if (seq_capital(seq->down) >= seq_threshold(seq))
		seq->verdict = ME_SEQ_NEGATIVE;
	if (seq->verdict != ME_SEQ_UNDECIDED)
		seq->decided_at = seq->nr;
	return 0;
}

/* Did the bet "the effect lies above @effect" (@sign 1; -1: below it) ever win? */
static bool seq_rejects(const struct me_seq *seq, double effect, int sign)
{
	double logs[ME_SEQ_NR_GAMBLERS] = {0};
	size_t i;
	int g;

	for (i = 0; i < seq->nr; i++) {
		for (g = 0; g < ME_SEQ_NR_GAMBLERS; g++)
			logs[g] += seq_growth(g, sign * seq->d[i], seq->scale[i], sign * effect);
		if (seq_capital(logs) >= seq_threshold(seq))
			return true;
	}
	return false;
}

/* The last effect, seen from below (@sign 1) or above (-1), that is rejected. Each gambler's
 * gain is monotonic in the effect he bets against, so bisection finds it. */
static double seq_bound(const struct me_seq *seq, int sign)
{
	double rejected = -SEQ_EFFECT_MAX, kept = SEQ_EFFECT_MAX;
	int i;

	if (!seq_rejects(seq, sign * rejected, sign))
		return sign * -INFINITY;
	for (i = 0; i < 50; i++) {
		double mid = (rejected + kept) / 2;

		if (seq_rejects(seq, sign * mid, sign))
			rejected = mid;
		else
			kept = mid;
	}
	return sign * rejected;
}

void me_seq_interval(const struct me_seq *seq, double *lo, double *hi)
{
	*lo = seq_bound(seq, 1);
	*hi = seq_bound(seq, -1);
}

bool me_seq_holds(const struct me_seq *seq, double effect)
{
	return !seq_rejects(seq, effect, 1) && !seq_rejects(seq, effect, -1);
}

double me_seq_estimate(const struct me_seq *seq)
{
	size_t i, j, k = 0, nr = seq->nr * (seq->nr + 1) / 2;
	double *means, median;

	if (!seq->nr)
		return 0;
	/* Thousands of pairs: the plain median is near enough, and needs no space. */
	means = seq->nr <= 2000 ? malloc(nr * sizeof(*means)) : NULL;
	if (!means)
		return seq_median(seq->sorted, seq->nr);
	for (i = 0; i < seq->nr; i++)
		for (j = i; j < seq->nr; j++)
			means[k++] = (seq->d[i] + seq->d[j]) / 2;
	qsort(means, nr, sizeof(*means), seq_compare);
	median = seq_median(means, nr);
	free(means);
	return median;
}
