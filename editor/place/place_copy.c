// SPDX-License-Identifier: Apache-2.0
/* place_copy - sizes and alignment of one copy. */
#include "editor/place/place_private.h"

uint32_t me_place_end(const struct mp_cfg *cfg, uint32_t from, uint64_t target)
{
	const struct mp_block *block = &cfg->blocks[from];

	/* A direct branch has at most two edges; those of a table are never asked for. */
	for (uint32_t e = 0; e < block->nr_edges && e < 2; e++) {
		uint32_t to = cfg->edges[block->first_edge + e].to;

		if (cfg->blocks[to].vaddr == target)
			return to;
	}
	return mp_cfg_block_starting(cfg, target);
}

uint32_t me_copy_size(const struct me_copy *copy)
{
	uint32_t size = copy->body_size + copy->end_size;

	if (copy->branch)
		size += copy->long_branch ? ME_LONG_BRANCH : ME_SHORT_BRANCH;
	if (copy->jump)
		size += copy->long_jump ? ME_LONG_JUMP : ME_SHORT_JUMP;
	return size;
}

uint64_t me_round_up(uint64_t value, uint8_t log2)
{
	uint64_t mask = (UINT64_C(1) << log2) - 1;

	return (value + mask) & ~mask;
}

/* The first address from @vaddr on that is @offset modulo 1 << @log2. */
static uint64_t next_at(uint64_t vaddr, uint8_t log2, uint8_t offset)
{
	return offset ? me_round_up(vaddr - offset, log2) + offset : me_round_up(vaddr, log2);
}

uint64_t me_place_from(const struct me_copy *copy, uint64_t vaddr)
{
	if (copy->new_line)
		vaddr = me_round_up(vaddr, ME_LINE_LOG2);
	return next_at(vaddr, copy->align_log2, copy->align_offset);
}
