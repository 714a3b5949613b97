// SPDX-License-Identifier: Apache-2.0
/*
 * plan_all - makes a plan without a profile: every eligible function moves.
 *
 * The order is the original one, or one that exercises every kind of transfer: functions in
 * random order, the blocks of each in random or reversed order, some in the warm zone, some
 * left behind, some copied twice.
 */
#ifndef ME_PLAN_ALL_H
#define ME_PLAN_ALL_H

#include <stdint.h>

#include "editor/plan.h"
#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"

/*
 * @seed: of the random order, which depends on nothing else; NULL: original order, all hot.
 * Return: 0, -ENOMEM. Ownership: me_plan_fini(@plan).
 */
int me_plan_all(const struct mp_cfg *cfg, const uint8_t *eligible, const uint64_t *seed,
		struct me_plan *plan, struct mp_err *err);

#endif
