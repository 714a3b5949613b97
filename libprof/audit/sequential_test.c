// SPDX-License-Identifier: Apache-2.0
/*
 * sequential_test - a test of paired differences that is valid at every look. sequential_test.h
 * explains the method. Here are the bets, their capital, and the search for the effects that no
 * bet rejects.
 */
#include "libprof/audit/sequential_test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"
#include "libprof/base/search.h"

struct seq_gambler {
	double share;	  /* of the initial capital */
	double effect;	  /* effect for its stake, in spreads; INFINITY: sign only */
	double stake_max; /* share of the gambler's capital */
};

/*
 * The gamblers for runs. A share of 0.78 lets eight pairs of one sign decide at alpha = 0.01:
 * 0.78 * 1.9995^8 = 199.3, and the three others add the rest of the 200.
 * The effects of the three others were chosen by simulation: see results.md, "The audit's
 * power". Their limits keep one wrong sign from taking all that they have.
 *
 * Those for everyday use expect effects from an eighth of the spread, which a thousand pairs can
 * show, to more than all of it. The sign alone is no good bet there: see results.md, "Trials by
 * everyday use".
 *
 * The spread of a pair's difference is assumed before the first pair, and weighs as much as two
 * pairs.
 */
static const struct seq_kind {
	struct seq_gambler gamblers[MP_SEQ_NR_GAMBLERS];
	double spread_first;
} seq_kinds[] = {
	[MP_SEQ_RUNS] = {{{0.78, INFINITY, 0.9995},
			  {0.09, 0.35, 0.9},
			  {0.08, 0.8, 0.95},
			  {0.05, 1.6, 0.95}},
			 0.03},
	[MP_SEQ_EVERYDAY] =
		{{{0.3, 0.12, 0.9}, {0.35, 0.3, 0.9}, {0.2, 0.8, 0.95}, {0.15, 1.6, 0.95}}, 0.1},
};

#define SEQ_NR_FIRST 2
/* From this number of pairs on, the quartiles estimate the spread better than the range. */
#define SEQ_NR_QUARTILES 4
/* Clocks count in microseconds or worse; a spread of exactly 0 would divide by zero. */
#define SEQ_SPREAD_MIN 1e-7
/* Stakes of the estimate from uneven differences: those of the gambler in the middle. */
#define SEQ_BALANCE 0.8
/* The search for effects ends at a factor of e^20. */
#define SEQ_EFFECT_MAX 20.0

void mp_seq_init(struct mp_seq *seq, double alpha)
{
	mp_seq_init_kind(seq, MP_SEQ_RUNS, alpha);
}

void mp_seq_init_kind(struct mp_seq *seq, enum mp_seq_kind kind, double alpha)
{
	memset(seq, 0, sizeof(*seq));
	seq->kind = kind;
	seq->alpha = alpha;
	for (int g = 0; g < MP_SEQ_NR_GAMBLERS; g++)
		seq->up[g] = seq->down[g] = 1;
}

void mp_seq_fini(struct mp_seq *seq)
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

/* Estimate of the standard deviation by the pairs so far, for Gaussian noise. */
static double seq_spread_seen(const struct mp_seq *seq)
{
	/* expected range of two and of three values, in standard deviations */
	static const double range[SEQ_NR_QUARTILES] = {[2] = 1.128, [3] = 1.693};
	size_t nr = seq->nr;

	if (nr < SEQ_NR_QUARTILES)
		return (seq->sorted[nr - 1] - seq->sorted[0]) / range[nr];
	/* Quartiles, so that a few outliers do not make all stakes small. */
	return (seq->sorted[nr - 1 - nr / 4] - seq->sorted[nr / 4]) / 2 / 0.6745;
}

/*
 * The spread by which stakes are chosen. A stake may depend on earlier pairs, but not on its
 * own. The assumed spread weighs as much as two pairs.
 */
static double seq_spread(const struct mp_seq *seq)
{
	double seen, nr = (double)seq->nr, first = seq_kinds[seq->kind].spread_first;

	if (seq->nr < 2)
		return first;
	seen = seq_spread_seen(seq);
	return fmax(sqrt((SEQ_NR_FIRST * first * first + nr * seen * seen) / (SEQ_NR_FIRST + nr)),
		    SEQ_SPREAD_MIN);
}

