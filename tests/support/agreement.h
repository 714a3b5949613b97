// SPDX-License-Identifier: Apache-2.0
/*
 * agreement - measures how well estimated counts agree with exact ones, as in the literature.
 */
#ifndef AGREEMENT_H
#define AGREEMENT_H

#include <stdint.h>

#include "libprof/cfg/cfg.h"
#include "libprof/infer/counts.h"

/* Each value is from 0 to 1; 1: full agreement. If there is nothing to compare: 0. */
struct agreement {
	double blocks; /* sum over blocks of the smaller of both shares of all executions */
	double inside; /* the same inside each function, weighted by its exact executions */
	/*
	 * PEP's relative overlap: 1 - |estimated - exact share taken|, weighted by exact
	 * executions of the branch. A branch without an estimate counts as taken half of the
	 * time.
	 */
	double relative;
	double absolute; /* PEP's absolute overlap: like @blocks, for both ways of all branches */
	/*
	 * Wall's weight matching. Hot blocks have at least AGREEMENT_HOT of all executions. Of
	 * their exact executions, the share in the blocks that the estimate ranks hottest,
	 * taking equally many.
	 */
	double hot;
};

#define AGREEMENT_HOT 0.00125

/*
 * agreement_measure - compare counts of the functions with @funcs[func]. Bond and McKinley, CGO
 * 2005, sections 6.3 and 6.4; Wall, PLDI 1991. Return: 0, -ENOMEM.
 */
int agreement_measure(const struct mp_cfg *cfg, const struct mp_counts *estimate,
		      const struct mp_counts *exact, const uint8_t *funcs, struct agreement *out);

#endif
