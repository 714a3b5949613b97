// SPDX-License-Identifier: Apache-2.0
/*
 * ways - how flow got to where samples fell, over blocks on which none did.
 */
#ifndef MP_WAYS_H
#define MP_WAYS_H

#include "libprof/infer.h"

/*
 * mp_ways_find - the shortest ways in and out for flow that goes round without coming in or out.
 * @block_count, @edge_count: what mp_infer_flow() made of @flow. @runs: the caller's, per block: how
 * often it ran at least, in the units of counts, if it is on such a way and has no flow; else 0.
 * Return: 0, -ENOMEM.
 */
int mp_ways_find(const struct mp_flow *flow, const double *block_count, const double *edge_count,
		 double *runs);

#endif
