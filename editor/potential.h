// SPDX-License-Identifier: Apache-2.0
/*
 * potential - by how much the register of each block may exceed its number, so that what costs most
 * adds nothing.
 *
 * What is added on an edge may as well be added elsewhere, as long as all ways to a block agree: as
 * Ball and Larus ("Efficient path profiling", 1996, section 3.3) move increments off a spanning tree.
 *
 *            A                 Ways meet at D, and each has its number there. If A->D and B->D
 *           / \                cost most, since nothing can stand there but behind a jump, B's
 *          B   |               register has the 1 more already that B->D is to add: what B falls
 *         / \  |               through on its way from A.
 *        C   --D
 */
#ifndef ME_POTENTIAL_H
#define ME_POTENTIAL_H

#include <stdint.h>

/* The most that numbers, and potentials, may reach: their sum fits into 31 bits. */
#define ME_POTENTIAL_MAX ((1 << 30) - 1)

struct me_potential_edge {
	uint32_t from, to; /* vertices */
	uint32_t value;	   /* the number at @to exceeds that at @from by it */
	double price;	   /* of adding anything; HUGE_VAL: impossible, and @value is 0 */
};

/*
 * me_potentials_find - of the edges that cost most first, as many as can be add nothing: @value +
 * @potential[to] - @potential[from] is 0. @edges are sorted; those where nothing can be added must form
 * no circle.
 * Return: 0, -ENOMEM.
 */
int me_potentials_find(struct me_potential_edge *edges, uint32_t nr_edges, uint32_t nr_vertices,
		       uint32_t *potential);

#endif
