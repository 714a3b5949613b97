// SPDX-License-Identifier: Apache-2.0
/*
 * plan_all - a plan without a profile: every eligible function moves.
 *
 * For tests and fuzzing: original order, or blocks and functions shuffled, with some blocks left
 * behind and others in the warm zone, so that every kind of transfer is exercised.
 */
#ifndef ME_PLAN_ALL_H
#define ME_PLAN_ALL_H

#include <stdint.h>

#include "editor/plan.h"
#include "libprof/cfg.h"
#include "libprof/err.h"

/* @seed 0: original order, everything hot. Return: 0, -ENOMEM. Ownership: me_plan_fini(@plan). */
int me_plan_all(const struct mp_cfg *cfg, const uint8_t *eligible, uint64_t seed,
		struct me_plan *plan, struct mp_err *err);

#endif
