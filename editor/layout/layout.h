// SPDX-License-Identifier: Apache-2.0
/*
 * layout - from counts to a plan: branch alignment, fluff removal, procedure layout.
 *
 * Morph (SOSP 1997) section 3.4; Pettis and Hansen (PLDI 1990); the greedy branch alignment of
 * Young et al. (PLDI 1997). Reads a CFG, writes a plan; knows nothing of ELF or of bytes.
 */
#ifndef ME_LAYOUT_H
#define ME_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/plan.h"
#include "libprof/cfg/cfg.h"
#include "libprof/infer/counts.h"
#include "libprof/base/err.h"
#include "libprof/order/order.h"

/* The order of blocks inside a function. Functions: enum mp_order. */
enum me_order {
	ME_ORDER_ORIGINAL,
	ME_ORDER_PH,
	ME_ORDER_EXTTSP,
	ME_NR_ORDERS
};

/* "original", "ph", "exttsp". */
const char *me_order_name(enum me_order order);
/* Return: 0, -EINVAL: no such name. */
int me_order_parse(const char *name, enum me_order *out);

struct me_layout_options {
	enum me_order block_order;
	enum mp_order function_order;
	bool choose_functions; /* me_layout_build sets function_order, by profile and size */
	bool no_tails;	       /* no tail duplication */
	uint8_t line_log2;     /* keep runs in lines of this size; 0: no padding */
	bool huge_pages;       /* the new code can be backed by pages of 2 MiB */
	/* no function moves but those that a meter needs, in the original's order; layout itself does not ask */
	bool original;
	bool slots; /* calls of PLT stubs go through the slots; layout itself does not ask */
	bool inline_leaves; /* small functions replace calls of them; layout itself does not ask */
	unsigned int nr_threads; /* as mp_parallel_for() takes it; the plan does not depend on it */
};

/* Taken branches of the whole module before and after, in units of counts: conditional branches
 * and direct jumps inside functions. @ratio allows for the noise in the counts. */
struct me_prediction {
	double taken_before, taken_after; /* by the inferred counts */
	double ratio;			  /* expected after/before */
	double least, most;		  /* 90 % interval, for work like the sampled one */
};

/*
 * me_layout_build - plan the functions with @eligible[func] (bytes, one per cfg function).
 * Return: 0, -ENOMEM. Ownership: me_plan_fini(@plan).
 */
int me_layout_build(const struct mp_cfg *cfg, const struct mp_counts *counts,
		    const uint8_t *eligible, struct me_layout_options *options,
		    struct me_plan *plan, struct mp_err *err);

/*
 * me_layout_predict - taken branches before and after @plan, without running anything.
 * @arrivals: one per function, how often old code would lead on to a copy of it (struct me_entries);
 * NULL: never.
 */
int me_layout_predict(const struct mp_cfg *cfg, const struct mp_counts *counts,
		      const struct me_plan *plan, const double *arrivals, struct me_prediction *out,
		      struct mp_err *err);

#endif
