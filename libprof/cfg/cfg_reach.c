// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_reach - finds functions with code that no known way leads to.
 * Such code stands behind a return or a jump, and no branch, table or label leads to it.
 * Arithmetic may: slots of a fixed stride, or bytes that a callee skips. Compilers leave no
 * such code, except behind a call that does not return without their knowledge. Called by
 * cfg at the end.
 */
#include <errno.h>

#include "libprof/cfg/cfg_private.h"

/* Traps fill space that control never reaches, as no-ops do. */
static bool is_trap(const struct mp_block *block)
{
	return block->term == MP_TERM_TRAP && block->nr_insns == 1;
}

static void judge(struct mp_cfg_build *b, struct mp_func *func, uint8_t *reached)
{
	const struct mp_cfg *cfg = b->cfg;
	uint32_t first = func->first_block, end = first + func->nr_blocks;

	for (uint32_t i = first; i < end; i++)
		for (uint32_t e = 0; e < cfg->blocks[i].nr_edges; e++)
			reached[cfg->edges[cfg->blocks[i].first_edge + e].to - first] = 1;
	for (uint32_t i = first; i < end; i++) {
		const struct mp_block *block = &cfg->blocks[i];

		if (reached[i - first] || (block->flags & MP_BLOCK_PADDING) || is_trap(block) ||
		    mp_bit(b->index->targets, mp_space_at(b->index, block->vaddr)))
			continue;
		/* The compiler believed that the call returns, so it left code behind it. */
		if (i > first && block[-1].term == MP_TERM_NORETURN)
			continue;
		mp_func_problem(func, MP_PROBLEM_UNREACHED, block->vaddr);
		break;
	}
	memset(reached, 0, func->nr_blocks);
}

int mp_cfg_find_unreached(struct mp_cfg_build *b)
{
	uint32_t max = 0;
	uint8_t *reached;

	for (uint32_t f = 0; f < b->cfg->nr_funcs; f++)
		if (b->cfg->funcs[f].nr_blocks > max)
			max = b->cfg->funcs[f].nr_blocks;
	reached = calloc((size_t)max + 1, 1);
	if (!reached)
		return -ENOMEM;
	for (uint32_t f = 0; f < b->cfg->nr_funcs; f++)
		if (b->cfg->funcs[f].problem == MP_PROBLEM_NONE)
			judge(b, &b->cfg->funcs[f], reached);
	free(reached);
	return 0;
}
