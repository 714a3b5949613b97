// SPDX-License-Identifier: Apache-2.0
/*
 * order_exttsp - orders blocks by the extended travelling-salesman score.
 *
 * Newell and Pupyrev, "Improved Basic Block Reordering" (IEEE Transactions on Computers, 2020). Takes
 * plain arrays and gives a permutation; knows no CFG. Called by the editor's layout_block and by the
 * export for Propeller.
 */
#ifndef MP_ORDER_EXTTSP_H
#define MP_ORDER_EXTTSP_H

#include <stdint.h>

/* An edge from the end of one block to the start of another. */
struct mp_exttsp_link {
	uint32_t from, to;
	double count; /* executions */
	double fall;  /* the worth of `to` right behind `from`; 0: control jumps even then */
};

struct mp_exttsp {
	const uint32_t *sizes; /* bytes of each block */
	const double *counts;  /* of each block */
	uint32_t nr_blocks;
	uint32_t entry; /* the block that must come first; MP_NONE: any */
	const struct mp_exttsp_link *links;
	uint32_t nr_links;
};

/* mp_exttsp_order - @out: a permutation of 0 .. nr_blocks - 1 of high score. Return: 0, -ENOMEM. */
int mp_exttsp_order(const struct mp_exttsp *problem, uint32_t *out);

/*
 * mp_exttsp_score - of @order: the sum of `fall` of each link whose ends are adjacent, and of at
 * most a tenth of the count of each other link. That tenth shrinks with the jump's distance, to 0
 * at 1024 bytes forwards or 640 backwards (section 3 of the paper). @start is scratch for
 * nr_blocks, as is @place.
 */
double mp_exttsp_score(const struct mp_exttsp *problem, const uint32_t *order, uint64_t *start,
		       uint32_t *place);

#endif
