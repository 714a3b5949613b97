// SPDX-License-Identifier: Apache-2.0
/*
 * debug_entry_private - one entry of a unit. Only debug_entry.c, debug_unit.c, debug_callee.c,
 * debug_function.c and debug_clone.c include this header.
 */
#ifndef ME_DEBUG_ENTRY_PRIVATE_H
#define ME_DEBUG_ENTRY_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/debug/debug_unit.h"
#include "editor/debug/read/debug_form.h"

struct me_entry {
	struct me_abbrev *abbrev;
	const uint8_t *start;
	unsigned int code_size;
	struct me_value low, high, ranges, entry_pc, stmt_list, location, locviews, frame_base;
	struct me_value addr_base, rnglists_base, loclists_base;
	struct me_value comp_dir, abstract_origin, specification, name, linkage_name;
	struct me_value str_offsets_base, call_file, call_line, call_column;
};

/* The offset in .debug_info that a reference in the unit names. */
uint64_t me_value_reference(const struct me_unit *u, const struct me_value *v);

/* The address that the value is, or whose number it is. Return: false: it is none. */
bool me_value_address(const struct me_unit *u, const struct me_value *v, uint64_t *address);
/* A number in any form; 0: the value is absent or no number. */
uint64_t me_value_number(const struct me_value *v);
/* The offset in .debug_info that the value names, in the unit or elsewhere; 0: none. */
uint64_t me_value_target(const struct me_unit *u, const struct me_value *v);
/* A string's form and place; form 0: it is absent or has another form. @str_offsets_base: of the unit. */
struct me_callee_name me_value_name(const struct me_unit *u,
				    const struct me_value *str_offsets_base,
				    const struct me_value *v);
/* The string itself; NULL: there is none. */
const char *me_name_text(const struct me_debug_sections *file, const struct me_callee_name *name);
/* Is the value an offset into another section? */
bool me_value_is_offset(const struct me_unit *u, const struct me_value *v);

/* Read the range of an entry with low_pc and high_pc. Return: false if it cannot be read. */
bool me_entry_range(const struct me_unit *u, const struct me_entry *e, struct me_range *r);
/* Read one entry. It has no abbreviation if it ends a list of siblings. Return: 0, -EBADMSG. */
int me_entry_read(struct me_unit *u, struct mp_cursor *c, struct me_entry *e);

/* Read the ranges of an entry into @out; none if it has no code. Return: as above. */
int me_entry_read_ranges(const struct me_unit *u, const struct me_entry *e, struct me_ranges *out);
/* Is the range of @e a list in the changed unit, though it was none? */
bool me_entry_is_changed(const struct me_unit *u, const struct me_entry *e);
/* Is the entry in a function that moves to an added unit? */
bool me_entry_leaves(const struct me_unit *u, const struct me_entry *e);
/* Where the offset of the list of @e stands in the changed unit. */
const uint8_t *me_entry_list_field(const struct me_entry *e);

/* ---- debug_unit.c ---- */
/*
 * Read the header, the abbreviations and the own entry of the unit at u->off; *@next as in
 * me_unit_extend(). @own has no abbreviation if the unit has no code. Return: 0, -ENOMEM, -EBADMSG, -EPERM.
 */
int me_unit_open(struct me_unit *u, struct me_entry *own, uint64_t *next);
/* Read the unit's ranges into file->old. Return: as above. */
int me_unit_read_ranges(struct me_unit *u, const struct me_entry *own);
/* The bytes at @p of the old unit, in the changed one. */
uint8_t *me_unit_field(const struct me_unit *u, const uint8_t *p);

#endif
