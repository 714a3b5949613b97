// SPDX-License-Identifier: Apache-2.0
/*
 * debug_unit - one unit of .debug_info: its entries get the ranges of their copies.
 * Called by debug.
 *
 * No entry changes its size, so offsets into .debug_info stay valid. Longer data is
 * appended to other sections, whose old bytes stay: a unit that is not understood is
 * left unchanged and still correct.
 */
#ifndef ME_DEBUG_UNIT_H
#define ME_DEBUG_UNIT_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/debug/read/debug_abbrev.h"
#include "editor/debug/debug_inlined.h"
#include "editor/debug/debug_moves.h"
#include "libprof/base/dwarf_cursor.h"
#include "editor/debug/read/debug_header.h"
#include "editor/debug/read/debug_list.h"
#include "editor/debug/read/debug_section.h"

/* Offset of a line program before and after it was extended. */
struct me_line_move {
	uint32_t old_off, new_off;
};

/* A unit that was added: functions of the unit at @old_off that other functions were inlined into. */
struct me_added_unit {
	uint64_t old_off, off, size;
	struct me_ranges ranges; /* of these functions: old code and copies */
};

struct me_debug_sections {
	const struct me_moves *moves;
	struct me_inlined_calls inlined;
	bool has_names; /* an index by name, which would lack added units */
	struct me_debug_section info, abbrev, line, ranges, rnglists, loc, loclists, addr;
	struct me_debug_section aranges, gdb_index;
	struct me_debug_section line_str; /* grows */
	struct me_debug_section str,
		str_offsets;	     /* only read, and only if functions were inlined */
	struct me_added_unit *added; /* ascending old_off */
	uint32_t nr_added, cap_added;
	struct me_line_move *line_moves; /* sorted by old_off */
	uint32_t nr_line_moves, cap_line_moves;
	uint32_t *extended; /* offsets of the extended units, ascending */
	uint32_t nr_extended, cap_extended;
	struct me_abbrevs abbrevs; /* the table read last, for units of abbrevs_version */
	unsigned int abbrevs_version;
	struct me_ranges old, new; /* scratch lists; see debug_ranges.h */
	struct me_ranges changing; /* the same, for code in place of calls */
	uint64_t budget;	   /* remaining work: limits lists that share their entries */
	uint32_t nr_units, nr_left, nr_scopes, nr_scopes_left;
	uint32_t nr_described; /* inlined calls with an entry */
	const char *why;       /* static text: why the first unit was left */
};

/* A new table of lists in .debug_rnglists or .debug_loclists. */
struct me_list_table {
	bool begun;
	uint64_t off;	     /* of its header, in the section */
	uint32_t nr_offsets; /* as in the old table; 0: the unit uses no list by number */
};

/* A function that moves to an added unit: its entry with all below. Offsets in .debug_info. */
struct me_moved_function {
	uint64_t start, end;
	uint64_t parents[4]; /* namespaces around it */
	uint8_t nr_parents;
};

/* How a unit uses one of its numbered lists of ranges. */
enum me_list_use {
	ME_LIST_USED = 1 << 0,
	ME_LIST_SHARED = 1 << 1, /* by several entries */
	ME_LIST_OWN = 1 << 2,	 /* by the unit's own entry */
	ME_LIST_LOST = 1 << 3,	 /* by a function that moves */
	ME_LIST_ADDED = 1 << 4,	 /* by an entry of the added unit */
};

struct me_unit {
	struct me_debug_sections *file;
	uint64_t off, end, first; /* offsets in .debug_info; first: of the first entry */
	unsigned int version, type;
	uint64_t abbrev_off, abbrev_field;
	uint64_t base; /* low_pc of the unit */
	uint64_t frame_base; /* registers on which any function's frame base depends, see me_leaf_changed() */
	uint64_t addr_base, rnglists_base, loclists_base;
	bool has_addr_base, has_rnglists_base, has_loclists_base;
	struct me_list_table rnglists, loclists;
	uint8_t *bytes; /* changed copy of [off, end) */
	/* functions that move to an added unit, their code, and the end of the entries that both units have */
	struct me_moved_function *functions;
	uint32_t nr_functions;
	struct me_ranges taken;
	uint64_t prefix_end;
	uint32_t added_line; /* offset of the added unit's line program */
	uint8_t *lists; /* per numbered list of ranges: enum me_list_use; NULL: no function moves */
	uint32_t nr_lists;
};

/*
 * me_unit_extend - extend the unit at @off of .debug_info, and count it in @file.
 * *@next: offset of the next unit; 0: not known. Return: 0, even if the unit is left
 * unchanged; -ENOMEM.
 */
int me_unit_extend(struct me_debug_sections *file, uint64_t off, uint64_t *next);

/* me_unit_added - the unit that was added for the unit at @off; NULL: none was. */
const struct me_added_unit *me_unit_added(const struct me_debug_sections *file, uint64_t off);
/* me_unit_is_extended - was the unit at @off extended? */
bool me_unit_is_extended(const struct me_debug_sections *file, uint64_t off);

/* me_unit_indexed - the address with number @index of the unit's part of .debug_addr, for lists. */
bool me_unit_indexed(const void *unit, uint64_t index, struct me_addr *out);
/* me_debug_spend - use up @work of the file's budget. Return: false if not enough is left. */
bool me_debug_spend(struct me_debug_sections *file, uint64_t work);

#endif
