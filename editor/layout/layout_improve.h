// SPDX-License-Identifier: Apache-2.0
/*
 * layout_improve - exchanges links between blocks for others that are worth more together.
 *
 * A solution is a set of chosen links: each block has at most one of them to it and one from it, and
 * they form no cycle. Takes plain arrays; knows no CFG. Called by layout_block.
 */
#ifndef ME_LAYOUT_IMPROVE_H
#define ME_LAYOUT_IMPROVE_H

#include <stdbool.h>
#include <stdint.h>

struct me_improve_link {
	uint32_t from, to; /* blocks */
	double gain;	   /* of `to` right behind `from`; at least 0 */
	bool chosen;
};

/*
 * me_links_improve - change which of @links are chosen, which are a solution, so that they are worth more, or the
 * same if nothing better is found. @nr_blocks: all blocks are smaller. Return: 0, -ENOMEM.
 */
int me_links_improve(struct me_improve_link *links, uint32_t nr_links, uint32_t nr_blocks);

#endif
