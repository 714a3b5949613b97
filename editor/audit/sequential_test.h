// SPDX-License-Identifier: Apache-2.0
/*
 * sequential_test - a test of paired differences that stays valid however often its result is
 * looked at.
 *
 * It decides when the evidence suffices; it runs no programs. Called by audit after each pair,
 * and by the simulation that checks its promise.
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
 * sign decide. The interval is the set of effects that the same game does not reject, each side
 * at alpha / 2.
 */
#ifndef ME_SEQUENTIAL_TEST_H
#define ME_SEQUENTIAL_TEST_H

#include <stdbool.h>
#include <stddef.h>

enum {
	ME_SEQ_NR_GAMBLERS = 4
};

enum me_seq_verdict {
	ME_SEQ_UNDECIDED,
	ME_SEQ_POSITIVE, /* differences lie above zero: B is faster */
	ME_SEQ_NEGATIVE, /* differences lie below zero: B is slower */
};

struct me_seq {
	double alpha;
	double *d;     /* differences, in order of time */
	double *scale; /* spread assumed before each of them */
	size_t nr, nr_alloc;
	double *sorted; /* the differences again, ascending */
	/* log capital of each gambler against "no effect", upward and downward */
	double up[ME_SEQ_NR_GAMBLERS], down[ME_SEQ_NR_GAMBLERS];
	enum me_seq_verdict verdict; /* the first verdict is final */
	size_t decided_at;	     /* number of differences at that time */
};

/* me_seq_init - an empty test. @alpha: chance of any false claim, 0 < @alpha < 1. */
void me_seq_init(struct me_seq *seq, double alpha);
void me_seq_fini(struct me_seq *seq);
/* me_seq_add - one more pair's difference (finite). Return: 0, -EINVAL or -ENOMEM. */
int me_seq_add(struct me_seq *seq, double d);
/*
 * me_seq_interval - bounds of the effect. With probability 1 - alpha they are right after every
 * pair. -INFINITY and INFINITY while there are too few pairs.
 */
void me_seq_interval(const struct me_seq *seq, double *lo, double *hi);
/* me_seq_holds - does the interval hold @effect? Far cheaper than the bounds. */
bool me_seq_holds(const struct me_seq *seq, double effect);
/* me_seq_capital - the mixture's capital, from the logarithm of each gambler's capital; all
 * start at 1. */
double me_seq_capital(const double *logs);
/* me_seq_least_pairs - fewer pairs than this cannot decide at @alpha, whatever their
 * differences. */
size_t me_seq_least_pairs(double alpha);
/* me_seq_estimate - median of all pairwise means (Hodges and Lehmann); 0 when empty. */
double me_seq_estimate(const struct me_seq *seq);

#endif
