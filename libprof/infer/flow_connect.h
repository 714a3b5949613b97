// SPDX-License-Identifier: Apache-2.0
/*
 * flow_connect - finds blocks without samples that must have run, since flow passed them on its way
 * to samples.
 */
#ifndef MP_FLOW_CONNECT_H
#define MP_FLOW_CONNECT_H

#include "libprof/infer/infer.h"

/*
 * mp_flow_connect - finds the shortest ways in and out for flow that goes round without
 * entering or leaving.
 * @block_count, @edge_count: the result of mp_infer_flow() for @flow. @runs: array of the
 * caller, per block: least number of executions, in units of counts, for a block without
 * flow on such a way; else 0.
 * Return: 0, -ENOMEM.
 */
int mp_flow_connect(const struct mp_flow *flow, const double *block_count, const double *edge_count,
		    double *runs);

#endif
