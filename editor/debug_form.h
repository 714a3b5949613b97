// SPDX-License-Identifier: Apache-2.0
/*
 * debug_form - the sizes of DWARF's attribute forms, and the names of what is read or written
 * here, after the standard (DWARF 5, section 7.5).
 */
#ifndef ME_DEBUG_FORM_H
#define ME_DEBUG_FORM_H

#include <dwarf.h>

#include "editor/debug_read.h"

#define ME_FORM_VARIES	(-1)
#define ME_FORM_UNKNOWN (-2)

/* Bytes of a value of @form in units of @version with addresses of 8 bytes and offsets of 4. */
int me_form_size(unsigned int form, unsigned int version);
/* Go over a value; one of an unknown form makes the cursor bad. */
void me_form_skip(struct me_cursor *c, unsigned int form, unsigned int version);

#endif
