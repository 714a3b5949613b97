// SPDX-License-Identifier: Apache-2.0
/*
 * linger - examines how control enters old blocks, and where it goes from there. patch
 * decides what a patch is.
 */
#include "editor/instrument/linger.h"

#include "editor/evidence/eligible.h"
#include "editor/evidence/patch_fit.h"

/* May control come to the old block and stay there, because no jump fits into it? */
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

enum {
	ARRIVES = 1 << 0, /* at the block's copy */
	STAYS = 1 << 1,	  /* in the old block */
};

/*
 * Control in old code may go on to block @b: to its copy, or to the old block if that
 * has no room for a jump. Return: true if that is new.
 */
static bool come(const struct mp_cfg *cfg, uint32_t b, uint8_t *how)
{
	bool stays = me_block_stays(&cfg->blocks[b]) || !me_patch_fits(cfg, b);
	uint8_t was = how[b];

	how[b] |= ARRIVES | (stays ? STAYS : 0);
	return how[b] != was;
}

static bool come_to_all(const struct mp_cfg *cfg, const struct mp_block *from, uint8_t *how)
{
	bool any = false;

	for (uint32_t e = from->first_edge; e < from->first_edge + from->nr_edges; e++)
		any |= come(cfg, cfg->edges[e].to, how);
	return any;
}

static bool keeps_table(const struct mp_cfg *cfg, const struct mp_block *block)
{
	return block->term == MP_TERM_TABLE &&
	       (block->table == MP_NONE || !me_patch_leads_table(cfg, &cfg->tables[block->table]));
}

void me_linger_arrivals(const struct mp_cfg *cfg, uint32_t f, uint8_t *how)
{
	const struct mp_func *func = &cfg->funcs[f];
	uint32_t end = func->first_block + func->nr_blocks;
	bool changed = true;

	for (uint32_t b = func->first_block; b < end; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		if (block->flags & MP_BLOCK_PROBE || lingers_at(cfg, b))
			how[b] |= STAYS;
		if (keeps_table(cfg, block))
			come_to_all(cfg, block, how);
	}
	while (changed) {
		changed = false;
		for (uint32_t b = func->first_block; b < end; b++)
			if (how[b] & STAYS)
				changed |= come_to_all(cfg, &cfg->blocks[b], how);
	}
	for (uint32_t b = func->first_block; b < end; b++)
		how[b] &= ARRIVES;
}
