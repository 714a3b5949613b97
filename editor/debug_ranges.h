// SPDX-License-Identifier: Apache-2.0
/*
 * debug_ranges - lists of ranges, in .debug_ranges (up to version 4) and .debug_rnglists (5): reads
 * old ones, appends longer ones.
 *
 * Debuggers take the first range's start for the entry, so that is where control enters the copy. Not
 * so for a function of which anything stayed, or lies below that: gdb takes what lies below the entry
 * for its prologue, and a breakpoint there for one on the entry.
 */
#ifndef ME_DEBUG_RANGES_H
#define ME_DEBUG_RANGES_H

#include "editor/debug_unit.h"

/* All return 0, -ENOMEM, -EBADMSG damaged, -EPERM not understood or too much. */

/* The list at @off, as absolute addresses, into @out, which is emptied before. */
int me_ranges_read(const struct me_unit *unit, uint64_t off, struct me_ranges *out);
/* The offset of the unit's list number @index (DW_FORM_rnglistx). */
int me_ranges_indexed(const struct me_unit *unit, uint64_t index, uint64_t *off);
/* From file->old to file->new: the copies' ranges, too. Return: false: nothing moved, file->new is
 * not to be used. */
bool me_ranges_extend(struct me_debug_file *file, bool is_function);
/* Append file->new as a list, its offset to @off. */
int me_ranges_write(struct me_unit *unit, uint32_t *off);
/* The unit's numbered lists, all of them, extended. Before me_ranges_write(). */
int me_ranges_renumber(struct me_unit *unit);
/* Fill in the table's length. */
void me_ranges_end(struct me_unit *unit);

/* Shared with debug_loc: a table of version 5, its numbers and its end. */
int me_list_count(const struct me_debug_section *section, uint64_t base, uint32_t *nr);
int me_list_indexed(const struct me_debug_section *section, uint64_t base, uint64_t index,
		    uint64_t *off);
void me_list_begin(struct me_debug_section *section, struct me_list_table *table,
		   uint32_t nr_offsets);
void me_list_end(struct me_debug_section *section, const struct me_list_table *table);
/* Bytes before the numbers of a table. */
#define ME_LIST_HEADER 12

#endif
