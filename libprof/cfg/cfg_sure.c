// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_sure - decides which blocks of functions that cannot be moved are certainly code.
 * Data between a function's instructions decodes as instructions, too. A block is certain
 * if control reaches it from the entry, or from a label whose address stands in data only.
 * An address in an operand may be that of a constant. Called by cfg.
 */
#include <errno.h>
#include <stdlib.h>

#include "libprof/cfg/cfg_private.h"

static bool is_root(const struct mp_block *block)
{
	if (block->flags & (MP_BLOCK_ENTRY | MP_BLOCK_LANDING_PAD | MP_BLOCK_OTHER_ENTRY))
		return true;
	return (block->flags & MP_BLOCK_ADDRESS_TAKEN) && !(block->flags & MP_BLOCK_NAMED);
}

static void mark_func(struct mp_cfg *cfg, const struct mp_func *func, uint32_t *stack)
{
	uint32_t depth = 0;

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		if (!is_root(&cfg->blocks[b]) || (cfg->blocks[b].flags & MP_BLOCK_SURE))
			continue;
		cfg->blocks[b].flags |= MP_BLOCK_SURE;
		stack[depth++] = b;
		while (depth) {
			const struct mp_block *from = &cfg->blocks[stack[--depth]];

			for (uint32_t e = from->first_edge; e < from->first_edge + from->nr_edges;
			     e++) {
				struct mp_block *to = &cfg->blocks[cfg->edges[e].to];

				if (to->flags & MP_BLOCK_SURE)
					continue;
				to->flags |= MP_BLOCK_SURE;
				stack[depth++] = cfg->edges[e].to;
			}
		}
	}
}

int mp_cfg_mark_sure(struct mp_cfg_build *b)
{
	struct mp_cfg *cfg = b->cfg;
	uint32_t *stack, max = 0;

	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		if (cfg->funcs[f].nr_blocks > max)
			max = cfg->funcs[f].nr_blocks;
	stack = malloc(((size_t)max + 1) * sizeof(*stack));
	if (!stack)
		return -ENOMEM;
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		if (cfg->funcs[f].problem == MP_PROBLEM_MID_ESCAPE ||
		    cfg->funcs[f].problem == MP_PROBLEM_UNRESOLVED_JUMP)
			mark_func(cfg, &cfg->funcs[f], stack);
	free(stack);
	return 0;
}

bool mp_cfg_block_is_sure(const struct mp_cfg *cfg, uint32_t block)
{
	const struct mp_block *b = &cfg->blocks[block];
	const struct mp_func *f = &cfg->funcs[b->func];

	return f->problem == MP_PROBLEM_NONE ||
	       ((b->flags & MP_BLOCK_SURE) && !(f->flags & MP_FUNC_OFF_GRID));
}