/* The factor by which the capital of a gambler grows who bets that @d lies above @effect. */
static double seq_factor(const struct seq_gambler *gambler, double d, double scale, double effect)
{
	double above = d - effect, stake;

	if (isinf(gambler->effect))
		stake = (above > 0) - (above < 0);
	else
		stake = tanh(gambler->effect * above / scale);
	return 1 + gambler->stake_max * stake;
}

/* The share of the whole capital that the gamblers got at entry number @entry, from 0. */
static double seq_part(size_t entry)
{
	return 1 / ((double)(entry + 1) * (double)(entry + 2));
}

static double seq_capital(const struct mp_seq *seq, const double *capital, double reserve)
{
	const struct seq_gambler *gamblers = seq_kinds[seq->kind].gamblers;
	double sum = reserve;
	int g;

	/* Far above any threshold it is infinite, and far below it is 0: both are right. */
	for (g = 0; g < MP_SEQ_NR_GAMBLERS; g++)
		sum += gamblers[g].share * capital[g];
	return sum;
}

double mp_seq_capital(const struct mp_seq *seq, const double *capital)
{
	return seq_capital(seq, capital, seq->reserve);
}

double mp_seq_pool_capital(const struct mp_seq *seq, const double *capital)
{
	const struct seq_gambler *gamblers = seq_kinds[seq->kind].gamblers;
	double sum = 0, share = 0;

	for (int g = 0; g < MP_SEQ_NR_GAMBLERS; g++) {
		if (isinf(gamblers[g].effect))
			continue;
		sum += gamblers[g].share * capital[g];
		share += gamblers[g].share;
	}
	return seq->reserve + sum / share;
}

void mp_seq_enter(struct mp_seq *seq)
{
	double part, reserve;

	if (seq->nr_entries == MP_SEQ_MAX_ENTRIES)
		return;
	part = seq_part(seq->nr_entries);
	/* At the first entry all capital plays already; before any bet, a part of it is taken back. */
	reserve = seq->nr_entries ? seq->reserve : 1;
	for (int g = 0; g < MP_SEQ_NR_GAMBLERS; g++) {
		seq->up[g] = (seq->nr_entries ? seq->up[g] : 0) + part;
		seq->down[g] = (seq->nr_entries ? seq->down[g] : 0) + part;
	}
	seq->reserve = reserve - part;
	seq->entries[seq->nr_entries++] = seq->nr;
}

/* The capital that decides: two directions share the permitted error. */
static double seq_threshold(double alpha)
{
	return 2 / alpha;
}

size_t mp_seq_least_pairs(double alpha)
{
	/* A pair doubles the capital at most. */
	return (size_t)ceil(log2(seq_threshold(alpha)));
}

