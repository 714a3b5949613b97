// SPDX-License-Identifier: Apache-2.0
/*
 * table_form - can it be told from the instructions alone that a table is read to jump, and for
 * nothing else?
 *
 * Where relocations are kept they say what is a label. In a file without them the forms that
 * compilers give to a switch or a computed goto must do, each with the table's own address in it.
 */
#ifndef ME_TABLE_FORM_H
#define ME_TABLE_FORM_H

#include "libprof/cfg.h"

/*
 * True where every instruction that names the table lies in one and the same range of the
 * function's as the jump, and is one of these:
 *   jmp *T(,%i,8)
 *   mov T(,%i,8), %x; jmp *%x
 *   lea T(%rip), %b, where the jump's block ends with movslq (%b,%i,4), %x; add; jmp *
 * or, where the loader relocates each entry (so that it is an address), any.
 */
bool me_table_form_is_plain(const struct mp_cfg *cfg, const struct mp_table *table);

/* The range of its function that the table's jump lies in; the table has a block. */
const struct mp_range *me_table_range(const struct mp_cfg *cfg, const struct mp_table *table);

#endif
