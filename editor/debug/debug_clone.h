// SPDX-License-Identifier: Apache-2.0
/*
 * debug_clone - a unit with the functions that other functions were inlined into. Called by debug_unit.
 *
 * The unit is added behind all others, so no offset in .debug_info changes. Its entries are those of the old
 * unit, with an entry for each inlined call. The old entries stay for references, without code.
 */
#ifndef ME_DEBUG_CLONE_H
#define ME_DEBUG_CLONE_H

#include "editor/debug/debug_unit.h"

struct me_entry;

/*
 * me_functions_move - write the added unit, when all else of the changed unit is done. Return: 0, also if there
 * is none to write, -ENOMEM, -EPERM.
 */
int me_functions_move(struct me_unit *unit, const struct me_entry *own);

#endif
