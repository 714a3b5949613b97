// SPDX-License-Identifier: Apache-2.0
/*
 * plan_all - a plan without a profile: every eligible function moves.
 *
 * Either in the original order, or a hard one: functions in random order, the blocks of each in
 * random or reversed order, some in the warm zone, some left behind, some copied twice, so that
 * every kind of transfer is exercised.
 */
#ifndef ME_PLAN_ALL_H
#define ME_PLAN_ALL_H

#include <stdint.h>

#include "editor/plan.h"
#include "libprof/cfg.h"
#include "libprof/err.h"

/*
 * @seed: of the hard order, all of which it decides; NULL: original order, everything hot.
 * Return: 0, -ENOMEM. Ownership: me_plan_fini(@plan).
 */
int me_plan_all(const struct mp_cfg *cfg, const uint8_t *eligible, const uint64_t *seed,
		struct me_plan *plan, struct mp_err *err);

#endif
