// SPDX-License-Identifier: Apache-2.0
/*
 * linger - may control stay in the old code of a function whose blocks are copied?
 * Called by instrument and number.
 */
#ifndef ME_LINGER_H
#define ME_LINGER_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"

/*
 * me_lingers - true if control may come to an old block of @func that has no room for a
 * jump to its copy.
 */
bool me_lingers(const struct mp_cfg *cfg, uint32_t func);
/*
 * me_linger_arrivals - set @arrives[block] for the blocks of @func whose copies control
 * may reach from old code, which does not track paths. @arrives: per cfg block; 0 for
 * the blocks of @func before.
 */
void me_linger_arrivals(const struct mp_cfg *cfg, uint32_t func, uint8_t *arrives);

#endif
