// SPDX-License-Identifier: Apache-2.0
/*
 * debug_line - a unit's line program, with sequences for the copies. Called by debug_unit.
 *
 * The old program stays, since other units may use it; an extended copy of it is
 * appended. In that copy, statements of copied code begin only in the new sequences, so
 * that a debugger sets a line's breakpoint in the code that runs.
 */
#ifndef ME_DEBUG_LINE_H
#define ME_DEBUG_LINE_H

#include "editor/debug/debug_unit.h"

/*
 * me_line_extend - append an extended copy of the program at @off, once for all its
 * users. @new_off: its offset; @off if none of its code moved. @taken: code of an added unit, which gets a program
 * of its own at @added_off; NULL: there is no such unit.
 * Return: 0, -ENOMEM, -EBADMSG damaged, -EPERM not understood or too much. After an
 * error nothing was appended.
 */
int me_line_extend(struct me_debug_sections *file, uint64_t off, const struct me_ranges *taken,
		   uint32_t *new_off, uint32_t *added_off);
/*
 * me_line_find_callees - read the lines of the inlined functions that the program at @off describes.
 * Return: as above.
 */
int me_line_find_callees(struct me_debug_sections *file, uint64_t off);

#endif
