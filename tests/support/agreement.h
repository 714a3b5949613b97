// SPDX-License-Identifier: Apache-2.0
/*
 * agreement - how well estimated counts agree with exact ones, in the measures of the literature.
 */
#ifndef AGREEMENT_H
#define AGREEMENT_H

#include <stdint.h>

#include "libprof/cfg.h"
#include "libprof/counts.h"

/* Each from 0 to 1; 1: agrees. Of nothing at all: 0. */
struct agreement {
	double blocks;	 /* sum over blocks of the smaller of both shares, of all executions */
	double inside;	 /* the same inside each function, weighted by its exact executions */
	double relative; /* PEP's relative overlap: 1 - |estimated - exact share taken|, weighted by
			  * a branch's exact executions; without an estimate a branch goes either
			  * way alike */
	double absolute; /* PEP's absolute overlap: as @blocks, of both ways of all branches */
	double hot; /* Wall's weight matching: of the exact executions of the blocks that have at
			  * least AGREEMENT_HOT of all, the share in as many blocks that the estimate
			  * takes for the hottest */
};

#define AGREEMENT_HOT 0.00125

/*
 * agreement_measure - of the functions with @funcs[func]. Bond and McKinley, CGO 2005, section 6.3
 * and 6.4; Wall, PLDI 1991. Return: 0, -ENOMEM.
 */
int agreement_measure(const struct mp_cfg *cfg, const struct mp_counts *estimate,
		      const struct mp_counts *exact, const uint8_t *funcs, struct agreement *out);

#endif
