// SPDX-License-Identifier: Apache-2.0
/*
 * debug_entry_private - one entry of a unit. Only debug_entry.c and debug_unit.c include
 * this header.
 */
#ifndef ME_DEBUG_ENTRY_PRIVATE_H
#define ME_DEBUG_ENTRY_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/debug/debug_unit.h"

/* An attribute's value in .debug_info. */
struct me_value {
	const uint8_t *p; /* NULL: absent */
	uint64_t size;
	unsigned int form;
};

struct me_entry {
	struct me_abbrev *abbrev;
	const uint8_t *start;
	unsigned int code_size;
	struct me_value low, high, ranges, entry_pc, stmt_list, location, locviews, frame_base;
	struct me_value addr_base, rnglists_base, loclists_base;
};

/* Is the form an index into .debug_addr? */
bool me_form_is_addrx(unsigned int form);

struct me_cursor me_value_cursor(const struct me_value *v);
uint64_t me_value_fixed(const struct me_value *v);
/* Is the value an offset into another section? */
bool me_value_is_offset(const struct me_unit *u, const struct me_value *v);

/* Read the range of an entry with low_pc and high_pc. Return: false if it cannot be read. */
bool me_entry_range(const struct me_unit *u, const struct me_entry *e, struct me_range *r);
/* Read one entry. It has no abbreviation if it ends a list of siblings. Return: 0, -EBADMSG. */
int me_entry_read(struct me_unit *u, struct me_cursor *c, struct me_entry *e);

#endif
