// SPDX-License-Identifier: Apache-2.0
/* row_rule_private - from a row of a call-frame program to a rule of unwind rows. */
#ifndef MP_ROW_RULE_PRIVATE_H
#define MP_ROW_RULE_PRIVATE_H

#include <stdbool.h>

#include "libprof/unwind/cfi.h"
#include "libprof/unwind/row_format.h"

/* DWARF's numbers of the registers that rows track. */
#define MP_DWARF_RBP 6
#define MP_DWARF_RSP 7
#define MP_DWARF_RA  16

/* Return: the rule of @row; @signal: of a signal frame's FDE. */
struct mp_row_rule mp_row_rule_of(const struct mp_cfi_rules *rules, const struct mp_cfi_row *row,
				  bool signal);
struct mp_row_rule mp_row_rule_stop(enum mp_row_stop stop);

#endif
