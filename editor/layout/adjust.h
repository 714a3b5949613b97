// SPDX-License-Identifier: Apache-2.0
/*
 * adjust - changes a finished plan for single functions, as a user or refine wishes. Layout decides
 * by counts; only measured time tells whether a function's address suits the processor.
 *
 * Called by optimize, behind layout and before place. Text becomes adjustments in adjust_text.
 */
#ifndef ME_ADJUST_H
#define ME_ADJUST_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/instrumentation.h"
#include "editor/plan.h"
#include "libprof/base/err.h"
#include "libprof/cfg/cfg.h"
#include "libprof/infer/counts.h"

/* The most bytes of ME_ADJUST_WAIT. */
#define ME_ADJUST_WAIT_MAX 4096

enum me_adjust_kind {
	ME_ADJUST_START,    /* the copy begins @bytes behind the start of a cache line */
	ME_ADJUST_LOOP,	    /* its hottest loop begins there; nops fill the gap before it */
	ME_ADJUST_ORIGINAL, /* all copied blocks lie together, in the original's order */
	ME_ADJUST_END,	    /* the copy is the last of its zone, and shares no cache line */
	ME_ADJUST_STAY,	    /* the function does not move */
	ME_ADJUST_WAIT,	    /* for tests: @bytes nops of one byte each run in each round of the
			     * hottest loop, or without a loop at each entry */
	ME_NR_ADJUSTS
};

/* One wish for one function. Several wishes for one function combine, unless they contradict each
 * other: the same kind with other bytes, or ME_ADJUST_STAY with any other kind. */
struct me_adjust {
	uint64_t vaddr; /* an address in the function, of the original */
	uint16_t bytes; /* of START and LOOP: 0 to 63; of WAIT: 1 to ME_ADJUST_WAIT_MAX; else 0 */
	uint8_t kind;	/* enum me_adjust_kind */
};

/* All wishes for one function. */
struct me_adjustment {
	uint8_t kinds;		       /* bit 1 << enum me_adjust_kind for each wish */
	uint16_t bytes[ME_NR_ADJUSTS]; /* of each kind in @kinds */
	/* Set by me_adjust_plan(): */
	uint8_t done;  /* those of @kinds that the plan follows */
	uint32_t loop; /* cfg block that starts the hottest loop of the copy; MP_NONE: no loop */
};

static inline bool me_adjustment_has(const struct me_adjustment *a, enum me_adjust_kind kind)
{
	return a->kinds >> kind & 1;
}

/*
 * me_adjustment_add - adds the wish @kind, @bytes to those for one function.
 * Return: 0, -EINVAL: contradicts another wish, or has a wrong number of bytes.
 */
int me_adjustment_add(struct me_adjustment *adjustment, enum me_adjust_kind kind, uint16_t bytes);

/*
 * me_adjust_plan - changes @plan, which has no stubs, as @adjustments (one per cfg function) say.
 * @added gets the stubs of ME_ADJUST_WAIT. This function ignores ME_ADJUST_STAY: the caller leaves
 * functions that stay out before layout. @counts: NULL without a profile; the innermost loop then
 * counts as the hottest. Return: 0, -ENOMEM: @plan is not usable.
 */
int me_adjust_plan(const struct mp_cfg *cfg, const struct mp_counts *counts,
		   struct me_adjustment *adjustments, struct me_plan *plan,
		   struct me_instrumentation *added, struct mp_err *err);

#endif
