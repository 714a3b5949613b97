// SPDX-License-Identifier: Apache-2.0
/*
 * slots - which calls and jumps of PLT stubs go through the stubs' slots in copies: all that would return. Called by
 * rewrite.
 */
#ifndef ME_SLOTS_H
#define ME_SLOTS_H

#include "editor/rewrite/rewrite.h"

/*
 * me_slots_find - the ends of such calls. @copied: per block. @ends: with room for all calls. Return: their number.
 */
uint32_t me_slots_find(const struct mp_cfg *cfg, const uint8_t *copied, uint64_t *ends);
/* Marks the blocks of @plan that end at one of @ends, or in such a jump. */
void me_slots_mark(const struct mp_cfg *cfg, const uint64_t *ends, uint32_t nr_ends,
		   struct me_plan *plan);

#endif
