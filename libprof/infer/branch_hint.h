// SPDX-License-Identifier: Apache-2.0
/*
 * branch_hint - guesses the likelier way of a conditional branch from the code around it.
 * Ball and Larus, "Branch prediction for free" (PLDI 1993). The evidence for and against a
 * way is added up as logarithms of odds (Wu and Larus, MICRO 1994).
 */
#ifndef MP_BRANCH_HINT_H
#define MP_BRANCH_HINT_H

#include <stdint.h>

#include "libprof/cfg/cfg.h"

/* The kind of comparison before the branch. */
enum mp_compared {
	MP_COMPARED_UNKNOWN,
	MP_COMPARED_ZERO,   /* a value with 0 */
	MP_COMPARED_NULL,   /* a 64-bit value with 0: often a pointer */
	MP_COMPARED_BITS,   /* some bits of a value, by a mask */
	MP_COMPARED_NUMBER, /* a value with a constant */
	MP_COMPARED_OTHER,  /* two values */
	MP_COMPARED_RESULT, /* flags of an arithmetic instruction */
	MP_NR_COMPARED
};

/*
 * Evidence about a branch. MP_LOOK_X describes the taken side; MP_LOOK_FALL_X, the next
 * number, describes the same of the side that falls through.
 */
enum mp_branch_look {
	MP_LOOK_BACK,	 /* the target lies at the branch's block or before it */
	MP_LOOK_FAR,	 /* the target lies more than FAR_BYTES behind the block's start */
	MP_LOOK_SKIP,	 /* the skipped block leads to the target only: an if without else */
	MP_LOOK_ASIDE,	 /* the target leads to the fall-through block only */
	MP_LOOK_RETURNS, /* the side's block ends in a return */
	MP_LOOK_FALL_RETURNS,
	MP_LOOK_CALLS,
	MP_LOOK_FALL_CALLS,
	MP_LOOK_LOOPS, /* the block ends in a backward jump */
	MP_LOOK_FALL_LOOPS,
	/*
	 * the block ends in a trap or a call without return, or the compiler put it in a
	 * .cold part
	 */
	MP_LOOK_DOOMED,
	MP_LOOK_FALL_DOOMED,
	MP_LOOK_SHARED, /* the block has other predecessors, too */
	MP_LOOK_FALL_SHARED,
	MP_LOOK_SHORT, /* the block has one or two instructions */
	MP_LOOK_FALL_SHORT,
	MP_LOOK_LEAVES, /* the side is in fewer loops than the branch */
	MP_LOOK_FALL_LEAVES,
	MP_LOOK_ENTERS, /* the side is in more loops than the branch */
	MP_LOOK_FALL_ENTERS,
	MP_NR_LOOKS
};

struct mp_branch_looks {
	uint32_t seen;	  /* bits: 1 << enum mp_branch_look */
	uint8_t compared; /* enum mp_compared */
	uint8_t cc;	  /* condition code */
};

/* Classifies the instruction before a branch; it has @len bytes. */
enum mp_compared mp_insn_compares(const uint8_t *bytes, uint8_t len);

/*
 * Facts about the blocks of one function. The caller provides both arrays, with one element
 * more than the function has blocks.
 */
struct mp_branch_scene {
	const struct mp_func *func;
	uint32_t first_call, end_call; /* range of the function's calls in cfg->calls */
	uint32_t *nr_in;	       /* number of ways that lead to the block */
	/* number of loops around the block, as far as each loop lies in one piece */
	uint16_t *depth;
};

void mp_branch_scene_fill(const struct mp_cfg *cfg, const struct mp_func *func,
			  struct mp_branch_scene *scene);

/*
 * The evidence about one branch. @block lies in the scene's function, ends in a conditional
 * branch and has two edges.
 */
struct mp_branch_looks mp_branch_look(const struct mp_cfg *cfg, const struct mp_branch_scene *scene,
				      uint32_t block);
/* Natural logarithm of the odds that the branch is taken. */
double mp_branch_hint(struct mp_branch_looks looks);

#endif
