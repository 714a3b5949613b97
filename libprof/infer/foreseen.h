// SPDX-License-Identifier: Apache-2.0
/*
 * foreseen - branches whose way the registers of a sample showed.
 *
 * A sample's instruction is often the one that waits for a load, right before the comparison and the
 * branch that use what was loaded. With its registers one can execute the instructions from there to
 * the next branches, and knows which way control went. Unlike a number of samples, this does not
 * depend on how long code takes. inference.md, "Ways that registers show".
 */
#ifndef MP_FORESEEN_H
#define MP_FORESEEN_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"
#include "libprof/base/ip_count.h"
#include "libprof/cfg/cfg.h"
#include "libprof/infer/infer.h"
#include "libprof/infer/profile.h"

/*
 * mp_foreseen_add - adds @nr ways to @profile, in any order; addresses that are no conditional branch
 * with both ways in its function are left out. At most once per profile. Return: 0, -ENOMEM.
 */
int mp_foreseen_add(const struct mp_cfg *cfg, const struct mp_way_count *ways, size_t nr,
		    struct mp_profile *profile, struct mp_err *err);
/*
 * mp_foreseen_fill - makes what was seen at edge @e evidence of @out. @runs: how often its branch ran, by
 * an earlier inference; 0: not known yet. Without such samples @out stays as it is.
 */
void mp_foreseen_fill(const struct mp_cfg *cfg, const struct mp_profile *profile, uint32_t e,
		      double runs, struct mp_flow_edge *out);

#endif
