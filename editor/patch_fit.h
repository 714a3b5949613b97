// SPDX-License-Identifier: Apache-2.0
/*
 * patch_fit - which old code can lead to copies: block starts with room for a jump, and jump tables
 * whose entries may change. Writes nothing; patch does. Called by patch, pointer and linger.
 */
#ifndef ME_PATCH_FIT_H
#define ME_PATCH_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg.h"

/* Bytes of the jump to a copy. */
#define ME_PATCH_SIZE 5

/* Where in @block the jump to its copy would stand: behind an endbr64. */
uint64_t me_patch_start(const struct mp_cfg *cfg, const struct mp_block *block);
/* Has a jump room at the old start of @block, where nothing may arrive in its middle? */
bool me_patch_fits(const struct mp_cfg *cfg, uint32_t block);
/* Do the entries of @table lead to copies, once there are any? */
bool me_patch_leads_table(const struct mp_cfg *cfg, const struct mp_table *table);

#endif
