// SPDX-License-Identifier: Apache-2.0
/*
 * disasm - prints instructions as text, in AT&T or Intel syntax. Called by annotate.
 */
#ifndef MD_DISASM_H
#define MD_DISASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct md_disasm;

/* Return: 0, -ENOMEM. Ownership: md_disasm_free(), which accepts NULL. */
int md_disasm_new(bool intel, struct md_disasm **out);
void md_disasm_free(struct md_disasm *disasm);

/*
 * md_disasm_text - disassemble the instruction at @bytes, of which @avail can be read. *@len
 * gets its length. Invalid code gives "(bad)" and length 1. Return: NULL: no memory. Ownership:
 * free().
 */
char *md_disasm_text(struct md_disasm *disasm, const uint8_t *bytes, size_t avail, uint64_t vaddr,
		     uint8_t *len);

#endif
