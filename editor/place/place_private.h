// SPDX-License-Identifier: Apache-2.0
/* place_private - functions that the parts of place share. No other file includes this header. */
#ifndef ME_PLACE_PRIVATE_H
#define ME_PLACE_PRIVATE_H

#include "editor/place/place.h"

/* Bytes of instructions. */
enum {
	ME_SHORT_JUMP = 2,
	ME_LONG_JUMP = 5,
	ME_SHORT_BRANCH = 2,
	ME_LONG_BRANCH = 6,
	ME_ENDBR64_SIZE = 4,
};

/* The copy or stub that the end of @copy leads to on its way to @block; MP_NONE: not copied. */
uint32_t me_place_arrival(const struct mp_cfg *cfg, const struct me_placement *placement,
			  const struct me_copy *copy, uint32_t block);
/* Computed once, because branches are measured many times until all reach. */
void me_place_find_arrivals(const struct mp_cfg *cfg, struct me_placement *placement);
/* The first multiple of 1 << @log2 from @value on. */
uint64_t me_round_up(uint64_t value, uint8_t log2);
/* The bytes of @copy with the branch and the jump at its end, as long as they are so far. */
uint32_t me_copy_size(const struct me_copy *copy);
/*
 * me_place_in_lines - the first address from @vaddr on, less than a line behind it, where the runs and loops lie best
 * that begin with copy @i or with those that control falls into from there. Where control may fall into copy @i, only
 * a loop that is worth no-ops moves. @planned: the plan's blocks.
 */
uint64_t me_place_in_lines(const struct me_placement *placement,
			   const struct me_plan_block *planned, uint32_t i, uint64_t vaddr);
/* The first address from @vaddr on where the plan wants @copy. */
uint64_t me_place_from(const struct me_copy *copy, uint64_t vaddr);
/* Slots of loads of control words that copies placed so far take, in the page of the last one. */
struct me_taken_slots {
	uint64_t page;
	uint32_t slots;
};
/* Notes the loads in @copy. Return: 0, -ENOMEM. */
int me_place_add_loads(const struct mp_cfg *cfg, struct me_placement *placement, uint32_t copy);
/* Takes the slots of the loads in copy @i, which is placed. */
void me_place_take_loads(const struct me_placement *placement, uint32_t i,
			 struct me_taken_slots *taken);
/*
 * me_place_loads - the first address from @vaddr on, less than 64 bytes behind it, where the fewest loads share a slot
 * that lie in copy @i or in those that control falls into from there. Control must not fall into copy @i.
 */
uint64_t me_place_loads(const struct me_placement *placement, uint32_t i, uint64_t vaddr,
			const struct me_taken_slots *taken);
/* Orders struct me_edge_stub. */
int me_edge_stub_compare(const void *a, const void *b);

#endif
