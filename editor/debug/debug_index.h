// SPDX-License-Identifier: Apache-2.0
/*
 * debug_index - the indexes from an address to its unit: .debug_aranges, and gdb's
 * .gdb_index. Both get the copies of the code that they list. Indexes by name
 * (.debug_names, .debug_pubnames) are not changed: no entry moves, but they would lack added units. Called by debug.
 */
#ifndef ME_DEBUG_INDEX_H
#define ME_DEBUG_INDEX_H

#include "editor/debug/debug_unit.h"

/* May units be added, since .gdb_index can name them, or there is none? Return: 0, -ENOMEM. */
int me_gdb_index_takes_units(struct me_debug_sections *file, bool *takes);
/* Both leave a damaged section unchanged. Return: 0, -ENOMEM. */
int me_aranges_extend(struct me_debug_sections *file);
int me_gdb_index_extend(struct me_debug_sections *file);

#endif
