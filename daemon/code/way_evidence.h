// SPDX-License-Identifier: Apache-2.0
/*
 * way_evidence - adds a module's ways of branches to a profile before counts are inferred. Called by the
 * commands that infer counts from a store.
 */
#ifndef MD_WAY_EVIDENCE_H
#define MD_WAY_EVIDENCE_H

#include "libprof/cfg/cfg.h"
#include "libprof/infer/profile.h"
#include "libprof/store/store.h"

/*
 * Adds the ways of @module since @since_s (0: all) to @profile, of the same module and @cfg. A module
 * without ways changes nothing. Return: 0, -ENOENT (no such module), -ENOMEM, -errno.
 */
int md_way_evidence_add(struct mp_store *store, int64_t module, int64_t since_s,
			const struct mp_cfg *cfg, struct mp_profile *profile, struct mp_err *err);

#endif
