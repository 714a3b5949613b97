// SPDX-License-Identifier: Apache-2.0
/*
 * debug_loc - location lists, in .debug_loc (up to version 4) and .debug_loclists (5).
 * A variable is at the same place while a copy runs as while the old code runs. Called
 * by debug_unit.
 */
#ifndef ME_DEBUG_LOC_H
#define ME_DEBUG_LOC_H

#include "editor/debug/debug_unit.h"

/* All return 0, -ENOMEM, -EBADMSG damaged, -EPERM not understood or too much. */

/*
 * me_loc_extend - if code of the list at *@off moved, append a longer list and set
 * *@off to it. @views: offset of the list's view numbers (DW_AT_GNU_locviews), updated
 * likewise; NULL: it has none.
 */
int me_loc_extend(struct me_unit *unit, uint32_t *off, uint32_t *views);
/*
 * me_loc_renumber - extend all lists that the unit uses by number (DW_FORM_loclistx).
 * Call before me_loc_extend().
 */
int me_loc_renumber(struct me_unit *unit);
/* me_loc_each - call @good for each expression of the list at @off. Return: as above; -EPERM: one is not good. */
int me_loc_each(const struct me_unit *unit, uint64_t off,
		bool (*good)(const struct me_unit *unit, const uint8_t *expr, uint64_t size));
/* me_loc_empty - append a list without locations; *@off: its offset. */
int me_loc_empty(struct me_unit *unit, uint32_t *off);
/* me_loc_end - fill in the length of the unit's new table. */
void me_loc_end(struct me_unit *unit);

#endif
