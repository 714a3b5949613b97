// SPDX-License-Identifier: Apache-2.0
/*
 * path_infer - from paths that samples ended and the samples themselves to block and edge counts of
 * one function.
 *
 * A sample says where time goes; the path that leads to it says how control came there, and that
 * does not depend on how long anything takes: the ways into a block are drawn in proportion to how
 * often they are taken. So at each merge the shares of its ways are known, and with them all flow
 * that leads to the function's exits, up to how often it leaves by each. That the samples say, and
 * what no path says.
 */
#ifndef MP_PATH_INFER_H
#define MP_PATH_INFER_H

#include <stdint.h>

#include "libprof/err.h"
#include "libprof/infer.h"

/*
 * mp_path_infer_flow - @block_count and @edge_count hold what mp_infer_flow() made of the samples,
 * and then what paths make of it. @edge_seen, @outside_seen: per edge, per block, how many sampled
 * paths lead over it, into it from outside. For every block afterwards: in-edges (+ entry flow) =
 * count = out-edges (+ exit flow), up to rounding.
 * Return: 0, MP_INFER_GAVE_UP (unchanged: too dense a function), -ENOMEM, -EINVAL.
 */
int mp_path_infer_flow(const struct mp_flow *flow, const uint64_t *edge_seen,
		       const uint64_t *outside_seen, double *block_count, double *edge_count,
		       struct mp_err *err);

#endif
