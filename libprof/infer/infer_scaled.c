// SPDX-License-Identifier: Apache-2.0
/* infer_scaled - counts by length scaling alone; see infer_scaled.h. */
#include "libprof/infer/infer_scaled.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int mp_infer_scaled(const struct mp_flow *flow, double *block_count, double *edge_count)
{
	double *sum = calloc((size_t)flow->nr_blocks + 1, sizeof(*sum));
	uint32_t *nr = calloc((size_t)flow->nr_blocks + 1, sizeof(*nr));

	if (!sum || !nr) {
		free(sum);
		free(nr);
		return -ENOMEM;
	}
	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		block_count[b] = flow->blocks[b].nr_insns
					 ? flow->blocks[b].samples / flow->blocks[b].nr_insns
					 : 0;
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		if (mp_flow_edge_is_counted(flow, &flow->edges[e]))
			sum[flow->edges[e].to] +=
				flow->edges[e].transfers / mp_flow_edge_rate(flow, &flow->edges[e]);
	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		block_count[b] = fmax(block_count[b], sum[b]);
		sum[b] = 0;
	}
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		sum[flow->edges[e].from] += block_count[flow->edges[e].to];
		nr[flow->edges[e].from]++;
	}
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		uint32_t from = flow->edges[e].from;
		double share = sum[from] > 0 ? block_count[flow->edges[e].to] / sum[from]
					     : 1.0 / nr[from];

		edge_count[e] = block_count[from] * share;
	}
	free(sum);
	free(nr);
	return 0;
}
