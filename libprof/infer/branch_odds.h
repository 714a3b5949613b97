// SPDX-License-Identifier: Apache-2.0
/*
 * branch_odds - weights of the evidence in branch_hint.h, as scripts/bench/fit-hints printed
 * them.
 * The percentages say how many executions of branches go the guessed way; each branch
 * weighs as the logarithm of its executions.
 *
 *   cc1: 63.8 %; fitted to the other two 61.2 %; none taken 60.0 %; at best 91.0 %
 *   perl: 71.3 %; fitted to the other two 70.5 %; none taken 62.1 %; at best 96.2 %
 *   liblzma.so.5: 68.7 %; fitted to the other two 55.3 %; none taken 53.1 %; at best 88.7 %
 */
#ifndef MP_BRANCH_ODDS_H
#define MP_BRANCH_ODDS_H

#include "libprof/infer/branch_hint.h"

static const double base_odds = -0.14;

static const double evidence_odds[MP_NR_EVIDENCE] = {-0.28, -0.23, 0.20,  -0.18, -0.49,
						     0.30,  -0.33, 0.43,  -0.32, 0.28,
						     -4.16, 4.16,  -0.13, 0.31,	 -0.22,
						     0.17,  -0.12, 0.11,  -0.23, -0.17};

static const double compared_odds[MP_NR_COMPARED][16] = {
	{-0.87, 0.00, 0.27, 0.45, 0.40, 0.48, -0.10, -0.30, -0.70, 1.64, -0.38, 0.00, -0.57, -0.01,
	 -0.09, 0.57},
	{-0.72, 0.00, 0.26, 0.32, 0.48, -0.09, -0.06, -0.01, -0.40, 1.33, -0.38, 0.00, -0.43, 0.01,
	 -0.79, 0.71},
	{-0.72, 0.00, 0.26, 0.32, -0.12, 0.77, -0.06, -0.01, -1.85, 2.06, -0.38, 0.00, -0.43, 0.01,
	 -1.41, 0.91},
	{-0.72, 0.00, 0.26, 0.32, 1.24, -0.33, -0.06, -0.01, -0.86, 1.37, -0.38, 0.00, -0.43, 0.01,
	 -0.28, 0.34},
	{-0.72, 0.00, 0.55, 0.76, -0.29, 0.70, 0.29, 0.31, -0.86, 1.32, -0.38, 0.00, -0.60, 0.34,
	 0.30, -0.21},
	{-0.72, 0.00, 0.45, 0.01, -0.36, 0.64, -0.06, -0.01, -0.88, 1.32, -0.38, 0.00, -0.26, -0.28,
	 0.38, 0.07},
	{-1.30, 0.00, 0.06, 0.40, 0.22, -0.01, -0.42, -0.05, -1.31, 1.54, -0.75, 0.00, -0.72, 0.01,
	 -0.34, 0.35},
};

#endif
