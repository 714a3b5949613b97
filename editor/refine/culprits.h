// SPDX-License-Identifier: Apache-2.0
/*
 * culprits - the functions whose time per execution rose by more than chance.
 *
 * Two versions do the same work in several runs each, so each function is executed as often in
 * every run, and its samples measure its time per execution. A count's variance is that of
 * sampling (Poisson: the mean m) plus m^2 phi: runs of one version differ by themselves. phi is
 * estimated from the differences between runs of one version: for the function itself, for all
 * functions together and for whole runs; the largest counts. The logarithm of the ratio of two
 * means is tested by Student's t, one-sided, and corrected for the number of functions by Holm's
 * method: with probability 1 - alpha, no function is named at all if nothing rose.
 *
 * Called by refine; knows neither files nor programs.
 */
#ifndef ME_CULPRITS_H
#define ME_CULPRITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Samples of several runs. */
struct me_samples {
	size_t nr_runs, nr_funcs;
	const bool *changed;	/* for each run: of the version under test, not of the original */
	const uint64_t *counts; /* [run * nr_funcs + function] */
};

struct me_culprit {
	uint32_t func;
	uint64_t before, after; /* samples in all runs of the original, of the version under test */
	double factor;		/* time per execution, times the original's */
	double p;		/* Holm's, over all functions tested */
	double harm;		/* what the rise costs, as a share of the original's whole time */
};

/* Functions with fewer samples in all runs together are not tested: their counts vary by 18 % by
 * chance alone. */
#define ME_CULPRIT_LEAST_SAMPLES 32
/*
 * A rise that costs less than this share of the whole time is not worth a trial. An audit of a
 * minute often leaves effects of ten times this size undecided (results.md), so it could not tell
 * whether a repair helped.
 */
#define ME_CULPRIT_LEAST_HARM 0.002
/*
 * Least runs of each version. The differences between runs of one version estimate how much runs
 * vary; with two runs each, the estimate has two degrees of freedom, with three it has four.
 * test_culprits checks that fewer are refused.
 */
#define ME_CULPRIT_LEAST_RUNS 3

/*
 * me_culprits_find - most harmful first. Return: 0, -EINVAL: too few runs of a version, -ENOMEM.
 * Ownership: free(*@out).
 */
int me_culprits_find(const struct me_samples *samples, double alpha, struct me_culprit **out,
		     size_t *nr);

#endif
