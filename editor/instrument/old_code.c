// SPDX-License-Identifier: Apache-2.0
/*
 * old_code - examines how control enters old blocks, and where it goes from there. patch
 * decides what a patch is.
 */
#include "editor/instrument/old_code.h"

#include "editor/evidence/eligible.h"
#include "editor/evidence/patch_fit.h"

/*
 * Will a jump to its copy stand at the old block, or, if that is only a function's first instruction, at the block
 * behind it? patch asks the same.
 */
static bool has_room(const struct mp_cfg *cfg, uint32_t b)
{
	return me_patch_fits(cfg, b) || me_patch_fits_padding(cfg, b) ||
	       me_patch_fits_behind(cfg, b);
}

/* Do others enter function @f at its old place? */
static bool is_entered(const struct mp_func *func)
{
	return func->flags & (MP_FUNC_ADDRESS_TAKEN | MP_FUNC_EXPORTED);
}

bool me_old_code_is_head(const struct mp_cfg *cfg, uint32_t b)
{
	const struct mp_block *block = &cfg->blocks[b];

	if (block->func == MP_NONE || !is_entered(&cfg->funcs[block->func]))
		return false;
	return mp_cfg_is_first_insn(cfg, b) || (block->flags & MP_BLOCK_BEHIND_ENTRY &&
						(me_block_stays(block) || !has_room(cfg, b)));
}

/* Control in the head of a function, of which @b is the last block: does it always come to jumps to copies then? */
static bool leads_on(const struct mp_cfg *cfg, uint32_t b)
{
	const struct mp_block *block = &cfg->blocks[b];

	/* All ways out of the block have an edge then. */
	if (block->term == MP_TERM_COND ? block->nr_edges != 2
					: block->nr_edges != 1 || (block->term != MP_TERM_FALL &&
								   block->term != MP_TERM_JUMP))
		return false;
	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		if (me_block_stays(&cfg->blocks[cfg->edges[e].to]) ||
		    !has_room(cfg, cfg->edges[e].to))
			return false;
	return true;
}

/* May control come to the old block and stay there, because no jump fits into it? */
static bool may_run_at(const struct mp_cfg *cfg, uint32_t b)
{
	const struct mp_block *block = &cfg->blocks[b];
	const struct mp_func *func = &cfg->funcs[block->func];

	if (me_block_stays(block) || has_room(cfg, b))
		return false;
	if (block->flags & MP_BLOCK_ENTRY)
		return is_entered(func) && !(mp_cfg_is_first_insn(cfg, b) && leads_on(cfg, b + 1));
	if (block->flags & (MP_BLOCK_ADDRESS_TAKEN | MP_BLOCK_OTHER_ENTRY))
		return true;
	return false;
}

bool me_old_code_may_run(const struct mp_cfg *cfg, uint32_t f)
{
	const struct mp_func *func = &cfg->funcs[f];

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		if (may_run_at(cfg, b))
			return true;
		if (block->term != MP_TERM_TABLE || block->table == MP_NONE ||
		    me_patch_leads_table(cfg, &cfg->tables[block->table]))
			continue;
		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
			if (!me_block_stays(&cfg->blocks[cfg->edges[e].to]) &&
			    !has_room(cfg, cfg->edges[e].to))
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
static bool mark_arrival(const struct mp_cfg *cfg, uint32_t b, uint8_t *arrival_flags)
{
	bool stays = me_block_stays(&cfg->blocks[b]) || !has_room(cfg, b);
	uint8_t was = arrival_flags[b];

	arrival_flags[b] |= ARRIVES | (stays ? STAYS : 0);
	return arrival_flags[b] != was;
}

static bool mark_successors(const struct mp_cfg *cfg, const struct mp_block *from,
			    uint8_t *arrival_flags)
{
	bool any = false;

	for (uint32_t e = from->first_edge; e < from->first_edge + from->nr_edges; e++)
		any |= mark_arrival(cfg, cfg->edges[e].to, arrival_flags);
	return any;
}

static bool keeps_table(const struct mp_cfg *cfg, const struct mp_block *block)
{
	return block->term == MP_TERM_TABLE &&
	       (block->table == MP_NONE || !me_patch_leads_table(cfg, &cfg->tables[block->table]));
}

void me_old_code_find_arrivals(const struct mp_cfg *cfg, uint32_t f, uint8_t *arrival_flags)
{
	const struct mp_func *func = &cfg->funcs[f];
	uint32_t end = func->first_block + func->nr_blocks;
	bool changed = true;

	for (uint32_t b = func->first_block; b < end; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		if (block->flags & MP_BLOCK_PROBE || may_run_at(cfg, b))
			arrival_flags[b] |= STAYS;
		if (keeps_table(cfg, block))
			mark_successors(cfg, block, arrival_flags);
	}
	while (changed) {
		changed = false;
		for (uint32_t b = func->first_block; b < end; b++)
			if (arrival_flags[b] & STAYS)
				changed |= mark_successors(cfg, &cfg->blocks[b], arrival_flags);
	}
	for (uint32_t b = func->first_block; b < end; b++)
		arrival_flags[b] &= ARRIVES;
}
