// SPDX-License-Identifier: Apache-2.0
/*
 * debug_ranges - range lists, in .debug_ranges (up to version 4) and .debug_rnglists (5): reads old
 * lists, appends longer ones. Called by debug_unit.
 *
 * Debuggers take the start of the first range for the entry, so a list begins with the copy of the
 * entry. There is one exception: if code of a function was not copied, or lies below that copy, the
 * function's old ranges come first. Otherwise gdb would take the code below the entry for the
 * prologue, and set the entry's breakpoint there.
 */
#ifndef ME_DEBUG_RANGES_H
#define ME_DEBUG_RANGES_H

#include "editor/debug/debug_unit.h"

/* All return 0, -ENOMEM, -EBADMSG damaged, -EPERM not understood or too much. */

/* me_list_open - a reader of the unit's list of ranges, or of locations, at @off. */
struct me_list_reader me_list_open(const struct me_unit *unit, bool locations, uint64_t off);
/* me_list_step - read one entry, at the expense of the file's budget. */
int me_list_step(const struct me_unit *unit, struct me_list_reader *r, struct me_list_entry *e);
/*
 * me_ranges_read - read the list at @off as absolute addresses into @out, which is
 * emptied first.
 */
int me_ranges_read(const struct me_unit *unit, uint64_t off, struct me_ranges *out);
/* me_ranges_indexed - offset of the unit's list number @index (DW_FORM_rnglistx). */
int me_ranges_indexed(const struct me_unit *unit, uint64_t index, uint64_t *off);
/*
 * me_ranges_extend - set file->new to the ranges in file->old and their copies. @whole: also code in place of calls
 * that changes registers which calls keep. Return: false if nothing moved; file->new then is not valid.
 */
bool me_ranges_extend(struct me_debug_sections *file, bool is_function, bool whole);
/* me_ranges_write - append file->new as a list; *@off: its offset. */
int me_ranges_write(struct me_unit *unit, uint32_t *off);
/*
 * me_ranges_renumber - extend all lists that the unit uses by number. Call before
 * me_ranges_write().
 */
int me_ranges_renumber(struct me_unit *unit);
/*
 * me_ranges_added - begin a table for the added unit, with the lists that are ME_LIST_ADDED, and the unit's own list.
 * *@base: what the added unit calls DW_AT_rnglists_base.
 */
int me_ranges_added(struct me_unit *unit, uint32_t *base);
/* me_ranges_end - fill in the length of the unit's new table. */
void me_ranges_end(struct me_unit *unit);

/* Tables of lists in version 5, shared with debug_loc: number of offsets, look-up, start, end. */
int me_list_count(const struct me_debug_section *section, uint64_t base, uint32_t *nr);
int me_list_indexed(const struct me_debug_section *section, uint64_t base, uint64_t index,
		    uint64_t *off);
void me_list_begin(struct me_debug_section *section, struct me_list_table *table,
		   uint32_t nr_offsets);
void me_list_end(struct me_debug_section *section, const struct me_list_table *table);
/* Size of a table's header, in bytes. */
#define ME_LIST_HEADER 12

#endif
