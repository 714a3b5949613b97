// SPDX-License-Identifier: Apache-2.0
/*
 * loop_distance - the least number of instructions between two blocks of one function, in either
 * version of it, on any path (Dijkstra 1959). Versions differ by the jumps between their blocks.
 * A call counts as one instruction. Called by loop_points.
 */
#ifndef ME_LOOP_DISTANCE_H
#define ME_LOOP_DISTANCE_H

#include <stdint.h>

#include "editor/plan.h"
#include "libprof/cfg/cfg.h"

#define ME_LOOP_FAR UINT32_MAX

struct me_distances {
	const struct mp_cfg *cfg;
	uint32_t first, nr; /* blocks of the function */
	uint32_t *place[2]; /* per version and block: its place in the order of blocks */
	struct me_distance_item *heap;
};

/* me_distances_init - of function @func. Return: 0, -ENOMEM. Ownership: me_distances_fini(@d). */
int me_distances_init(struct me_distances *d, const struct mp_cfg *cfg, uint32_t func,
		      const struct me_plan *plan);
void me_distances_fini(struct me_distances *d);
/*
 * me_distances_from - @out[block - first]: least number of instructions from the start of
 * @block to the start of the other block; to itself: of the shortest way back. ME_LOOP_FAR: none.
 */
void me_distances_from(const struct me_distances *d, uint32_t block, uint32_t *out);

#endif
