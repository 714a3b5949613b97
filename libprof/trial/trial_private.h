// SPDX-License-Identifier: Apache-2.0
/* trial_private - what a trial holds; for trial and trial_state. */
#ifndef MP_TRIAL_PRIVATE_H
#define MP_TRIAL_PRIVATE_H

#include "libprof/audit/sequential_test.h"
#include "libprof/trial/fit.h"
#include "libprof/trial/trial.h"

/* A pair as it was measured. All else follows from the pairs. */
struct mp_trial_pair {
	int first; /* the version in its first block */
	struct mp_trial_block blocks[2];
};

enum {
	MP_TRIAL_NR_GUESSES = 6
};

/* How well it describes the pairs so far that blocks of unlike work are unlike in time, beyond their work. */
struct mp_trial_guess {
	double differences; /* the sum of |d|, each divided by its pair's noise */
	double logs;	    /* the sum of the logs of that noise */
};

struct mp_trial {
	struct mp_trial_config config;
	struct mp_trial_pair *pairs;
	uint32_t nr, room;
	uint32_t nr_abandoned;
	int drawn; /* the version in the first block of the next pair; -1: not drawn */
	enum mp_trial_verdict verdict;
	int unlike; /* a counter; -1: none */
	bool doubt; /* after the last pair, work may be unlike */
	struct mp_trial_result sums;
	/*
	 * The blocks of the pairs that count, each column divided by the block's time; processes are
	 * the last column. What they give: seconds for one count.
	 */
	struct mp_fit blocks;
	uint32_t nr_blocks;
	double weights[MP_TRIAL_NR_COUNTERS + 1];
	struct mp_trial_guess guesses[MP_TRIAL_NR_GUESSES];
	struct mp_seq speed;		      /* log(time of 0) - log(time of 1) */
	struct mp_seq not_slower, not_faster; /* the same plus, minus MP_TRIAL_EQUAL */
	struct mp_seq harm;		      /* the same plus log(1 + MP_TRIAL_HARM) */
	struct mp_seq crashes; /* crashes of a process, of 1 minus of 0, in pairs with a crash */
	uint32_t nr_crashed;   /* such pairs */
	double log_crashed; /* minus the log of the chance that all crashes are on 1's processes */
	/* difference of a counter's shares, of 1 minus of 0: minus, plus MP_TRIAL_UNLIKE */
	struct mp_seq larger[MP_TRIAL_NR_COUNTERS], smaller[MP_TRIAL_NR_COUNTERS];
};

#endif
