// SPDX-License-Identifier: Apache-2.0
/*
 * trial_simulate - trials by invented everyday use, to check the promises of libprof/trial/trial.h.
 *
 * Decides which kinds of use there are. Two users do two kinds of work, of which a second of work
 * costs 1.10 and 0.90 seconds: the meter's weights are wrong by up to 30 %. Called by
 * tests/tools/trial_simulate.c and by the tests.
 */
#ifndef ME_TRIAL_SIMULATE_H
#define ME_TRIAL_SIMULATE_H

#include "libprof/trial/trial.h"
#include "tests/support/audits/audit_simulate.h"

/* How the work of blocks varies. */
enum me_use {
	ME_USE_STEADY,	 /* one user, alike in all blocks */
	ME_USE_TENFOLD,	 /* the amount varies tenfold from block to block */
	ME_USE_SECOND,	 /* the second user works in every second block */
	ME_USE_CHANGING, /* the mix of users changes slowly, by a random walk */
	ME_USE_ADVERSARY, /* the second user sees all past orders, and works where the new version ran more often */
	ME_USE_KINDS, /* eight kinds of work, of which the counters tell little; one block in three begins another */
	ME_USE_INSIDER, /* the second user works in the new version's blocks only: the coin is no secret */
	ME_NR_USES
};
const char *me_use_name(enum me_use use);

struct me_trial_simulation {
	enum me_use use;
	enum me_noise noise;
	double noise_scale; /* factor of the noise; 0: 1 */
	double effect;	    /* log of how many times as fast the new version is */
	double alpha;
	size_t nr_trials;
	uint32_t max_pairs;
	uint64_t seed;
	/* results */
	size_t nr[MP_NR_TRIAL_VERDICTS]; /* trials with each verdict */
	size_t nr_unlike;		 /* trials that called the work unlike */
	size_t nr_covered;		 /* trials whose interval held the effect at the end */
	double mean_pairs;
	uint32_t median_pairs, most_pairs; /* until the end */
};

/* me_trial_simulate - Return: 0, -ENOMEM. */
int me_trial_simulate(struct me_trial_simulation *sim);

#endif
