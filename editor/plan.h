// SPDX-License-Identifier: Apache-2.0
/*
 * plan - layout's only output and emit's only input: which blocks move, in which order, and why.
 *
 * Plain data: indexes into a struct mp_cfg, nothing else, so that layout is tested without an
 * ELF file. Verify takes no fact of it on trust.
 */
#ifndef ME_PLAN_H
#define ME_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum me_zone {
	ME_ZONE_HOT,  /* blocks that run: packed, ordered by affinity */
	ME_ZONE_WARM, /* copied in case they run (unsampled is not cold), behind all hot code */
	ME_NR_ZONES
};

enum me_why {
	ME_WHY_ORIGINAL,  /* hot copy without reordering */
	ME_WHY_FLOW,	  /* inferred to run */
	ME_WHY_UNSAMPLED, /* no evidence either way */
	ME_WHY_TAIL,	  /* a clone: saves a jump to a short way out */
};

struct me_plan_block {
	uint32_t block;	     /* cfg block index; each at most once, clones apart */
	uint8_t zone;	     /* enum me_zone */
	uint8_t why;	     /* enum me_why */
	uint8_t align_log2;  /* of this block's new address; 0: none */
	uint8_t favour_fall; /* of a conditional branch whose successors both lie elsewhere: the
				 * fall-through is the likelier one, so it gets the single branch */
	uint8_t clone;	     /* one more copy, that only the block before it falls into */
	uint8_t run;	     /* this block and what follows it, so many blocks in all, lie in as few
				 * lines of the plan's line_log2 as they can; 0: wherever */
};

/* Blocks in the order of their new addresses: all of ME_ZONE_HOT first, then ME_ZONE_WARM; inside
 * a zone the blocks of one function are contiguous. A function's entry block is in the plan if
 * any of its blocks is, and first among its blocks in its zone. */
struct me_plan {
	struct me_plan_block *blocks;
	uint32_t nr_blocks;
	uint8_t line_log2; /* what the machine fetches at a time; 0: runs do not matter */
	uint8_t page_log2; /* pages of this size can hold the new code and nothing else; 0: any */
};

/* Frees what @plan holds, not @plan itself. */
static inline void me_plan_fini(struct me_plan *plan)
{
	free(plan->blocks);
	plan->blocks = NULL;
	plan->nr_blocks = 0;
}

#endif