static int seq_reserve(struct mp_seq *seq)
{
	size_t nr_alloc = seq->nr_alloc ? 2 * seq->nr_alloc : 64;
	double **arrays[] = {&seq->d, &seq->scale, &seq->sorted};
	size_t i;

	if (seq->nr < seq->nr_alloc)
		return 0;
	for (i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		if (mp_resize(*arrays[i], nr_alloc))
			return -ENOMEM;
	seq->nr_alloc = nr_alloc;
	return 0;
}

static void seq_insert(struct mp_seq *seq, double d)
{
	size_t lo = mp_search(i, 0, seq->nr, seq->sorted[i] <= d);

	memmove(&seq->sorted[lo + 1], &seq->sorted[lo], (seq->nr - lo) * sizeof(*seq->sorted));
	seq->sorted[lo] = d;
}

int mp_seq_add(struct mp_seq *seq, double d)
{
	return mp_seq_add_noisy(seq, d, 1);
}

int mp_seq_add_noisy(struct mp_seq *seq, double d, double noise)
{
	const struct seq_gambler *gamblers = seq_kinds[seq->kind].gamblers;
	double scale;
	int err, g;

	if (!isfinite(d) || !(noise > 0) || !isfinite(d / noise))
		return -EINVAL;
	err = seq_reserve(seq);
	if (err)
		return err;
	scale = seq_spread(seq) * noise;
	seq_insert(seq, d / noise);
	seq->uneven |= noise != 1;
	seq->d[seq->nr] = d;
	seq->scale[seq->nr] = scale;
	seq->nr++;
	for (g = 0; g < MP_SEQ_NR_GAMBLERS; g++) {
		seq->up[g] *= seq_factor(&gamblers[g], d, scale, 0);
		seq->down[g] *= seq_factor(&gamblers[g], -d, scale, 0);
	}
	if (seq->verdict != MP_SEQ_UNDECIDED)
		return 0;
	if (mp_seq_capital(seq, seq->up) >= seq_threshold(seq->alpha))
		seq->verdict = MP_SEQ_POSITIVE;
	else if (mp_seq_capital(seq, seq->down) >= seq_threshold(seq->alpha))
		seq->verdict = MP_SEQ_NEGATIVE;
	if (seq->verdict != MP_SEQ_UNDECIDED)
		seq->decided_at = seq->nr;
	return 0;
}

/* Did the bet "the effect lies above @effect" (@sign 1; -1: below it) ever win? */
static bool seq_rejects(const struct mp_seq *seq, double effect, int sign)
{
	const struct seq_gambler *gamblers = seq_kinds[seq->kind].gamblers;
	double capital[MP_SEQ_NR_GAMBLERS], reserve = seq->nr_entries ? 1 - seq_part(0) : 0;
	size_t i, entry = 1;
	int g;

	for (g = 0; g < MP_SEQ_NR_GAMBLERS; g++)
		capital[g] = 1 - reserve;
	for (i = 0; i < seq->nr; i++) {
		for (; entry < seq->nr_entries && seq->entries[entry] == i; entry++) {
			for (g = 0; g < MP_SEQ_NR_GAMBLERS; g++)
				capital[g] += seq_part(entry);
			reserve -= seq_part(entry);
		}
		for (g = 0; g < MP_SEQ_NR_GAMBLERS; g++)
			capital[g] *= seq_factor(&gamblers[g], sign * seq->d[i], seq->scale[i],
						 sign * effect);
		if (seq_capital(seq, capital, reserve) >= seq_threshold(seq->alpha))
			return true;
	}
	return false;
}

/* The last rejected effect, from below (@sign 1) or above (-1). Each gambler's gain is
 * monotonic in the effect, so bisection finds it. */
static double seq_bound(const struct mp_seq *seq, int sign)
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

void mp_seq_interval(const struct mp_seq *seq, double *lo, double *hi)
{
	*lo = seq_bound(seq, 1);
	*hi = seq_bound(seq, -1);
}

bool mp_seq_holds(const struct mp_seq *seq, double effect)
{
	return !seq_rejects(seq, effect, 1) && !seq_rejects(seq, effect, -1);
}

/* Sum of the stakes that @effect is too small, each weighted by what its difference tells. */
static double seq_balance(const struct mp_seq *seq, double effect)
{
	double sum = 0;

	for (size_t i = 0; i < seq->nr; i++)
		sum += tanh(SEQ_BALANCE * (seq->d[i] - effect) / seq->scale[i]) / seq->scale[i];
	return sum;
}

/* The sum falls as the effect grows, so bisection finds where it is zero. */
static double seq_balanced(const struct mp_seq *seq)
{
	double lo = -SEQ_EFFECT_MAX, hi = SEQ_EFFECT_MAX;

	for (int i = 0; i < 50; i++) {
		double mid = (lo + hi) / 2;

		if (seq_balance(seq, mid) > 0)
			lo = mid;
		else
			hi = mid;
	}
	return (lo + hi) / 2;
}

double mp_seq_estimate(const struct mp_seq *seq)
{
	size_t i, j, k = 0, nr = seq->nr * (seq->nr + 1) / 2;
	double *means, median;

	if (!seq->nr)
		return 0;
	if (seq->uneven)
		return seq_balanced(seq);
	/* For thousands of pairs, the plain median is accurate enough and needs no memory. */
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
