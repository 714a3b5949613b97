// SPDX-License-Identifier: Apache-2.0
/*
 * patch_fit - which old code can lead to copies: block starts with room for a jump, and jump tables
 * whose entries may change. Writes nothing; patch does. Called by patch, pointer, old_code
 * and entries.
 */
#ifndef ME_PATCH_FIT_H
#define ME_PATCH_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"

/* Bytes of the jump to a copy. */
#define ME_PATCH_SIZE 5

/* Address of the jump to the copy in @block: behind an endbr64. */
uint64_t me_patch_start(const struct mp_cfg *cfg, const struct mp_block *block);
/* Is there room for a jump at the old start of @block, without a target in its middle? */
bool me_patch_fits(const struct mp_cfg *cfg, uint32_t block);
/*
 * Is there room if the jump may overwrite padding, too? The block must be its whole function, which
 * control never runs through to its end. Only no-ops and int3 may stand between it and the next
 * function, and nothing may lead to them or name them. Verify proves the same by itself.
 */
bool me_patch_fits_padding(const struct mp_cfg *cfg, uint32_t block);
/* The block @block is only the first instruction of a function: is there room for a jump right behind it? */
bool me_patch_fits_behind(const struct mp_cfg *cfg, uint32_t block);
/*
 * From now on, no jump fits over the first instruction of a function, or of a part of one, unless that is such
 * a jump, too. Whoever sets a breakpoint with the kernel's help (uprobes), does it there, and the kernel then
 * executes the instruction that the file has.
 */
void me_patch_keep_entries(struct mp_cfg *cfg);
/* From now on, no jump fits where a call would return into its middle. */
void me_patch_keep_returns(struct mp_cfg *cfg);
/* Will the entries of @table lead to copies? */
bool me_patch_leads_table(const struct mp_cfg *cfg, const struct mp_table *table);

#endif
