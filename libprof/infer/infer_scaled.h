// SPDX-License-Identifier: Apache-2.0
/*
 * infer_scaled - counts by length scaling alone: samples divided by instructions. Used if it is
 * asked for, or if the search for a flow takes too long. Called by infer.
 */
#ifndef MP_INFER_SCALED_H
#define MP_INFER_SCALED_H

#include "libprof/infer/infer.h"

/* Transfers that one passage of a counted @edge shows. */
static inline double mp_flow_edge_rate(const struct mp_flow *flow, const struct mp_flow_edge *edge)
{
	return edge->rate > 0 ? edge->rate : flow->transfer_weight;
}

static inline bool mp_flow_edge_is_counted(const struct mp_flow *flow,
					   const struct mp_flow_edge *edge)
{
	return edge->counted && mp_flow_edge_rate(flow, edge) > 0;
}

/* Fills @block_count and @edge_count. Return: 0, -ENOMEM. */
int mp_infer_scaled(const struct mp_flow *flow, double *block_count, double *edge_count);

#endif
