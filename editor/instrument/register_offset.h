// SPDX-License-Identifier: Apache-2.0
/*
 * register_offset - decides by how much the register of each block exceeds its number, so that the
 * costliest edges add nothing. Called by number_stub.
 *
 * An increment can be moved from an edge to other edges if each path to a block still adds the same
 * sum. Ball and Larus move increments off a spanning tree in this way ("Efficient path profiling",
 * 1996, section 3.3).
 *
 *            A                 Paths merge at D, and each has its number there. If A->D and B->D
 *           / \                cost most, because a stub there needs a jump, B's register already
 *          B   |               has the 1 that B->D would add: A->B adds it, where control falls
 *         / \  |               through.
 *        C   --D
 */
#ifndef ME_REGISTER_OFFSET_H
#define ME_REGISTER_OFFSET_H

#include <stdint.h>

/* Limit on numbers and on offsets: their sum fits into 31 bits. */
#define ME_REGISTER_OFFSET_MAX ((1 << 30) - 1)

struct me_register_offset_edge {
	uint32_t from, to; /* vertices */
	uint32_t value;	   /* number at @to minus number at @from */
	double price;	   /* cost of adding anything; HUGE_VAL: impossible, @value is 0 */
};

/*
 * me_register_offsets_find - finds offsets so that as many edges as possible add nothing, the
 * costliest first: @value + @offset[to] - @offset[from] is 0. Sorts @edges. Edges on
 * which nothing can be added must form no cycle.
 * Return: 0, -ENOMEM.
 */
int me_register_offsets_find(struct me_register_offset_edge *edges, uint32_t nr_edges,
			     uint32_t nr_vertices, uint32_t *offset);

#endif
