// SPDX-License-Identifier: Apache-2.0
/*
 * slots - which calls of PLT stubs, and jumps to them, go through the stubs' slots in copies: all jumps, and all calls but
 * those that end a block because they do not return. Called by rewrite.
 */
#ifndef ME_SLOTS_H
#define ME_SLOTS_H

#include "editor/rewrite/rewrite.h"

/*
 * me_slots_find - the addresses behind such calls, not sorted. @copied: per block. @ends: with room for all calls. Return:
 * their number.
 */
uint32_t me_slots_find(const struct mp_cfg *cfg, const uint8_t *copied, uint64_t *ends);
/* Marks the blocks of @plan that end at one of @ends, which ascend, or in such a jump. */
void me_slots_mark(const struct mp_cfg *cfg, const uint64_t *ends, uint32_t nr_ends,
		   struct me_plan *plan);

#endif
