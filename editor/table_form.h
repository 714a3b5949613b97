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
 * True where every instruction that names the table is one of these:
 *   jmp *T(,%i,8)
 *   mov T(,%i,8), %x, where %x is not looked at until jmp *%x
 *   lea T(%rip), %b, where the jump's block, in the same range of the function, ends with
 *   movslq (%b,%i,4), %x; add; jmp *
 * or, where the loader relocates each entry (so that it is an address), any.
 */
bool me_table_form_is_plain(const struct mp_cfg *cfg, const struct mp_table *table);

/* Does @vaddr lie in a range of the function in which the table is named, and not at its start? */
bool me_table_form_holds(const struct mp_cfg *cfg, const struct mp_table *table, uint64_t vaddr);

#endif
