// SPDX-License-Identifier: Apache-2.0
/* debug_expr - whether an expression of DWARF means the same in an added unit. Called by debug_function. */
#ifndef ME_DEBUG_EXPR_H
#define ME_DEBUG_EXPR_H

#include "editor/debug/debug_unit.h"

/*
 * me_expr_is_portable - are all entries that @expr names by their offset in the unit among those that the added
 * unit has at the same offsets?
 */
bool me_expr_is_portable(const struct me_unit *unit, const uint8_t *expr, uint64_t size);

/*
 * me_expr_registers - a bit for each register on which the value depends, as me_leaf_changed() counts them. @frame_base:
 * those of the function's frame base. All bits: something is not understood.
 */
uint64_t me_expr_registers(const struct me_unit *unit, const uint8_t *expr, uint64_t size,
			   uint64_t frame_base);

#endif
