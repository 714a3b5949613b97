// SPDX-License-Identifier: Apache-2.0
/*
 * rewrite - changes what stands at the ends of copied blocks: calls of PLT stubs, and jumps to them, go through the stubs'
 * slots (slots.h), and the code of functions replaces calls of them (inline.h). The layout is decided before, so it does
 * not depend on this. Called by optimize.
 *
 * The new code has another length than the call. Within a copied block all distances are the original's, so the call must
 * be the last instruction of its block: blocks are cut behind all of these calls, once.
 */
#ifndef ME_REWRITE_H
#define ME_REWRITE_H

#include "editor/plan.h"
#include "libprof/base/err.h"
#include "libprof/cfg/cfg.h"

struct me_rewriting {
	struct mp_cfg *cfg;
	struct me_plan *plan;
	const double *counts; /* executions, per block; NULL: not known */
	bool slots, inlines;  /* which of them are wanted */
	bool described;	      /* the file has debug information */
	bool arranges;	      /* the code of called functions is brought into another order */
	bool given; /* a plan says which calls are replaced: exactly @calls, ascending @end */
	const struct me_plan_call *calls;
	uint32_t nr_calls;
	const uint64_t *stress; /* for tests: the seed by which calls are replaced; NULL: by counts */
	/* Out: the calls that are replaced. Ownership: free(), also after an error. */
	struct me_plan_call *replaced;
	uint32_t nr_replaced; /* 0 before */
};

/*
 * me_rewrite_plan - chooses the calls, cuts blocks of cfg and plan, and marks the blocks of the plan. *@first: how blocks
 * were cut, as mp_cfg_cut() says it; NULL: none was. Return: 0, -ENOMEM, -EBADMSG: @calls has a call that cannot be
 * replaced. Ownership: free(*@first).
 */
int me_rewrite_plan(struct me_rewriting *r, uint32_t **first, struct mp_err *err);

#endif
