// SPDX-License-Identifier: Apache-2.0
/*
 * disasm - instructions as text, in AT&T's or Intel's syntax.
 */
#ifndef MD_DISASM_H
#define MD_DISASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct md_disasm;

/* Return: 0, -ENOMEM. Ownership: md_disasm_free(), which takes NULL. */
int md_disasm_new(bool intel, struct md_disasm **out);
void md_disasm_free(struct md_disasm *disasm);

/*
 * md_disasm_text - the instruction at @bytes, of at most @avail, and its length; "(bad)" of one
 * byte for what is none. Return: NULL: no memory. Ownership: free().
 */
char *md_disasm_text(struct md_disasm *disasm, const uint8_t *bytes, size_t avail, uint64_t vaddr,
		     uint8_t *len);

#endif
