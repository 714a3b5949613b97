// SPDX-License-Identifier: Apache-2.0
/*
 * audit_simulate - audits of invented run times, to check the promises of the
 * sequential test.
 *
 * Decides which kinds of noise there are. Called by tests/tools/audit_simulate.c and by the tests.
 */
#ifndef ME_AUDIT_SIMULATE_H
#define ME_AUDIT_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of noise in the invented run times. Times are logarithms; 0.01 is one per cent. */
enum me_noise {
	ME_NOISE_GAUSSIAN,   /* independent, standard deviation 1 % */
	ME_NOISE_HEAVY,	     /* Cauchy: no variance, not even a mean */
	ME_NOISE_DRIFT,	     /* each run is 0.1 % slower for 100 runs, then faster again */
	ME_NOISE_CORRELATED, /* first-order autoregression, coefficient 0.95 */
	ME_NOISE_LOCKSTEP,   /* every other run is 5 % slower: fatal without the coin */
	ME_NOISE_BIMODAL,    /* two speeds 10 % apart, kept for a random number of runs */
	ME_NOISE_SKEWED,     /* one run in ten is slower, by 20 % on average */
	ME_NOISE_TICKS,	     /* a clock whose unit is 4 % of a run: many pairs are equal */
	ME_NR_NOISES
};

/* Decisions are counted that come within these numbers of pairs. */
enum {
	ME_NR_WITHINS = 4
};
extern const size_t me_sim_withins[ME_NR_WITHINS];

struct me_simulation {
	enum me_noise noise;
	double effect; /* log(time of A) - log(time of B) */
	double sd;     /* of Gaussian noise; 0: 1 % */
	double alpha;
	size_t nr_audits;
	size_t max_pairs;
	uint64_t seed;
	/* results */
	size_t nr_positive, nr_negative; /* audits that claimed "faster", "slower" */
	size_t nr_covered;		 /* audits whose interval contains the true effect */
	size_t nr_within[ME_NR_WITHINS]; /* audits that were right within me_sim_withins[i] pairs */
	double mean_pairs;		 /* pairs until the verdict or max_pairs */
};

const char *me_noise_name(enum me_noise noise);
/*
 * me_simulate - run the audits; each looks after every pair and stops at its first
 * claim. Return: 0 or -ENOMEM.
 */
int me_simulate(struct me_simulation *sim);

/* A stream of invented run times (logarithms), for tests of other methods on the same noise. */
struct me_noise_source {
	enum me_noise noise;
	double sd; /* of Gaussian noise */
	uint64_t state;
	double level;
	size_t nr;
	bool slow;
};
void me_noise_init(struct me_noise_source *src, enum me_noise noise, uint64_t seed);
/* Return: the logarithm of the next run's time. */
double me_noise_next(struct me_noise_source *src);
/* A fair coin from the same stream. */
bool me_noise_coin(struct me_noise_source *src);

#endif
