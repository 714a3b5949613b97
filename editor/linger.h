// SPDX-License-Identifier: Apache-2.0
/*
 * linger - may control stay in the old code of a function whose blocks are copied?
 */
#ifndef ME_LINGER_H
#define ME_LINGER_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg.h"

/* True where something may arrive at an old block of it that has no room for a jump to the copy. */
bool me_lingers(const struct mp_cfg *cfg, uint32_t func);
/*
 * me_linger_arrivals - sets @arrives[block] for the blocks of @func whose copies control may come to out
 * of old code, where nobody followed it. @arrives is per block, and 0 for those of @func before.
 */
void me_linger_arrivals(const struct mp_cfg *cfg, uint32_t func, uint8_t *arrives);

#endif
