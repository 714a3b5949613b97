// SPDX-License-Identifier: Apache-2.0
/* verify_switch - checks a changed word of data without a relocation. */
#ifndef ME_VERIFY_SWITCH_H
#define ME_VERIFY_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* The same by the instructions that read the table: is the word at @at, of @size bytes, an entry of one? */
int vf_prove_switch(const struct vf *vf, uint64_t at, uint8_t size);
/* With relocations: do all instructions that name @start read a table of offsets there, and jump to what an
 * entry says? */
bool vf_starts_table(const struct vf *vf, uint64_t start);
/* vf_check_table_word() without relocations: proved by the instructions that read the table. */
int vf_check_switch_word(const struct vf *vf, uint64_t vaddr, uint64_t *next);
/* May @to be the start of a jump table? If so, the scan keeps the references to it. */
bool vf_may_be_switch(const struct vf *vf, uint64_t to);

#endif
