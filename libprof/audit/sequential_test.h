// SPDX-License-Identifier: Apache-2.0
/*
 * sequential_test - a test of paired differences that stays valid however often its result is
 * looked at.
 *
 * It decides when the evidence suffices; it runs no programs. Called by morph-audit after each
 * pair of runs, by effect_test for pairs of windows, and by the simulations that check its promise.
 *
 * Method: testing by betting. A fair coin chooses the order inside each pair. If A and B are
 * the same program, a pair's difference d (log time of A - log time of B) is as likely to be d
 * as -d, whatever the noise: heavy tails, drift and autocorrelation included. A gambler who
 * bets a share of his capital, fixed before the pair, on the sign of d then has a fair game. By
 * Ville's inequality his capital ever reaches K times its start with probability at most 1/K.
 *
 * The capital is a mixture of four gamblers; the mean of fair games is a fair game. Three of
 * them stake tanh(c * d / s), where s is the spread of the earlier pairs. This is the mixture
 * likelihood ratio of normal noise for effects of c spreads, limited to what the coin alone
 * supports. The fourth stakes nearly everything on each sign and holds most of the capital. n
 * pairs hold n coins, so no test that trusts the coin alone can claim anything with an error
 * below 2^(1-n). The fourth gambler reaches this limit: at alpha = 0.01, eight pairs of one
 * sign decide. Pairs of everyday use have other gamblers (enum mp_seq_kind). The interval is the set of effects that the same game does not reject, each side
 * at alpha / 2.
 */
#ifndef MP_SEQUENTIAL_TEST_H
#define MP_SEQUENTIAL_TEST_H

#include <stdbool.h>
#include <stddef.h>

enum {
	MP_SEQ_NR_GAMBLERS = 4,
	MP_SEQ_MAX_ENTRIES = 64
};

enum mp_seq_verdict {
	MP_SEQ_UNDECIDED,
	MP_SEQ_POSITIVE, /* differences lie above zero: B is faster */
	MP_SEQ_NEGATIVE, /* differences lie below zero: B is slower */
};

/* What the gamblers expect. It changes how soon a test decides, and never how often it is wrong. */
enum mp_seq_kind {
	MP_SEQ_RUNS, /* runs of one command: effects as large as the noise of a pair, few pairs */
	MP_SEQ_EVERYDAY, /* blocks of everyday use: effects from an eighth of the noise on, hundreds of pairs */
};

struct mp_seq {
	enum mp_seq_kind kind;
	double alpha;
	double *d;     /* differences, in order of time */
	double *scale; /* spread assumed before each of them */
	size_t nr, nr_alloc;
	bool uneven;	/* some differences tell more than others */
	double *sorted; /* the differences, each divided by its noise, ascending */
	/* capital of each gambler against "no effect", upward and downward */
	double up[MP_SEQ_NR_GAMBLERS], down[MP_SEQ_NR_GAMBLERS];
	double reserve; /* part of the whole capital that does not play yet */
	/* number of differences at each mp_seq_enter(); none: the whole capital plays */
	size_t entries[MP_SEQ_MAX_ENTRIES], nr_entries;
	enum mp_seq_verdict verdict; /* the first verdict is final */
	size_t decided_at;	     /* number of differences at that time */
};

/* mp_seq_init - an empty test. @alpha: chance of any false claim, 0 < @alpha < 1. */
void mp_seq_init(struct mp_seq *seq, double alpha); /* for runs */
void mp_seq_init_kind(struct mp_seq *seq, enum mp_seq_kind kind, double alpha);
void mp_seq_fini(struct mp_seq *seq);
/* mp_seq_add - one more pair's difference (finite). Return: 0, -EINVAL or -ENOMEM. */
int mp_seq_add(struct mp_seq *seq, double d);
/*
 * mp_seq_add_noisy - one more difference, whose noise is assumed to be @noise times that of a
 * usual one; if it is not, only power is lost. The mean of n pairs, or another odd function of
 * them, is a difference with a noise of 1 / sqrt(n). The test stays fair as long as @noise does
 * not depend on the pair's coin. Return: as mp_seq_add(); -EINVAL also: @noise is not above 0.
 */
int mp_seq_add_noisy(struct mp_seq *seq, double d, double noise);
/*
 * mp_seq_enter - lets a further part of the capital play from the next difference on: half of the
 * whole at the first call, which comes before any difference, then a sixth, a twelfth, 1 / 20 and so on.
 * The rest is kept. Gamblers may lose nearly all while the noise of a difference hides the effect;
 * those who enter later have not lost it. When to call must not depend on the pairs' coins.
 */
void mp_seq_enter(struct mp_seq *seq);
/*
 * mp_seq_interval - bounds of the effect. With probability 1 - alpha they are right after every
 * pair. -INFINITY and INFINITY while there are too few pairs.
 */
void mp_seq_interval(const struct mp_seq *seq, double *lo, double *hi);
/* mp_seq_holds - does the interval hold @effect? Far cheaper than the bounds. */
bool mp_seq_holds(const struct mp_seq *seq, double effect);
/* mp_seq_capital - the mixture's capital of one direction, @seq->up or @seq->down; it starts at 1. */
double mp_seq_capital(const struct mp_seq *seq, const double *capital);
/*
 * mp_seq_pool_capital - the same of the three gamblers who bet on sizes, for evidence that is multiplied over
 * many tests. The fourth one wins a test of few pairs, but has lost nearly all wherever one pair had the other
 * sign, and each test would pay for that.
 */
double mp_seq_pool_capital(const struct mp_seq *seq, const double *capital);
/* mp_seq_least_pairs - fewer pairs than this cannot decide at @alpha, whatever their
 * differences. */
size_t mp_seq_least_pairs(double alpha);
/*
 * mp_seq_estimate - median of all pairwise means (Hodges and Lehmann); with means of several pairs,
 * the effect for which a gambler's stakes add up to zero. 0 when empty.
 */
double mp_seq_estimate(const struct mp_seq *seq);

#endif
