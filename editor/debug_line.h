// SPDX-License-Identifier: Apache-2.0
/*
 * debug_line - a unit's line program, with sequences for the copies.
 *
 * The old program stays where it is, for others may use it; a copy of it is appended that goes on
 * with the new sequences. In the copy, rows of old code that was copied begin no statement any
 * more: a breakpoint on a line then is set where the line runs.
 */
#ifndef ME_DEBUG_LINE_H
#define ME_DEBUG_LINE_H

#include "editor/debug_unit.h"

/*
 * me_line_extend - append the extended program of the one at @off, once for all its users; its
 * offset to @new_off, which is @off if nothing in it moved.
 * Return: 0, -ENOMEM, -EBADMSG damaged, -EPERM not understood or too much; nothing was appended.
 */
int me_line_extend(struct me_debug_file *file, uint64_t off, uint32_t *new_off);

#endif
