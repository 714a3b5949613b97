// SPDX-License-Identifier: Apache-2.0
/*
 * effect_test - decides which version of one function is faster, from its pairs of windows. The
 * statistics are those of sequential_test.h. Called by program_audit and by simulations.
 *
 * A function gives thousands of pairs a second, and one pair may tell very little. So several pairs
 * are combined into one difference, by a rule that is fixed beforehand: after n pairs, the next n /
 * 64 pairs (at least 1, at most 4096) make one difference. With each doubling of n from 32 on, a
 * further part of the gamblers' capital enters (sequential_test.h). Of k pairs at one timing point,
 * the difference is the mean of the middle half, so that interrupts and page faults weigh little. A
 * function with several timing points has the mean of the points' differences, weighted by the
 * points' shares of the function's time so far. If both versions are the same, the coin makes this
 * difference as likely to be d as -d, so the test stays fair. An effect of any size thus becomes
 * visible after a number of differences that grows with the logarithm of the number of pairs.
 */
#ifndef MP_EFFECT_TEST_H
#define MP_EFFECT_TEST_H

#include <stdint.h>

#include "libprof/audit/sequential_test.h"
#include "libprof/audit/window_pairs.h"

#define MP_EFFECT_PART	    64 /* a difference takes one such part of the pairs so far */
#define MP_EFFECT_PAIRS_MAX 4096
/* Timing points that are kept apart; the last one takes all further points. */
#define MP_EFFECT_NR_POINTS 16

/* Sums over the pairs of a timing point. */
struct mp_point_sums {
	uint16_t point;
	uint64_t pairs;
	uint64_t ticks[MP_AUDIT_NR_VERSIONS], rounds[MP_AUDIT_NR_VERSIONS];
};

/* A pair that waits to be taken together with others. */
struct mp_effect_pair {
	double difference;
	uint32_t point; /* index */
};

struct mp_effect_test {
	struct mp_seq seq;
	uint64_t nr_pairs;
	struct mp_point_sums points[MP_EFFECT_NR_POINTS];
	uint32_t nr_points;
	struct mp_effect_pair waiting[MP_EFFECT_PAIRS_MAX];
	uint32_t nr_waiting, nr_wanted;
	uint64_t nr_entry; /* number of pairs at which more of the capital enters */
};

/* mp_effect_init - @alpha: chance that this function gets a false verdict. */
void mp_effect_init(struct mp_effect_test *test, double alpha);
void mp_effect_fini(struct mp_effect_test *test);
/* mp_effect_add - one more pair. Return: 0, -ENOMEM. */
int mp_effect_add(struct mp_effect_test *test, const struct mp_pair *pair);
/* Return: the verdict so far; it does not change any more once it is not NONE. */
enum mp_audit_verdict mp_effect_verdict(const struct mp_effect_test *test);

#endif
