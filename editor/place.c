// SPDX-License-Identifier: Apache-2.0
/*
 * place - decides branch forms, lengths and addresses of copied blocks. Does not choose order
 * (layout) nor write bytes (copy). Called by emit.
 */
#include "editor/place.h"

#include <errno.h>
#include <stdlib.h>

enum {
	SHORT_JUMP = 2,
	LONG_JUMP = 5,
	SHORT_BRANCH = 2,
	LONG_BRANCH = 6
};

uint64_t me_place_of(const struct mp_cfg *cfg, const struct me_placement *placement,
		     uint64_t target)
{
	uint32_t block = mp_cfg_block_starting(cfg, target);

	if (block == MP_NONE || placement->of_block[block] == MP_NONE)
		return target;
	return placement->copies[placement->of_block[block]].new_vaddr;
}

/* True where the copy after @copy is a copy of what stood at @target. */
static bool next_is(const struct mp_cfg *cfg, const struct me_placement *placement, uint32_t copy,
		    uint64_t target)
{
	uint32_t block = mp_cfg_block_starting(cfg, target);

	return block != MP_NONE && copy + 1 < placement->nr_copies &&
	       placement->copies[copy + 1].block == block;
}

static void shape_conditional(const struct mp_cfg *cfg, struct me_placement *placement,
			      uint32_t index, bool favour_fall)
{
	struct me_copy *copy = &placement->copies[index];
	const struct mp_block *block = &cfg->blocks[copy->block];
	uint64_t fall = block->vaddr + block->size;

	copy->branch = true;
	copy->branch_target = block->term_target;
	if (next_is(cfg, placement, index, fall)) {
		copy->falls = true;
		return;
	}
	if (next_is(cfg, placement, index, block->term_target)) {
		copy->invert = true;
		copy->branch_target = fall;
		copy->falls = true;
		return;
	}
	/* Neither successor follows: the likelier one gets the branch, the other one the jump. */
	copy->jump = true;
	copy->jump_target = fall;
	if (favour_fall) {
		copy->invert = true;
		copy->branch_target = fall;
		copy->jump_target = block->term_target;
	}
}

static void shape(const struct mp_cfg *cfg, struct me_placement *placement, uint32_t index,
		  const struct me_plan_block *planned)
{
	struct me_copy *copy = &placement->copies[index];
	const struct mp_block *block = &cfg->blocks[copy->block];
	uint64_t end = block->vaddr + block->size;

	switch (block->term) {
	case MP_TERM_COND:
		copy->body_size = block->size - block->term_len;
		shape_conditional(cfg, placement, index, planned->favour_fall);
		break;
	case MP_TERM_JUMP:
	case MP_TERM_TAIL:
		copy->body_size = block->size - block->term_len;
		copy->falls = next_is(cfg, placement, index, block->term_target);
		copy->jump = !copy->falls;
		copy->jump_target = block->term_target;
		break;
	case MP_TERM_FALL:
	case MP_TERM_NORETURN:
		/* A call that we believe not to return gets the jump too: belief is no proof. */
		copy->body_size = block->size;
		copy->falls = next_is(cfg, placement, index, end);
		copy->jump = !copy->falls;
		copy->jump_target = end;
		break;
	default: copy->body_size = block->size; break;
	}
	placement->nr_inverted += copy->invert;
	placement->nr_jumps_added += copy->jump && block->term != MP_TERM_JUMP &&
				     block->term != MP_TERM_TAIL;
	placement->nr_jumps_dropped += !copy->jump &&
				       (block->term == MP_TERM_JUMP || block->term == MP_TERM_TAIL);
}

static uint32_t copy_size(const struct me_copy *copy)
{
	uint32_t size = copy->body_size;

	if (copy->branch)
		size += copy->long_branch ? LONG_BRANCH : SHORT_BRANCH;
	if (copy->jump)
		size += copy->long_jump ? LONG_JUMP : SHORT_JUMP;
	return size;
}

static uint64_t round_up(uint64_t value, uint8_t log2)
{
	uint64_t mask = (UINT64_C(1) << log2) - 1;

	return (value + mask) & ~mask;
}

/* Longer runs are not kept together beyond this. */
#define MAX_RUN_LINES 2

/* Would the run of copy @i lie in more lines at @vaddr than it needs? */
static bool straddles(const struct me_placement *placement, uint32_t i, uint64_t vaddr)
{
	uint64_t line = UINT64_C(1) << placement->line_log2, size = 0;

	for (uint32_t k = 0; k < placement->copies[i].run && i + k < placement->nr_copies; k++)
		size += copy_size(&placement->copies[i + k]);
	if (size > MAX_RUN_LINES * line)
		size = MAX_RUN_LINES * line;
	return size && ((vaddr & (line - 1)) + size - 1) / line > (size - 1) / line;
}

/* Would an instruction behind an fldcw cross a line, if what falls from one copy into the next, from
 * @i on, began at @vaddr? */
