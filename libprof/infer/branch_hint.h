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
 * Evidence about a branch. MP_EVIDENCE_X describes the taken side; MP_EVIDENCE_FALL_X, the next
 * number, describes the same of the side that falls through.
 */
enum mp_branch_evidence_kind {
	MP_EVIDENCE_BACK,    /* the target lies at the branch's block or before it */
	MP_EVIDENCE_FAR,     /* the target lies more than FAR_BYTES behind the block's start */
	MP_EVIDENCE_SKIP,    /* the skipped block leads to the target only: an if without else */
	MP_EVIDENCE_ASIDE,   /* the target leads to the fall-through block only */
	MP_EVIDENCE_RETURNS, /* the side's block ends in a return */
	MP_EVIDENCE_FALL_RETURNS,
	MP_EVIDENCE_CALLS,
	MP_EVIDENCE_FALL_CALLS,
	MP_EVIDENCE_LOOPS, /* the block ends in a backward jump */
	MP_EVIDENCE_FALL_LOOPS,
	/*
	 * the block ends in a trap or a call without return, or the compiler put it in a
	 * .cold part
	 */
	MP_EVIDENCE_ENDS_COLD,
	MP_EVIDENCE_FALL_ENDS_COLD,
	MP_EVIDENCE_SHARED, /* the block has other predecessors, too */
	MP_EVIDENCE_FALL_SHARED,
	MP_EVIDENCE_SHORT, /* the block has one or two instructions */
	MP_EVIDENCE_FALL_SHORT,
	MP_EVIDENCE_LEAVES, /* the side is in fewer loops than the branch */
	MP_EVIDENCE_FALL_LEAVES,
	MP_EVIDENCE_ENTERS, /* the side is in more loops than the branch */
	MP_EVIDENCE_FALL_ENTERS,
	MP_NR_EVIDENCE
};

struct mp_branch_evidence {
	uint32_t seen;	  /* bits: 1 << enum mp_branch_evidence_kind */
	uint8_t compared; /* enum mp_compared */
	uint8_t cc;	  /* condition code */
};

/* Classifies the instruction before a branch; it has @len bytes. */
enum mp_compared mp_insn_compares(const uint8_t *bytes, uint8_t len);

/*
 * Facts about the blocks of one function. The caller provides both arrays, with one element
 * more than the function has blocks.
 */
struct mp_func_shape {
	const struct mp_func *func;
	uint32_t first_call, end_call; /* range of the function's calls in cfg->calls */
	uint32_t *nr_in;	       /* number of ways that lead to the block */
	/* number of loops around the block, as far as each loop lies in one piece */
	uint16_t *depth;
};

void mp_func_shape_fill(const struct mp_cfg *cfg, const struct mp_func *func,
			struct mp_func_shape *shape);

/*
 * The evidence about one branch. @block lies in the shape's function, ends in a conditional
 * branch and has two edges.
 */
struct mp_branch_evidence mp_branch_evidence_find(const struct mp_cfg *cfg,
						  const struct mp_func_shape *shape,
						  uint32_t block);
/* Natural logarithm of the odds that the branch is taken. */
double mp_branch_hint(struct mp_branch_evidence evidence);

#endif
