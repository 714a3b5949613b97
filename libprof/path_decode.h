// SPDX-License-Identifier: Apache-2.0
/*
 * path_decode - from a block and its register back to the way that control took to it: the greedy
 * algorithm of Ball and Larus (1996), upward.
 */
#ifndef MP_PATH_DECODE_H
#define MP_PATH_DECODE_H

#include <stdint.h>

#include "libprof/path_table.h"

/* Longer paths are none: between two calls, and without a loop's back edge. */
#define MP_PATH_MAX_EDGES 1024

/* Starts as zeros, may be used again and again. Ownership: mp_path_fini(). */
struct mp_path {
	uint32_t *edges; /* of the table, in the order control took them; the last leads to @block */
	uint32_t nr_edges; /* 0: the path starts at @block, by whatever way */
	uint32_t block;	   /* where it was sampled */
	uint32_t room;
};

/*
 * mp_path_decode - @reg_value: of the register that @block names; any value where it names none.
 * Return: 0, -EINVAL (no path has this number here), -ENOMEM. @out is that of a path after 0 only.
 */
int mp_path_decode(const struct mp_path_table *table, uint32_t block, uint64_t reg_value,
		   struct mp_path *out);
void mp_path_fini(struct mp_path *path);

#endif
