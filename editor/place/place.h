// SPDX-License-Identifier: Apache-2.0
/*
 * place - turns a plan into addresses: each copy's branches, their lengths, and its address.
 *
 * All branches start with their short form, and get the long form until all reach their targets.
 * Sizes only grow, so this ends. copy writes the bytes later. Called by emit.
 */
#ifndef ME_PLACE_H
#define ME_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/evidence/control_word.h"
#include "editor/instrumentation.h"
#include "editor/plan.h"
#include "editor/evidence/redirect.h"
#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"

/*
 * The end of a copied block: at most one conditional branch, then at most one jump. Or a call
 * through a slot, or instructions of a called function, then at most one jump; or a jump through a
 * slot.
 */
struct me_copy {
	uint32_t block; /* cfg block index */
	/* bytes before a direct branch, a call through a slot, or inlined instructions, at the end; of a
	 * stub: all */
	uint32_t body_size;
	uint32_t stub;			  /* 0: a copy; else 1 + index in @stubs */
	uint8_t align_log2, align_offset; /* as in the plan */
	uint16_t end_size; /* bytes of the inlined instructions, or of the call or jump through a slot */
	uint64_t new_vaddr;
	uint32_t new_size;	   /* body, branch and jump; padding before it not counted */
	bool branch : 1, jump : 1; /* a jcc, a jmp at the end */
	bool long_branch : 1, long_jump : 1; /* rel32 rather than rel8 */
	bool invert : 1;		     /* the jcc's condition */
	bool falls : 1;			     /* control may run on to the next copy */
	bool clone : 1;	   /* not the copy that branches, patches and pointers lead to */
	bool endbr64 : 1;  /* a stub that begins with one, as its block does */
	bool loads : 1;	   /* it has an entry in me_placement.loads */
	bool left_out : 1; /* it has none of the block's instructions */
	bool via_slot : 1; /* as in the plan; this call or jump precedes @jump */
	bool inlined : 1;  /* as in the plan; the instructions precede @jump */
	bool new_line : 1; /* as in the plan */
	bool apart : 1;	   /* as in the plan: it has nothing but inlined instructions */
	uint8_t version;   /* enum me_version */
	union {
		uint32_t branch_to; /* target of the branch; MP_NONE: old code */
		uint32_t leaf;	    /* if @inlined: index in me_placement.leaves */
	};
	uint32_t jump_to; /* target of the jump; MP_NONE: old code */
};

/* Large programs have millions of copies. */
_Static_assert(sizeof(struct me_copy) == 40, "copies have grown");

/* Loads of control words in a hot copy: padding keeps them from sharing a slot where possible. */
struct me_copy_loads {
	uint32_t copy;
	struct me_control_loads at;
};

/* The end of block @from leads to the stub @copy before block @to. */
struct me_edge_stub {
	uint32_t from, to, copy;
};

/* Copies: @apart has the rest of what is inlined at the end of @near. */
struct me_divided {
	uint32_t near, apart;
};

struct me_placement {
	struct me_copy *copies; /* in plan order: ascending new_vaddr */
	uint32_t nr_copies;
	uint8_t line_log2;   /* as in the plan */
	uint32_t first_warm; /* index of the first copy of ME_ZONE_WARM */
	/*
	 * cfg block -> index in @copies, or MP_NONE: not copied. Without stubs, these pointers are
	 * all to one array.
	 */
	uint32_t *target_from_outside; /* target from outside of the function: a stub, or the copy */
	uint32_t *target_from_inside;  /* target from inside of the function */
	uint32_t *copy_of_block;       /* the copy; never a clone */
	uint32_t *notes;	       /* the stub that notes; NULL: without polls */
	/* targets from inside of the versions other than ME_VERSION_NEW; NULL: without audits */
	uint32_t *of_version[ME_NR_VERSIONS];
	struct me_edge_stub *edge_stubs; /* ascending */
	uint32_t nr_edge_stubs;
	const struct me_stub *stubs; /* those of the instrumentation */
	uint32_t nr_stubs;
	const struct me_leaf *leaves; /* as in the plan */
	struct me_divided *divided;   /* ascending, by both */
	uint32_t nr_divided;
	struct me_stub_places places; /* addresses that stubs name */
	uint8_t counters;	      /* enum me_counters */
	uint64_t base, end;	      /* [base, end): all copies */
	uint64_t text_end;	      /* [base, text_end): .morph.text, up to whole pages */
	struct me_copy_loads *loads;  /* ascending @copy; few copies have any */
	uint32_t nr_loads, cap_loads;
	uint64_t nr_inverted, nr_jumps_added, nr_jumps_dropped;
};

/*
 * me_place - places the copies of @plan from @base on. The entry of a function whose address
 * changes keeps its alignment. @plan and @added must outlive @out.
 * Return: 0, -ENOMEM. Ownership: me_placement_fini(@out).
 */
int me_place(const struct mp_cfg *cfg, const struct me_plan *plan,
	     const struct me_instrumentation *added, uint64_t base, struct me_placement *out,
	     struct mp_err *err);
void me_placement_fini(struct me_placement *placement);

/* Return: where control for the old address @target goes now: the copy's start, or @target. */
uint64_t me_place_of(const struct mp_cfg *cfg, const struct me_placement *placement,
		     uint64_t target);
/*
 * me_place_of() for an address that is a value. An empty copy has the address of the next one; it
 * is passed over, since two values must stay distinct.
 */
uint64_t me_place_value(const struct mp_cfg *cfg, const struct me_placement *placement,
			uint64_t target);
/* Return: the block at @target, to which the end of block @from leads; MP_NONE: none starts
 * there. */
uint32_t me_place_end(const struct mp_cfg *cfg, uint32_t from, uint64_t target);
/* Return: where the branch, or the jump, at the end of @copy leads: a copy, a stub, or old
 * code. */
uint64_t me_place_branch(const struct mp_cfg *cfg, const struct me_placement *placement,
			 const struct me_copy *copy);
uint64_t me_place_jump(const struct mp_cfg *cfg, const struct me_placement *placement,
		       const struct me_copy *copy);
/*
 * Return: bytes from the code in place of a call to the rest of that code, for the copy that has the one or the other;
 * 0: there is no rest.
 */
int64_t me_place_apart(const struct me_placement *placement, const struct me_copy *copy);
/* Return: the address in the original that this branch, or jump, would lead to. */
uint64_t me_copy_branch_target(const struct mp_cfg *cfg, const struct me_copy *copy);
uint64_t me_copy_jump_target(const struct mp_cfg *cfg, const struct me_copy *copy);

#endif
