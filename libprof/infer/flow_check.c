// SPDX-License-Identifier: Apache-2.0
/* flow_check - refuses a flow whose numbers make no sense; see flow_check.h. */
#include "libprof/infer/flow_check.h"

#include <errno.h>
#include <math.h>

int mp_flow_check(const struct mp_flow *flow, struct mp_err *err)
{
	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		const struct mp_flow_block *block = &flow->blocks[b];

		if (!(block->samples >= 0) || !isfinite(block->samples) || !(block->before >= 0) ||
		    !isfinite(block->before) || !(block->entry_cost >= 0) ||
		    block->entry_cost > 1e6 || !(block->more_insns >= 0) ||
		    block->more_insns > 1e6 || !(block->wait >= 0) || block->wait > 1u << 24 ||
		    block->nr_insns > 1u << 24)
			return mp_err_set(err, EINVAL, "flow: block %u has no sensible numbers", b);
	}
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		if (flow->edges[e].from >= flow->nr_blocks || flow->edges[e].to >= flow->nr_blocks)
			return mp_err_set(err, EINVAL, "flow: edge %u names no block", e);
		if (!(flow->edges[e].transfers >= 0) || !isfinite(flow->edges[e].transfers) ||
		    !(flow->edges[e].against >= 0) || flow->edges[e].against > 1e6 ||
		    !(flow->edges[e].rate >= 0) || !isfinite(flow->edges[e].rate))
			return mp_err_set(err, EINVAL, "flow: edge %u has no sensible number", e);
	}
	if (!(flow->transfer_weight >= 0) || flow->transfer_weight > 1e6)
		return mp_err_set(err, EINVAL, "flow: no sensible weight of transfers");
	if (flow->nr_blocks > 1u << 28 || flow->nr_edges > 1u << 28)
		return mp_err_set(err, EINVAL, "flow: too large");
	return 0;
}

int mp_path_flow_check(const struct mp_flow *flow, const double *block_count,
		       const double *edge_count, struct mp_err *err)
{
	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		if (!(flow->blocks[b].samples >= 0) || !isfinite(flow->blocks[b].samples) ||
		    !(flow->blocks[b].more_insns >= 0) || !isfinite(flow->blocks[b].more_insns) ||
		    !(block_count[b] >= 0) || !isfinite(block_count[b]))
			return mp_err_set(err, EINVAL, "paths: block %u has no sensible numbers",
					  b);
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		if (flow->edges[e].from >= flow->nr_blocks ||
		    flow->edges[e].to >= flow->nr_blocks || !(edge_count[e] >= 0) ||
		    !isfinite(edge_count[e]))
			return mp_err_set(err, EINVAL, "paths: edge %u makes no sense", e);
	return 0;
}