static bool follower_crosses(const struct me_placement *placement, uint32_t i, uint64_t vaddr)
{
	for (;; i++) {
		const struct me_copy *copy = &placement->copies[i];

		for (uint8_t k = 0; k < copy->followers.nr; k++)
			if ((vaddr + copy->followers.at[k].first) / ME_FOLLOWER_LINE !=
			    (vaddr + copy->followers.at[k].last) / ME_FOLLOWER_LINE)
				return true;
		vaddr += copy_size(copy);
		if (!copy->falls || i + 1 == placement->nr_copies)
			return false;
		vaddr = round_up(vaddr, placement->copies[i + 1].align_log2);
	}
}

/* Nothing falls into copy @i: the first place from @vaddr on where that does not happen. */
static uint64_t avoid_crossing(const struct me_placement *placement, uint32_t i, uint64_t vaddr)
{
	uint64_t step = UINT64_C(1) << placement->copies[i].align_log2;

	for (uint64_t at = vaddr; at < vaddr + ME_FOLLOWER_LINE; at += step)
		if (!follower_crosses(placement, i, at))
			return at;
	return vaddr;
}

static void assign_addresses(struct me_placement *placement)
{
	uint64_t vaddr = placement->base;

	for (uint32_t i = 0; i < placement->nr_copies; i++) {
		struct me_copy *copy = &placement->copies[i];

		vaddr = round_up(vaddr, copy->align_log2);
		if (copy->run && straddles(placement, i, vaddr))
			vaddr = round_up(vaddr, placement->line_log2);
		if (placement->any_followers && (i == 0 || !copy[-1].falls))
			vaddr = avoid_crossing(placement, i, vaddr);
		copy->new_vaddr = vaddr;
		copy->new_size = copy_size(copy);
		vaddr += copy->new_size;
	}
	placement->end = vaddr;
}

static bool reaches_short(uint64_t from_end, uint64_t target)
{
	int64_t disp = (int64_t)(target - from_end);

	return disp >= INT8_MIN && disp <= INT8_MAX;
}

/* Lengthen every branch that does not reach. Return: whether any grew. */
static bool grow(const struct mp_cfg *cfg, struct me_placement *placement)
{
	bool grew = false;

	for (uint32_t i = 0; i < placement->nr_copies; i++) {
		struct me_copy *copy = &placement->copies[i];
		uint64_t branch_end = copy->new_vaddr + copy->body_size +
				      (copy->long_branch ? LONG_BRANCH : SHORT_BRANCH);

		if (copy->branch && !copy->long_branch &&
		    !reaches_short(branch_end, me_place_of(cfg, placement, copy->branch_target)))
			copy->long_branch = grew = true;
		if (copy->jump && !copy->long_jump &&
		    !reaches_short(copy->new_vaddr + copy->new_size,
				   me_place_of(cfg, placement, copy->jump_target)))
			copy->long_jump = grew = true;
	}
	return grew;
}

static uint8_t alignment(const struct mp_cfg *cfg, const struct me_plan_block *planned,
			 const struct me_pointers *pointers)
{
	const struct mp_block *block = &cfg->blocks[planned->block];
	uint8_t keep = 0;

	if (block->flags & MP_BLOCK_ENTRY && pointers->redirected[block->func]) {
		while (keep < 4 && !(block->vaddr >> keep & 1))
			keep++;
	}
	return planned->align_log2 > keep ? planned->align_log2 : keep;
}

int me_place(const struct mp_cfg *cfg, const struct me_plan *plan,
	     const struct me_pointers *pointers, uint64_t base, struct me_placement *out,
	     struct mp_err *err)
{
	*out = (struct me_placement){.base = base,
				     .end = base,
				     .line_log2 = plan->line_log2,
				     .nr_copies = plan->nr_blocks,
				     .first_warm = plan->nr_blocks};
	out->copies = calloc(plan->nr_blocks + 1, sizeof(*out->copies));
	out->of_block = malloc((cfg->nr_blocks + 1) * sizeof(*out->of_block));
	if (!out->copies || !out->of_block) {
		me_placement_fini(out);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		out->of_block[b] = MP_NONE;
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		out->copies[i].block = plan->blocks[i].block;
		out->copies[i].align_log2 = alignment(cfg, &plan->blocks[i], pointers);
		out->copies[i].clone = plan->blocks[i].clone;
		out->copies[i].run = plan->line_log2 ? plan->blocks[i].run : 0;
		if (!plan->blocks[i].clone)
			out->of_block[plan->blocks[i].block] = i;
		if (plan->blocks[i].zone == ME_ZONE_WARM && out->first_warm == plan->nr_blocks)
			out->first_warm = i;
		if (plan->blocks[i].zone == ME_ZONE_HOT) {
			me_followers_find(cfg, plan->blocks[i].block, &out->copies[i].followers);
			out->any_followers |= out->copies[i].followers.nr > 0;
		}
	}
	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		shape(cfg, out, i, &plan->blocks[i]);
	do {
		assign_addresses(out);
	} while (grow(cfg, out));
	out->text_end = plan->page_log2 ? round_up(out->end, plan->page_log2) : out->end;
	return 0;
}

void me_placement_fini(struct me_placement *placement)
{
	free(placement->copies);
	free(placement->of_block);
	placement->copies = NULL;
	placement->of_block = NULL;
}
