// SPDX-License-Identifier: Apache-2.0
/*
 * mcf - minimum-cost circulation in integers, by the primal network simplex method.
 * Knows nothing of code or profiles. infer states its estimate as such a problem.
 */
#ifndef MP_MCF_H
#define MP_MCF_H

#include <stdint.h>

#define MP_MCF_INFINITE INT64_MAX

struct mp_mcf_arc {
	uint32_t from, to;
	int64_t capacity; /* >= 0; MP_MCF_INFINITE: no limit */
	int64_t cost;	  /* per unit, may be negative */
	int64_t flow;	  /* result */
};

enum mp_mcf_result {
	MP_MCF_OPTIMAL = 0,
	MP_MCF_STOPPED = 1, /* @max_pivots reached: the flow is conserved but not the cheapest */
};

/*
 * mp_mcf_solve - fills arcs[].flow with a circulation of least cost over nodes 0 ..
 * @nr_nodes - 1.
 * The sum of |cost| over any simple path must stay below 2^62, and so must the sum of
 * finite capacities. @pivots may be NULL.
 * Return: enum mp_mcf_result, -ENOMEM, -EINVAL (an arc names no node, a negative capacity),
 * -ERANGE (a cycle of negative cost without bound).
 */
int mp_mcf_solve(uint32_t nr_nodes, struct mp_mcf_arc *arcs, uint32_t nr_arcs, uint64_t max_pivots,
		 uint64_t *pivots);

#endif
