// SPDX-License-Identifier: Apache-2.0
/*
 * old_code - may control stay in the old code of a function whose blocks are copied?
 * Called by instrument and number.
 */
#ifndef ME_OLD_CODE_H
#define ME_OLD_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"

/*
 * me_old_code_may_run - true if control may come to an old block of @func that has no room for a
 * jump to its copy.
 */
bool me_old_code_may_run(const struct mp_cfg *cfg, uint32_t func);
/*
 * Does old code of @block run whenever others enter the function there? So does the first instruction, over
 * which no jump is written (MP_BLOCK_BEHIND_ENTRY), and what follows it without room for one.
 */
bool me_old_code_is_head(const struct mp_cfg *cfg, uint32_t block);
/*
 * me_old_code_find_arrivals - set @arrives[block] for the blocks of @func whose copies control
 * may reach from old code, which does not track paths. @arrives: per cfg block; 0 for
 * the blocks of @func before.
 */
void me_old_code_find_arrivals(const struct mp_cfg *cfg, uint32_t func, uint8_t *arrives);

#endif
