// SPDX-License-Identifier: Apache-2.0
/*
 * layout_beginning - copies of functions' beginnings in place of jumps to these functions (tail calls).
 *
 * Called by optimize_tail_call.c when the plan is otherwise final.
 */
#ifndef ME_LAYOUT_BEGINNING_H
#define ME_LAYOUT_BEGINNING_H

#include "editor/plan.h"
#include "libprof/cfg/cfg.h"
#include "libprof/infer/counts.h"

/*
 * me_beginnings_add - adds foreign clones behind hot blocks that jump to other functions. @allowed: per function: may
 * its blocks be such clones, or have them behind them?
 * Return: 0, -ENOMEM.
 */
int me_beginnings_add(const struct mp_cfg *cfg, const struct mp_counts *counts,
		      const uint8_t *allowed, struct me_plan *plan);

/*
 * me_beginnings_add_random - adds such clones at random, of any length, in all zones. For tests.
 * Return: 0, -ENOMEM.
 */
int me_beginnings_add_random(const struct mp_cfg *cfg, const uint8_t *allowed, uint64_t seed,
			     struct me_plan *plan);

#endif
