// SPDX-License-Identifier: Apache-2.0
/*
 * debug_moves - where code went, asked by old addresses: what debug information says of an old
 * range holds for its copies.
 *
 * Within a copy, addresses up to the branch at its end keep their distance from its start. The
 * branch, in whatever form, stands for the old one, and a jump that was added for what it follows.
 */
#ifndef ME_DEBUG_MOVES_H
#define ME_DEBUG_MOVES_H

#include "editor/place.h"

struct me_range {
	uint64_t lo, hi; /* [lo, hi) */
};

struct me_ranges {
	struct me_range *ranges;
	uint32_t nr, room;
	bool failed; /* out of memory; sticks */
};

struct me_move {
	uint64_t old_vaddr, new_vaddr;
	uint64_t new_end; /* with the padding that control runs through behind it */
	uint32_t old_size;
	uint32_t body_size; /* of the same distances */
	uint32_t new_size;
	bool clone;
};

struct me_moves {
	struct me_move *by_old; /* by old address; a block's clones behind the copy proper */
	uint32_t nr;
	uint64_t first_old, last_old; /* [first, last): all are within */
	uint64_t *left; /* blocks of functions with copies that have none, padding apart */
	uint32_t nr_left;
};

/* Return: 0, -ENOMEM. Ownership: me_moves_fini(@out). */
int me_moves_init(struct me_moves *out, const struct mp_cfg *cfg,
		  const struct me_placement *placement);
void me_moves_fini(struct me_moves *moves);

/* Is anything of [@lo, @hi) copied? */
bool me_moves_any(const struct me_moves *moves, uint64_t lo, uint64_t hi);
/* Is code of [@lo, @hi), where something is copied, left behind? */
bool me_moves_leave(const struct me_moves *moves, uint64_t lo, uint64_t hi);
/* The first move that ends above @lo; moves->nr: none. */
uint32_t me_moves_from(const struct me_moves *moves, uint64_t lo);
/* Where the copy proper of the instruction at @old lies. Return: false if it was not copied. */
bool me_moves_address(const struct me_moves *moves, uint64_t old, uint64_t *new_vaddr);
/* The same within one copy: false too where the instruction is not there any more. */
bool me_move_address(const struct me_move *move, uint64_t old, uint64_t *new_vaddr);
/* Append the copies of [@lo, @hi), in no order. */
void me_moves_map(const struct me_moves *moves, uint64_t lo, uint64_t hi, struct me_ranges *out);

void me_ranges_add(struct me_ranges *ranges, uint64_t lo, uint64_t hi);
/* Sort from index @first on, and join what touches or overlaps. */
void me_ranges_join(struct me_ranges *ranges, uint32_t first);
void me_ranges_fini(struct me_ranges *ranges);

#endif
