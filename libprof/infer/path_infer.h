// SPDX-License-Identifier: Apache-2.0
/*
 * path_infer - computes block and edge counts of one function from samples and their paths.
 *
 * A sample shows where time goes. Its path shows how control came there, and does not depend on how
 * long anything takes: paths sample the ways into a block in proportion to how often they are
 * taken. At each merge the shares of its ways are therefore known. From these shares follows all
 * flow that leads to an exit, once it is known how often flow leaves by each exit. No path shows
 * how often; samples do, as well as everything else that no path shows.
 */
#ifndef MP_PATH_INFER_H
#define MP_PATH_INFER_H

#include <stdint.h>

#include "libprof/base/err.h"
#include "libprof/infer/infer.h"

/*
 * mp_path_infer_flow - @block_count and @edge_count hold the result of mp_infer_flow() and
 * get the new result.
 * @edge_seen, @outside_seen: sampled paths over each edge, and into each block from
 * outside. Afterwards, for every block: in-edges (+ entry flow) = count = out-edges (+ exit
 * flow), up to rounding.
 * Return: 0, MP_INFER_GAVE_UP (unchanged: the function is too dense), -ENOMEM, -EINVAL.
 */
int mp_path_infer_flow(const struct mp_flow *flow, const uint64_t *edge_seen,
		       const uint64_t *outside_seen, double *block_count, double *edge_count,
		       struct mp_err *err);

#endif
