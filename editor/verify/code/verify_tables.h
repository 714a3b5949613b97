// SPDX-License-Identifier: Apache-2.0
/* verify_tables - checks a changed word of data. */
#ifndef ME_VERIFY_TABLES_H
#define ME_VERIFY_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* The word at @vaddr differs: prove that it is an entry of a jump table that leads to a copy
 * now. *@next: the first address behind the word. */
int vf_check_table_word(const struct vf *vf, uint64_t vaddr, uint64_t *next);
/*
 * Prove that a table of labels that only jumps use starts at @start. *@size: of its entries; *@end:
 * behind the last word that may be one.
 */
int vf_prove_table(const struct vf *vf, uint64_t start, uint8_t *size, uint64_t *end);
/* Return: the only function whose operands name the table at @base, if it jumps indirectly; or
 * NULL. */
const struct vf_fde *vf_table_user(const struct vf *vf, uint64_t base);
/* vf_is_table_word - is the 8-byte word at @at an entry of a table that only one function's jumps read? */
bool vf_is_table_word(const struct vf *vf, uint64_t at);
/* vf_check_table_word() for a word whose Elf64_Rela, at file offset @off, differs. */
int vf_check_table_addend(const struct vf *vf, uint64_t off);
/* Check that table words that were equal are still equal. */
int vf_check_table_values(const struct vf *vf);

#endif
