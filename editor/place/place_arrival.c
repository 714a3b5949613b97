// SPDX-License-Identifier: Apache-2.0
/* place_arrival - where the end of a copy leads: to a copy, a stub before it, or old code. */
#include <stdlib.h>

#include "editor/place/place_private.h"

int me_edge_stub_compare(const void *a, const void *b)
{
	const struct me_edge_stub *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

/* The same as me_place_arrival() inside a version. A stub at an exit precedes its block. */
static uint32_t arrival_in_version(const struct me_placement *placement, const struct me_copy *copy,
				   uint32_t block)
{
	uint32_t to = placement->of_version[copy->version][block];

	if (copy->stub && placement->stubs[copy->stub - 1].arrivals == ME_STUB_ALL)
		to++;
	return to;
}

static int compare_planned(const void *key, const void *entry)
{
	const uint32_t *at = key;
	const struct me_unsaved *u = entry;

	return *at < u->planned ? -1 : *at > u->planned;
}

const struct me_unsaved *me_place_unsaved(const struct me_placement *placement,
					  const struct me_copy *copy)
{
	uint32_t at = (uint32_t)(copy - placement->copies);

	if (!copy->unsaved)
		return NULL;
	return bsearch(&at, placement->unsaved, placement->nr_unsaved, sizeof(*placement->unsaved),
		       compare_planned);
}

/*
 * Where @copy leads on its way to @block if registers may not be saved there: to a copy in the same state, or to code
 * that saves them. Return: MP_NONE: what goes for other copies goes for this one.
 */
static uint32_t arrival_unsaved(const struct me_placement *placement, const struct me_copy *copy,
				uint32_t block)
{
	if (copy->saves)
		return MP_NONE;
	if (placement->unsaved_copy[block] != MP_NONE)
		return placement->unsaved_copy[block];
	return me_place_unsaved(placement, copy)->behind ? placement->saves_before[block] : MP_NONE;
}

uint32_t me_place_arrival(const struct mp_cfg *cfg, const struct me_placement *placement,
			  const struct me_copy *copy, uint32_t block)
{
	struct me_edge_stub key = {copy->block, block, 0}, *found;

	if (copy->unsaved && cfg->blocks[copy->block].func == cfg->blocks[block].func) {
		uint32_t to = arrival_unsaved(placement, copy, block);

		if (to != MP_NONE)
			return to;
	}
	if (copy->version != ME_VERSION_NEW &&
	    cfg->blocks[copy->block].func == cfg->blocks[block].func)
		return arrival_in_version(placement, copy, block);
	if (copy->stub) { /* behind a stub, control continues */
		uint8_t arrivals = placement->stubs[copy->stub - 1].arrivals;

		return arrivals == ME_STUB_ALL || arrivals == ME_STUB_POLL
			       ? placement->copy_of_block[block]
			       : placement->target_from_inside[block];
	}
	if (cfg->blocks[copy->block].func != cfg->blocks[block].func)
		return placement->target_from_outside[block];
	found = placement->nr_edge_stubs
			? bsearch(&key, placement->edge_stubs, placement->nr_edge_stubs,
				  sizeof(key), me_edge_stub_compare)
			: NULL;
	return found ? found->copy : placement->target_from_inside[block];
}

static uint32_t arrival_of(const struct mp_cfg *cfg, const struct me_placement *placement,
			   const struct me_copy *copy, uint64_t target)
{
	uint32_t block = me_place_end(cfg, copy->block, target);

	return block == MP_NONE ? MP_NONE : me_place_arrival(cfg, placement, copy, block);
}

void me_place_find_arrivals(const struct mp_cfg *cfg, struct me_placement *placement)
{
	for (uint32_t i = 0; i < placement->nr_copies; i++) {
		struct me_copy *copy = &placement->copies[i];

		if (copy->branch)
			copy->branch_to =
				arrival_of(cfg, placement, copy, me_copy_branch_target(cfg, copy));
		if (copy->jump)
			copy->jump_to =
				arrival_of(cfg, placement, copy, me_copy_jump_target(cfg, copy));
	}
}

uint64_t me_copy_branch_target(const struct mp_cfg *cfg, const struct me_copy *copy)
{
	const struct mp_block *block = &cfg->blocks[copy->block];

	return copy->invert ? block->vaddr + block->size : mp_block_target(block);
}

uint64_t me_copy_jump_target(const struct mp_cfg *cfg, const struct me_copy *copy)
{
	const struct mp_block *block = &cfg->blocks[copy->block];

	if (copy->stub || copy->saves)
		return block->vaddr;
	/* The jump goes where the conditional branch does not. */
	if (block->term == MP_TERM_JUMP || block->term == MP_TERM_TAIL ||
	    (block->term == MP_TERM_COND && copy->invert))
		return mp_block_target(block);
	return block->vaddr + block->size;
}

uint64_t me_place_branch(const struct mp_cfg *cfg, const struct me_placement *placement,
			 const struct me_copy *copy)
{
	return copy->branch_to == MP_NONE ? me_copy_branch_target(cfg, copy)
					  : placement->copies[copy->branch_to].new_vaddr;
}

uint64_t me_place_jump(const struct mp_cfg *cfg, const struct me_placement *placement,
		       const struct me_copy *copy)
{
	return copy->jump_to == MP_NONE ? me_copy_jump_target(cfg, copy)
					: placement->copies[copy->jump_to].new_vaddr;
}
