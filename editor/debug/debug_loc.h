// SPDX-License-Identifier: Apache-2.0
/*
 * debug_loc - location lists, in .debug_loc (up to version 4) and .debug_loclists (5).
 * A variable is at the same place while a copy runs as while the old code runs, but not always in code
 * in place of a call: what changes a register holds no variable of the calling function there.
 * Called by debug_unit.
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
/* me_loc_each - call @good for each expression of the list at @off. Return: as above; -EPERM: one is not good, or holds by default. */
int me_loc_each(const struct me_unit *unit, uint64_t off,
		bool (*good)(const struct me_unit *unit, const uint8_t *expr, uint64_t size));
/*
 * me_loc_registers - add to *@registers those on which any expression of the list at @off depends. Return: as above;
 * -EPERM also if the list has a default location.
 */
int me_loc_registers(const struct me_unit *unit, uint64_t off, uint64_t *registers);
/* me_loc_write - append a list with the expression at @expr for each of @ranges; *@off: its offset. */
int me_loc_write(struct me_unit *unit, const struct me_ranges *ranges, const uint8_t *expr,
		 uint64_t size, uint32_t *off);
/* me_loc_empty - append a list without locations; *@off: its offset. */
int me_loc_empty(struct me_unit *unit, uint32_t *off);
/* me_loc_end - fill in the length of the unit's new table. */
void me_loc_end(struct me_unit *unit);

#endif
