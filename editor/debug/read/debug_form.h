// SPDX-License-Identifier: Apache-2.0
/*
 * debug_form - DWARF's attribute forms (DWARF 5, section 7.5), and values in them. Called by the readers of .debug_info.
 */
#ifndef ME_DEBUG_FORM_H
#define ME_DEBUG_FORM_H

#include <dwarf.h>

#include "libprof/base/dwarf_cursor.h"

#define ME_FORM_VARIES	(-1)
#define ME_FORM_UNKNOWN (-2)

/* An attribute's value. */
struct me_value {
	const uint8_t *p; /* NULL: absent */
	uint64_t size;
	unsigned int form;
};

/*
 * me_form_size - bytes of a value of @form in a unit of @version, with 8-byte addresses
 * and 4-byte offsets. Return: the size, ME_FORM_VARIES or ME_FORM_UNKNOWN.
 */
int me_form_size(unsigned int form, unsigned int version);
/* me_form_skip - skip one value. An unknown form sets @c->bad. */
void me_form_skip(struct mp_cursor *c, unsigned int form, unsigned int version);

/* Is it an address, itself or as such an index? */
bool me_form_is_address(unsigned int form);
/* Is it an offset in the unit? */
bool me_form_is_reference(unsigned int form);
/* May it be an expression? */
bool me_form_is_expression(unsigned int form);

struct mp_cursor me_value_cursor(const struct me_value *v);
/* The first 8 bytes at most, as a number. */
uint64_t me_value_fixed(const struct me_value *v);
/* A number without sign, as LEB128 or in its bytes, as the form says. */
uint64_t me_value_index(const struct me_value *v);
/* The bytes of an expression. */
struct mp_cursor me_value_expression(const struct me_value *v);

#endif
