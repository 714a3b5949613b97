// SPDX-License-Identifier: Apache-2.0
/*
 * table_form - decides by the instructions whether a table is only read to jump.
 *
 * Relocations, if kept, tell the labels. In a file without them, this accepts only the forms
 * that compilers use for a switch or a computed goto, with the table's own address in each.
 */
#ifndef ME_TABLE_FORM_H
#define ME_TABLE_FORM_H

#include "libprof/cfg/cfg.h"

/*
 * Does every instruction that names the table have one of these forms?
 *   jmp *T(,%i,8)
 *   mov T(,%i,8), %x, where the next use of %x is jmp *%x
 *   lea T(%rip), %b, where the jump's block, in the same range of the function, ends with
 *   movslq (%b,%i,4), %x; add; jmp *
 * If the loader relocates each entry, so that it is an address, any instruction is accepted.
 */
bool me_table_form_is_plain(const struct mp_cfg *cfg, const struct mp_table *table);

/* Does @vaddr lie, not at the start, in a range of the function whose code names the table? */
bool me_table_form_holds(const struct mp_cfg *cfg, const struct mp_table *table, uint64_t vaddr);

#endif
