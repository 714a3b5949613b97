// SPDX-License-Identifier: Apache-2.0
/*
 * debug_loc - lists of locations, in .debug_loc (up to version 4) and .debug_loclists (5): where
 * variables are while old code runs, they are while its copies run.
 */
#ifndef ME_DEBUG_LOC_H
#define ME_DEBUG_LOC_H

#include "editor/debug_unit.h"

/* All return 0, -ENOMEM, -EBADMSG damaged, -EPERM not understood or too much. */

/*
 * me_loc_extend - append a longer list than the one at @*off, and change @*off, unless nothing of
 * it moved. @views: where the list's view numbers are (DW_AT_GNU_locviews), changed alike; NULL:
 * it has none.
 */
int me_loc_extend(struct me_unit *unit, uint32_t *off, uint32_t *views);
/* The unit's numbered lists (DW_FORM_loclistx), all of them, extended. Before me_loc_extend(). */
int me_loc_renumber(struct me_unit *unit);
/* Fill in the table's length. */
void me_loc_end(struct me_unit *unit);

#endif
