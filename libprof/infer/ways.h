// SPDX-License-Identifier: Apache-2.0
/*
 * ways - finds blocks without samples that must have run, since flow passed them on its way
 * to samples.
 */
#ifndef MP_WAYS_H
#define MP_WAYS_H

#include "libprof/infer/infer.h"

/*
 * mp_ways_find - finds the shortest ways in and out for flow that goes round without
 * entering or leaving.
 * @block_count, @edge_count: the result of mp_infer_flow() for @flow. @runs: array of the
 * caller, per block: least number of executions, in units of counts, for a block without
 * flow on such a way; else 0.
 * Return: 0, -ENOMEM.
 */
int mp_ways_find(const struct mp_flow *flow, const double *block_count, const double *edge_count,
		 double *runs);

#endif
