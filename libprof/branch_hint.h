// SPDX-License-Identifier: Apache-2.0
/*
 * branch_hint - which way a conditional branch rather goes, by its looks.
 *
 * Ball and Larus, "Branch prediction for free" (PLDI 1993); what speaks for and against a way is
 * added up as logarithms of odds (Wu and Larus, MICRO 1994).
 */
#ifndef MP_BRANCH_HINT_H
#define MP_BRANCH_HINT_H

#include <stdint.h>

#include "libprof/cfg.h"

/* What was compared before the branch. */
enum mp_compared {
	MP_COMPARED_UNKNOWN,
	MP_COMPARED_ZERO,   /* a value with 0 */
	MP_COMPARED_NULL,   /* the same, of 64 bits: often a pointer */
	MP_COMPARED_BITS,   /* bits of it, by a mask */
	MP_COMPARED_NUMBER, /* it with a constant */
	MP_COMPARED_OTHER,  /* it with another */
	MP_COMPARED_RESULT, /* what arithmetic left */
	MP_NR_COMPARED
};

/* What is seen of a branch; a side's is followed by the same of the way that falls through. */
enum mp_branch_look {
	MP_LOOK_BACK,	 /* the target lies before it */
	MP_LOOK_FAR,	 /* or further behind it than a few lines */
	MP_LOOK_SKIP,	 /* what it jumps over leads to the target: an if without else */
	MP_LOOK_ASIDE,	 /* the target leads back to what falls through */
	MP_LOOK_RETURNS, /* the target ends in a return */
	MP_LOOK_FALL_RETURNS,
	MP_LOOK_CALLS,
	MP_LOOK_FALL_CALLS,
	MP_LOOK_LOOPS, /* ends in a jump backwards */
	MP_LOOK_FALL_LOOPS,
	MP_LOOK_DOOMED, /* ends in a trap, or is cold to the compiler */
	MP_LOOK_FALL_DOOMED,
	MP_LOOK_SHARED, /* others lead there, too */
	MP_LOOK_FALL_SHARED,
	MP_LOOK_SHORT, /* one or two instructions */
	MP_LOOK_FALL_SHORT,
	MP_LOOK_LEAVES, /* a loop that the branch is in */
	MP_LOOK_FALL_LEAVES,
	MP_LOOK_ENTERS, /* one that it is not in */
	MP_LOOK_FALL_ENTERS,
	MP_NR_LOOKS
};

struct mp_branch_looks {
	uint32_t seen;	  /* 1 << enum mp_branch_look */
	uint8_t compared; /* enum mp_compared */
	uint8_t cc;	  /* condition code */
};

/* By the instruction before a branch, of @len bytes. */
enum mp_compared mp_insn_compares(const uint8_t *bytes, uint8_t len);

/* Of one function, per block of it; the caller's arrays, one longer than there are blocks. */
struct mp_branch_scene {
	const struct mp_func *func;
	uint32_t first_call, end_call; /* the function's, of cfg->calls */
	uint32_t *nr_in;	       /* ways that lead to it */
	uint16_t *depth;	       /* loops around it, as far as they lie in one piece */
};

void mp_branch_scene_fill(const struct mp_cfg *cfg, const struct mp_func *func,
			  struct mp_branch_scene *scene);

/* @block: of the scene's function, ends in a conditional branch, has two edges. */
struct mp_branch_looks mp_branch_look(const struct mp_cfg *cfg, const struct mp_branch_scene *scene,
				      uint32_t block);
/* The natural logarithm of the odds that it is taken. */
double mp_branch_hint(struct mp_branch_looks looks);

#endif
