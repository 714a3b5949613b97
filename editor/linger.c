// SPDX-License-Identifier: Apache-2.0
/*
 * linger - looks at the entries of one function. What a patch is, patch knows. Called by instrument and
 * number.
 */
#include "editor/linger.h"

#include "editor/eligible.h"
#include "editor/patch.h"

/* May control that arrives at the old block stay there, since no jump has room in it? */
static bool lingers_at(const struct mp_cfg *cfg, uint32_t b)
{
	const struct mp_block *block = &cfg->blocks[b];
	const struct mp_func *func = &cfg->funcs[block->func];

	if (me_block_stays(block) || me_patch_fits(cfg, b))
		return false;
	if (block->flags & MP_BLOCK_ENTRY)
		return func->flags & (MP_FUNC_ADDRESS_TAKEN | MP_FUNC_EXPORTED);
	if (block->flags & (MP_BLOCK_ADDRESS_TAKEN | MP_BLOCK_OTHER_ENTRY))
		return true;
	return false;
}

bool me_lingers(const struct mp_cfg *cfg, uint32_t f)
{
	const struct mp_func *func = &cfg->funcs[f];

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		if (lingers_at(cfg, b))
			return true;
		if (block->term != MP_TERM_TABLE || block->table == MP_NONE ||
		    me_patch_leads_table(cfg, &cfg->tables[block->table]))
			continue;
		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
			if (!me_block_stays(&cfg->blocks[cfg->edges[e].to]) &&
			    !me_patch_fits(cfg, cfg->edges[e].to))
				return true;
	}
	return false;
}
