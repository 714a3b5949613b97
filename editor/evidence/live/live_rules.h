// SPDX-License-Identifier: Apache-2.0
/*
 * live_rules - what changes in the analysis of a file if the output is to be put into processes that run already.
 *
 * There, only code and tables of read-only data can change, threads may return into old code at any place behind a
 * call, and the loader does not know the new segment. Called by optimize, before anything asks what may move.
 */
#ifndef ME_LIVE_RULES_H
#define ME_LIVE_RULES_H

#include "editor/evidence/eligible.h"
#include "libprof/base/err.h"

/*
 * me_live_restrict - no patch may cut a place that a call returns to, nor lie over a function's first
 * instruction, no table changes that the loader or the program writes to, and functions stay whose calls ask
 * who called. @eligible: changes, too.
 * Return: 0, -EPERM refused: the reason is in @err.
 */
int me_live_restrict(struct mp_cfg *cfg, struct me_eligible *eligible, struct mp_err *err);

#endif
