// SPDX-License-Identifier: Apache-2.0
/*
 * path_decode - from a block and its register value back to the path that led there: the
 * greedy algorithm of Ball and Larus (1996), run backwards.
 */
#ifndef MP_PATH_DECODE_H
#define MP_PATH_DECODE_H

#include <stdint.h>

#include "libprof/note/path_table.h"

/* No path is longer: paths end at calls and at back edges of loops. */
#define MP_PATH_MAX_EDGES 1024

/* Starts as zeros and may be reused. Ownership: mp_path_fini(). */
struct mp_path {
	uint32_t *edges;   /* edges of the table in execution order; the last one leads to @block */
	uint32_t nr_edges; /* 0: the path starts at @block; the edge to it is unknown */
	uint32_t block;	   /* the sampled block */
	uint32_t room;
};

/*
 * mp_path_decode - @reg_value: of the block's register; any value if the block has no
 * register.
 * Return: 0, -EINVAL (no path has this number here), -ENOMEM. @out holds a path only after
 * 0.
 */
int mp_path_decode(const struct mp_path_table *table, uint32_t block, uint64_t reg_value,
		   struct mp_path *out);
void mp_path_fini(struct mp_path *path);

#endif
