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
#include <stddef.h>
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
	ME_WHY_STUB,	  /* notes who comes by */
};

struct me_plan_block {
	uint32_t block;	     /* cfg block index; each at most once, clones and stubs apart */
	uint8_t zone;	     /* enum me_zone */
	uint8_t why;	     /* enum me_why */
	uint8_t align_log2;  /* of this block's new address; 0: none */
	uint8_t favour_fall; /* of a conditional branch whose successors both lie elsewhere: the
				 * fall-through is the likelier one, so it gets the single branch */
	uint8_t clone;	     /* one more copy, that only the block before it falls into */
	uint8_t run;	     /* this block and what follows it, so many blocks in all, lie in as few
				 * lines of the plan's line_log2 as they can; 0: wherever */
	uint8_t stub; /* no copy of @block: stands on a way to it. The plan's stubs, in order,
				 * say which */
};

/* Which ways to a block lead through a stub. */
enum me_stub_ways {
	ME_STUB_ALL,	 /* every one */
	ME_STUB_OUTSIDE, /* from outside of the function */
	ME_STUB_EDGE,	 /* from the end of one block */
	ME_STUB_POLL,	 /* from the stub that polls before the block */
};

enum me_stub_does {
	ME_STUB_COUNTS, /* adds 1 to @counter (instrument.h) */
	ME_STUB_SETS,	/* @reg = @value (number.h) */
	ME_STUB_ADDS,	/* @reg = @reg_from + @value */
	ME_STUB_PASSES, /* nothing; it polls */
	ME_STUB_NOTES,	/* writes @reg down, and that it is of @counter (poll_code.h) */
};

/* What becomes of counts when several threads count at once. */
enum me_counters {
	ME_COUNTERS_PLAIN,   /* some are lost */
	ME_COUNTERS_ATOMIC,  /* each instruction waits for the other processors */
	ME_COUNTERS_THREADS, /* each thread has counters of its own */
};

/* One instruction, what it checks before, and what it polls behind; then control goes on to the
 * block. */
struct me_stub {
	uint32_t counter;      /* index; of ME_STUB_NOTES: of the block in the table */
	int32_t value;	       /* what it sets, at least 0, or adds */
	uint32_t from;	       /* of ME_STUB_EDGE: cfg block index */
	uint8_t ways;	       /* enum me_stub_ways */
	uint8_t does;	       /* enum me_stub_does */
	uint8_t reg, reg_from; /* as instructions encode them */
	uint8_t scratch;       /* of ME_STUB_NOTES: another register */
	bool checks;	       /* before it counts: does the thread have counters of its own? */
	uint8_t vector; /* xmm8 to xmm15, where that is kept meanwhile; 0: it is free there */
	bool polls;	/* where it is time, control goes by the stub that notes */
};

/* The addresses that instructions of stubs name. */
struct me_stub_places {
	uint64_t counters; /* of the first counter, or the polls */
	uint64_t state;	 /* of the struct me_thread_state; where threads have their own counters */
	uint64_t thread; /* of the runtime's entry for a thread without counters of its own */
	uint64_t notes;	 /* of the stub that notes, for one that polls */
};

/* Blocks in the order of their new addresses: all of ME_ZONE_HOT first, then ME_ZONE_WARM; inside
 * a zone the blocks of one function are contiguous. A function's entry block is in the plan if
 * any of its blocks is, and first among its blocks in its zone; stubs may precede it. */
struct me_plan {
	struct me_plan_block *blocks;
	uint32_t nr_blocks;
	uint8_t line_log2; /* what the machine fetches at a time; 0: runs do not matter */
	uint8_t page_log2; /* pages of this size can hold the new code and nothing else; 0: any */
	struct me_stub *stubs; /* one for each of @blocks that is a stub, in their order */
	uint32_t nr_stubs;
	uint32_t nr_counters; /* of 8 bytes */
	uint8_t counters;     /* enum me_counters */
	bool polls;	      /* the counters are a struct mp_polls, and a page behind it */
	uint8_t *table; /* what the stubs tell, as edge_table encodes it, or path_table; or NULL */
	size_t table_size;
	const char *table_name;	 /* of its section; not owned */
	const char *counts_path; /* where a run maps its counters; not owned */
};

/* Frees what @plan holds, not @plan itself. */
static inline void me_plan_fini(struct me_plan *plan)
{
	free(plan->blocks);
	free(plan->stubs);
	free(plan->table);
	plan->blocks = NULL;
	plan->stubs = NULL;
	plan->table = NULL;
	plan->nr_blocks = plan->nr_stubs = 0;
}

#endif
