// SPDX-License-Identifier: Apache-2.0
/*
 * call_clock - decides which functions count their calls for the clock of calls, and puts the stubs
 * into a plan. The stub at an entry counts down; the call at which the count ends is sampled, with the
 * address that it returns to (place/clock_code.h, runtime/call_clock.h).
 */
#ifndef ME_CALL_CLOCK_H
#define ME_CALL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/instrumentation.h"
#include "editor/plan.h"
#include "libprof/base/err.h"
#include "libprof/cfg/cfg.h"
#include "libprof/infer/counts.h"

struct me_call_clock_report {
	uint32_t nr_funcs;   /* whose calls are counted */
	uint32_t nr_without; /* that move, but do not count */
	/* by the profile: executions of entries that count and that do not, and instructions */
	double entries, without, insns;
};

/*
 * me_call_clock_plan - adds the stubs to @plan, and the blocks of functions with @movable[func] that it
 * lacks. @counts: NULL: none. A function does not count if its callers pass it flags, if control may
 * stay in its old code, or if no unwind row can describe a call at its entry.
 * Return: 0, -ENOMEM.
 */
int me_call_clock_plan(const struct mp_cfg *cfg, const struct mp_counts *counts,
		       const uint8_t *movable, struct me_plan *plan,
		       struct me_instrumentation *added, struct me_call_clock_report *report,
		       struct mp_err *err);

#endif
