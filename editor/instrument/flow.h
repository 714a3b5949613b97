// SPDX-License-Identifier: Apache-2.0
/*
 * flow - the flow graph of one function, with the outside as a vertex, and the edges on
 * which a counter can stand. Called by instrument and number.
 */
#ifndef ME_FLOW_H
#define ME_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/evidence/flags/flags.h"
#include "libprof/cfg/cfg.h"
#include "libprof/infer/counts.h"

/* Place of an edge's counter. */
enum me_flow_place {
	ME_FLOW_NOWHERE,
	ME_FLOW_BEFORE_TARGET, /* before the edge's target, which has no other edge into it */
	ME_FLOW_BEFORE_SOURCE, /* before the edge's source, which has no other edge out of it */
	ME_FLOW_AT_ENTRY,      /* before the target, only on the ways from outside */
	ME_FLOW_ON_EDGE,       /* on the way from the end of the source to the target */
	/* before the block behind the target, which is only a first instruction (MP_BLOCK_BEHIND_ENTRY) */
	ME_FLOW_BEHIND_TARGET,
};

struct me_flow_edge {
	uint32_t from, to; /* vertices: block index in the function; nr_blocks: outside */
	uint8_t kind;	   /* enum mp_edge_kind; MP_EDGE_OUTSIDE if an end is outside */
	uint8_t place;	   /* enum me_flow_place */
	bool unordered;	   /* the way of a NaN; set by instrument for edges that have no place */
	double weight;	   /* expected flow */
};

struct me_flow {
	uint32_t first_block, nr_blocks;
	struct me_flow_edge *edges;
	uint32_t nr_edges, cap;
	uint32_t *degree; /* scratch: in and out, per vertex */
	uint32_t cap_vertices;
};

/*
 * me_flow_build - build the graph of function @func in @flow, which is reused. @flags:
 * NULL if the code to insert does not change flags. @counts: NULL, or without counts of
 * @func: loops are assumed to run. @tables_leave: a jump through a table leaves the function, and
 * its targets are entered from outside. No counter can stand on one way of such a jump, so if
 * several jumps share their targets, as those of an interpreter do, only this graph can be counted:
 * it has each block's count, but not which jump led to which target.
 * Return: 0, -ENOMEM.
 */
int me_flow_build(const struct mp_cfg *cfg, const struct me_flags *flags,
		  const struct mp_counts *counts, uint32_t func, bool tables_leave,
		  struct me_flow *flow);
void me_flow_fini(struct me_flow *flow);

#endif
