// SPDX-License-Identifier: Apache-2.0
/*
 * potential - decides by how much the register of each block exceeds its number, so that the
 * costliest edges add nothing. Called by number_stub.
 *
 * An increment on an edge can be made elsewhere if all paths to a block agree. Ball and Larus
 * move increments off a spanning tree in this way ("Efficient path profiling", 1996, section
 * 3.3).
 *
 *            A                 Paths merge at D, and each has its number there. If A->D and B->D
 *           / \                cost most, because a stub there needs a jump, B's register already
 *          B   |               has the 1 that B->D would add: A->B adds it, where control falls
 *         / \  |               through.
 *        C   --D
 */
#ifndef ME_POTENTIAL_H
#define ME_POTENTIAL_H

#include <stdint.h>

/* Limit on numbers and on potentials: their sum fits into 31 bits. */
#define ME_POTENTIAL_MAX ((1 << 30) - 1)

struct me_potential_edge {
	uint32_t from, to; /* vertices */
	uint32_t value;	   /* number at @to minus number at @from */
	double price;	   /* cost of adding anything; HUGE_VAL: impossible, @value is 0 */
};

/*
 * me_potentials_find - finds potentials so that as many edges as possible add nothing, the
 * costliest first: @value + @potential[to] - @potential[from] is 0. Sorts @edges. Edges on
 * which nothing can be added must form no cycle.
 * Return: 0, -ENOMEM.
 */
int me_potentials_find(struct me_potential_edge *edges, uint32_t nr_edges, uint32_t nr_vertices,
		       uint32_t *potential);

#endif
