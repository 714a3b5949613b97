// SPDX-License-Identifier: Apache-2.0
/*
 * flow - the flow graph of one function with the outside as a vertex, and on which of its edges a
 * counter can stand.
 */
#ifndef ME_FLOW_H
#define ME_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/flags.h"
#include "libprof/cfg.h"
#include "libprof/counts.h"

/* Where the counter of an edge would stand. */
enum me_flow_place {
	ME_FLOW_NOWHERE,
	ME_FLOW_TO,	 /* before the block it leads to, which nothing else leads to */
	ME_FLOW_FROM,	 /* before the block it comes from, which leads nowhere else */
	ME_FLOW_OUTSIDE, /* before the block, on the way of those from outside */
	ME_FLOW_BETWEEN, /* on the way from the end of the one block to the other */
};

struct me_flow_edge {
	uint32_t from, to; /* vertices: blocks from the function's first on; nr_blocks: outside */
	uint8_t kind;	   /* enum mp_edge_kind; MP_EDGE_OUTSIDE where an end is outside */
	uint8_t place;	   /* enum me_flow_place */
	double weight;	   /* how much is expected to flow */
};

struct me_flow {
	uint32_t first_block, nr_blocks;
	struct me_flow_edge *edges;
	uint32_t nr_edges, room;
	uint32_t *degree; /* scratch: in and out, per vertex */
	uint32_t room_vertices;
};

/*
 * me_flow_build - of function @func, into @flow, which serves for one after the other.
 * @flags: NULL: what shall stand on edges leaves the flags alone.
 * @counts: NULL, or none of this function: blocks in loops run more often.
 * Return: 0, -ENOMEM.
 */
int me_flow_build(const struct mp_cfg *cfg, const struct me_flags *flags,
		  const struct mp_counts *counts, uint32_t func, struct me_flow *flow);
void me_flow_fini(struct me_flow *flow);

#endif
