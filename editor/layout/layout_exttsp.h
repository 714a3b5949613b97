// SPDX-License-Identifier: Apache-2.0
/*
 * layout_exttsp - orders blocks by the extended travelling-salesman score.
 *
 * Newell and Pupyrev, "Improved Basic Block Reordering" (IEEE Transactions on Computers, 2020). Takes
 * plain arrays and gives a permutation; knows no CFG. Called by layout_block.
 */
#ifndef ME_LAYOUT_EXTTSP_H
#define ME_LAYOUT_EXTTSP_H

#include <stdint.h>

/* An edge from the end of one block to the start of another. */
struct me_exttsp_link {
	uint32_t from, to;
	double count; /* executions */
	double fall;  /* the worth of `to` right behind `from`; 0: control jumps even then */
};

struct me_exttsp {
	const uint32_t *sizes; /* bytes of each block */
	const double *counts;  /* of each block */
	uint32_t nr_blocks;
	uint32_t entry; /* the block that must come first; MP_NONE: any */
	const struct me_exttsp_link *links;
	uint32_t nr_links;
};

/* me_exttsp_order - @out: a permutation of 0 .. nr_blocks - 1 of high score. Return: 0, -ENOMEM. */
int me_exttsp_order(const struct me_exttsp *problem, uint32_t *out);

/*
 * me_exttsp_score - of @order: the sum of `fall` of each link whose ends are adjacent, and of at
 * most a tenth of the count of each other link. That tenth shrinks with the jump's distance, to 0
 * at 1024 bytes forwards or 640 backwards (section 3 of the paper). @start is scratch for
 * nr_blocks, as is @place.
 */
double me_exttsp_score(const struct me_exttsp *problem, const uint32_t *order, uint64_t *start,
		       uint32_t *place);

#endif
