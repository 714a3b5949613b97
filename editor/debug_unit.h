// SPDX-License-Identifier: Apache-2.0
/*
 * debug_unit - one unit of .debug_info: its entries' ranges get those of the copies.
 *
 * No entry changes its size, so every offset into .debug_info stays true. What grows is appended
 * to other sections, and old bytes there stay as well: a unit that is not understood is left alone
 * and finds everything where it was.
 */
#ifndef ME_DEBUG_UNIT_H
#define ME_DEBUG_UNIT_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/debug_abbrev.h"
#include "editor/debug_moves.h"
#include "editor/debug_read.h"
#include "editor/debug_section.h"

/* Line programs and who uses them, by old offset: old to new. */
struct me_line_move {
	uint32_t old_off, new_off;
};

struct me_debug_file {
	const struct me_moves *moves;
	struct me_debug_section info, abbrev, line, ranges, rnglists, loc, loclists, addr;
	struct me_debug_section aranges, gdb_index;
	struct me_line_move *line_moves; /* by old_off */
	uint32_t nr_line_moves;
	uint32_t *extended; /* offsets of the units that were done, ascending */
	uint32_t nr_extended;
	struct me_abbrevs abbrevs; /* the table read last, for units of version */
	unsigned int abbrevs_version;
	struct me_ranges old, new; /* for whoever needs one for a moment */
	uint64_t budget;	   /* of work: lists may refer to each other's ends for ever */
	uint32_t nr_units, nr_left, nr_scopes, nr_scopes_left;
	const char *why; /* static: of the first unit that was left */
};

/* A list table under construction, of .debug_rnglists or .debug_loclists. */
struct me_list_table {
	bool begun;
	uint64_t off;	     /* in the section */
	uint32_t nr_offsets; /* as many as the old one's, if the unit uses any by number */
};

struct me_unit {
	struct me_debug_file *file;
	uint64_t off, end, first; /* in .debug_info; first: of the first entry */
	unsigned int version;
	uint64_t abbrev_off, abbrev_field;
	uint64_t base; /* low_pc */
	uint64_t addr_base, rnglists_base, loclists_base;
	bool has_addr_base, has_rnglists_base, has_loclists_base;
	struct me_list_table rnglists, loclists;
	uint8_t *bytes; /* the copy that changes: [off, end) */
};

/*
 * me_unit_extend - do the unit at @off of .debug_info; *@next: where the next one begins, 0: not
 * known. Counts in @file. Return: 0, also where the unit is left alone; -ENOMEM.
 */
int me_unit_extend(struct me_debug_file *file, uint64_t off, uint64_t *next);

/* Was the unit at @off done? */
bool me_unit_is_extended(const struct me_debug_file *file, uint64_t off);

/* The address that the unit's attribute of @form at @c stands for. */
uint64_t me_unit_address(const struct me_unit *unit, struct me_cursor *c, unsigned int form);
/* Entry @index of the unit's part of .debug_addr. */
bool me_unit_indexed_address(const struct me_unit *unit, uint64_t index, uint64_t *address);
/* Spend @work. Return: false if there was too much of it. */
bool me_debug_spend(struct me_debug_file *file, uint64_t work);

#endif
