// SPDX-License-Identifier: Apache-2.0
/*
 * region_tests - decides for each region of two compilations which of them takes less time there.
 *
 * The samples of a region in one run measure its time. A pair of runs gives d = log((old + 1/2) /
 * (new + 1/2)), where old and new are the region's samples in the two runs. The order of the runs
 * is drawn at random, so if both compilations take the same time, d is as likely as -d
 * (sequential_test.h). The runs of a warm-up pair, which do not count, choose the regions that are
 * tested. Each test, and that of the whole command, has an equal part of alpha, so the chance of
 * any false claim is at most alpha (Bonferroni).
 *
 * Called by compilations; knows neither files nor programs.
 */
#ifndef ME_REGION_TESTS_H
#define ME_REGION_TESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "editor/compilations/regions.h"
#include "libprof/audit/sequential_test.h"

/* Regions with less of the time, or with fewer samples in both runs together, are not tested. */
#define ME_REGION_LEAST_SHARE	0.005
#define ME_REGION_LEAST_SAMPLES 20

enum me_region_verdict {
	ME_REGION_UNDECIDED,
	ME_REGION_FASTER, /* the new compilation is */
	ME_REGION_SLOWER,
	ME_REGION_EQUAL, /* any difference matters too little for the whole command */
};

/* One region, or the whole command. */
struct me_region_test {
	bool tested;
	bool work_differs;		/* its markers have other totals: it is not tested */
	uint64_t samples[ME_NR_BUILDS]; /* of all pairs that count */
	struct mp_seq seq;
	double lowest, highest; /* of the log ratio, set by me_region_tests_end() */
	enum me_region_verdict verdict;
};

struct me_region_tests {
	double alpha, indifference;  /* @indifference: log ratio of the whole */
	struct me_region_test *list; /* regions; behind them the whole command */
	uint32_t nr;		     /* without the whole command */
	uint32_t nr_tested;
	size_t nr_pairs;
};

/* Return: 0, -ENOMEM. Ownership: me_region_tests_fini(@out), after an error too. */
int me_region_tests_init(struct me_region_tests *out, uint32_t nr_regions, double alpha,
			 double indifference);
void me_region_tests_fini(struct me_region_tests *tests);
/* me_region_tests_choose - from a warm-up pair, after work_differs was set: what is tested. */
void me_region_tests_choose(struct me_region_tests *tests, const uint64_t *old_run,
			    const uint64_t *new_run);
/* Return: 0, -ENOMEM. */
int me_region_tests_add(struct me_region_tests *tests, const uint64_t *old_run,
			const uint64_t *new_run);
/* Is nothing left to find out? */
bool me_region_tests_are_over(struct me_region_tests *tests);
/* me_region_tests_end - verdicts and bounds. */
void me_region_tests_end(struct me_region_tests *tests);
const char *me_region_verdict_name(enum me_region_verdict verdict);

#endif
