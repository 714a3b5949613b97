// SPDX-License-Identifier: Apache-2.0
/*
 * debug_form - the sizes of DWARF's attribute forms (DWARF 5, section 7.5). Called by
 * the readers of .debug_info.
 */
#ifndef ME_DEBUG_FORM_H
#define ME_DEBUG_FORM_H

#include <dwarf.h>

#include "libprof/base/dwarf_cursor.h"

#define ME_FORM_VARIES	(-1)
#define ME_FORM_UNKNOWN (-2)

/*
 * me_form_size - bytes of a value of @form in a unit of @version, with 8-byte addresses
 * and 4-byte offsets. Return: the size, ME_FORM_VARIES or ME_FORM_UNKNOWN.
 */
int me_form_size(unsigned int form, unsigned int version);
/* me_form_skip - skip one value. An unknown form sets @c->bad. */
void me_form_skip(struct mp_cursor *c, unsigned int form, unsigned int version);

#endif
