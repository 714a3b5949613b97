// SPDX-License-Identifier: Apache-2.0
/*
 * debug_index - which unit an address belongs to: .debug_aranges, and gdb's .gdb_index. Both get
 * the copies of what they list. Indexes by names alone (.debug_names, .debug_pubnames) stay true,
 * since no entry changes its place.
 */
#ifndef ME_DEBUG_INDEX_H
#define ME_DEBUG_INDEX_H

#include "editor/debug_unit.h"

/* Both leave a section alone that is damaged. Return: 0, -ENOMEM. */
int me_aranges_extend(struct me_debug_file *file);
int me_gdb_index_extend(struct me_debug_file *file);

#endif
