// SPDX-License-Identifier: Apache-2.0
/*
 * place - from a plan to addresses: each copy's branches, their lengths, and where it lies.
 *
 * Branches start short and grow until all reach (sizes only grow, so this ends). No bytes are
 * written here (copy does that), so sizes are known before anything that depends on them.
 */
#ifndef ME_PLACE_H
#define ME_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/control_word.h"
#include "editor/plan.h"
#include "editor/pointer.h"
#include "libprof/cfg.h"
#include "libprof/err.h"

/* The end of a copied block: at most one conditional branch, then at most one jump. */
struct me_copy {
	uint32_t block;	    /* cfg block index */
	uint32_t body_size; /* bytes before the terminator, copied with displacements adjusted;
				 * terminators that are not direct branches belong to the body;
				 * of a stub the instruction that counts */
	uint32_t stub;	    /* 0: a copy; else 1 + index in @stubs: it counts on a way to @block */
	uint64_t new_vaddr;
	uint32_t new_size; /* body, branch and jump; padding before it not counted */
	uint8_t align_log2;
	uint8_t run;			     /* as in the plan */
	bool branch : 1, jump : 1;	     /* a jcc, a jmp at the end */
	bool long_branch : 1, long_jump : 1; /* rel32 rather than rel8 */
	bool invert : 1;		     /* the jcc's condition */
	bool falls : 1;			     /* control may run on to the next copy */
	bool clone : 1;		     /* not the copy that branches, patches and pointers lead to */
	bool endbr64 : 1;	     /* a stub that begins with one, since its block does */
	bool followers : 1;	     /* me_placement.followers has some of it */
	uint32_t branch_to, jump_to; /* the copy or stub there; MP_NONE: none, it is old code */
};

/* Large programs have millions of them. */
_Static_assert(sizeof(struct me_copy) == 40, "copies have grown");

/* In hot code: kept within lines where padding may do it. */
struct me_copy_followers {
	uint32_t copy;
	struct me_followers at;
};

/* The end of block @from leads to the stub @copy on its way to block @to. */
struct me_edge_stub {
	uint32_t from, to, copy;
};

struct me_placement {
	struct me_copy *copies; /* in plan order: ascending new_vaddr */
	uint32_t nr_copies;
	uint8_t line_log2;   /* as in the plan */
	uint32_t first_warm; /* index of the first copy of ME_ZONE_WARM */
	/* cfg block -> index in @copies, or MP_NONE: not copied. One array where there are no stubs. */
	uint32_t *of_block; /* where those from outside of the function arrive: a stub, or the copy */
	uint32_t *inner;    /* where those from inside do */
	uint32_t *itself;   /* the copy, no clone */
	uint32_t *notes;    /* the stub that notes for the one that polls; NULL: nobody polls */
	struct me_edge_stub *edge_stubs; /* ascending */
	uint32_t nr_edge_stubs;
	const struct me_stub *stubs; /* the plan's */
	uint32_t nr_stubs;
	struct me_stub_places places; /* what stubs name */
	uint8_t counters;	      /* enum me_counters */
	uint64_t base, end;	      /* [base, end): all copies */
	uint64_t text_end; /* [base, text_end): .morph.text, filled up to whole pages of the
			      * plan's page_log2 */
	struct me_copy_followers *followers; /* ascending; few copies have some */
	uint32_t nr_followers, room_followers;
	uint64_t nr_inverted, nr_jumps_added, nr_jumps_dropped;
};

/*
 * me_place - the entry of a function whose address changes (@pointers) keeps its alignment, up to
 * 16: programs keep flags in the low bits of function pointers, C++ itself does. @plan must outlive
 * @out.
 * Return: 0, -ENOMEM. Ownership: me_placement_fini(@out).
 */
int me_place(const struct mp_cfg *cfg, const struct me_plan *plan,
	     const struct me_pointers *pointers, uint64_t base, struct me_placement *out,
	     struct mp_err *err);
void me_placement_fini(struct me_placement *placement);

/* Where control meant for the old address @target goes now: the copy's start, or @target. */
uint64_t me_place_of(const struct mp_cfg *cfg, const struct me_placement *placement,
		     uint64_t target);
/* The same for an address that is a value: no two may become one, so an empty copy is none. */
uint64_t me_place_value(const struct mp_cfg *cfg, const struct me_placement *placement,
			uint64_t target);
/* The block at @target, to which the end of the block @from leads; MP_NONE: no block starts there. */
uint32_t me_place_end(const struct mp_cfg *cfg, uint32_t from, uint64_t target);
/* Where the branch, and the jump, at the end of @copy lead, which may have a way of its own there. */
uint64_t me_place_branch(const struct mp_cfg *cfg, const struct me_placement *placement,
			 const struct me_copy *copy);
uint64_t me_place_jump(const struct mp_cfg *cfg, const struct me_placement *placement,
		       const struct me_copy *copy);
/* The old addresses that these stand for. */
uint64_t me_copy_branch_target(const struct mp_cfg *cfg, const struct me_copy *copy);
uint64_t me_copy_jump_target(const struct mp_cfg *cfg, const struct me_copy *copy);

#endif
