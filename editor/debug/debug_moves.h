// SPDX-License-Identifier: Apache-2.0
/*
 * debug_moves - where code went, by old address. Debug information about an old range
 * also holds for its copies. Called by debug_*.
 *
 * In a copy, addresses up to the final branch keep their distance from the start. The
 * new branch, in whatever form, corresponds to the old one. A jump that was added
 * belongs to the instruction before it.
 */
#ifndef ME_DEBUG_MOVES_H
#define ME_DEBUG_MOVES_H

#include "editor/place/place.h"

struct me_range {
	uint64_t lo, hi; /* [lo, hi) */
};

struct me_ranges {
	struct me_range *ranges;
	uint32_t nr, cap;
	bool failed; /* out of memory; stays set */
};

struct me_move {
	uint64_t old_vaddr, new_vaddr;
	uint64_t new_end; /* includes padding after the copy that control runs through */
	uint32_t old_size;
	uint32_t body_size; /* bytes before the final branch: distances are unchanged */
	uint32_t new_size;
	bool clone;
	bool inlined; /* a called function's code behind the body: the call's line, no other facts */
	bool apart;   /* such code alone, which stands for the call */
};

struct me_moves {
	struct me_move *by_old; /* by old address; a block's main copy comes before its clones */
	uint32_t nr;
	uint64_t first_old, last_old; /* all moves lie in [first_old, last_old) */
	uint64_t first_new;	      /* no copy lies below */
	uint64_t *uncopied; /* blocks without a copy in functions with copies; not padding */
	uint32_t nr_uncopied;
};

/*
 * me_moves_init - the moves of @placement. Return: 0, -ENOMEM. Ownership:
 * me_moves_fini(@out), after an error too.
 */
int me_moves_init(struct me_moves *out, const struct mp_cfg *cfg,
		  const struct me_placement *placement);
void me_moves_fini(struct me_moves *moves);

/* me_moves_any - was any code of [@lo, @hi) copied? */
bool me_moves_any(const struct me_moves *moves, uint64_t lo, uint64_t hi);
/* me_moves_any_uncopied - for functions with copies: was any code of [@lo, @hi) not copied? */
bool me_moves_any_uncopied(const struct me_moves *moves, uint64_t lo, uint64_t hi);
/* me_moves_from - index of the first move whose old code ends above @lo; moves->nr: none. */
uint32_t me_moves_from(const struct me_moves *moves, uint64_t lo);
/*
 * me_moves_address - address in the main copy of the instruction at @old. Return: false
 * if it was not copied.
 */
bool me_moves_address(const struct me_moves *moves, uint64_t old, uint64_t *new_vaddr);
/*
 * me_move_address - the same within one copy. Return: false also if the copy lacks the
 * instruction.
 */
bool me_move_address(const struct me_move *move, uint64_t old, uint64_t *new_vaddr);
/* me_moves_map - append the copies of [@lo, @hi), unsorted. */
void me_moves_map(const struct me_moves *moves, uint64_t lo, uint64_t hi, struct me_ranges *out);

void me_ranges_add(struct me_ranges *ranges, uint64_t lo, uint64_t hi);
/* me_ranges_join - sort the ranges from index @first on, and join those that touch or overlap. */
void me_ranges_join(struct me_ranges *ranges, uint32_t first);
/* me_ranges_subtract - take @from, joined, out of @ranges. */
void me_ranges_subtract(struct me_ranges *ranges, const struct me_ranges *from);
/* me_ranges_from - index of the first range that ends above @lo; the ranges are joined. */
uint32_t me_ranges_from(const struct me_ranges *ranges, uint64_t lo);
/* me_ranges_any - does a range contain an address of [@lo, @hi)? */
bool me_ranges_any(const struct me_ranges *ranges, uint64_t lo, uint64_t hi);
void me_ranges_fini(struct me_ranges *ranges);

#endif
