// SPDX-License-Identifier: Apache-2.0
/*
 * import_symbols - finds the address of a function name from BOLT's fdata. Called by
 * import_fdata.
 *
 * BOLT writes global names unchanged. Local names get a number in order of addresses, since
 * several symbols may share a name: "name/1", or "name/file.c/1" if the source file is known. A
 * function known only from its unwind entry is "__BOLT_FDE_FUNCat<address>".
 */
#ifndef MD_IMPORT_SYMBOLS_H
#define MD_IMPORT_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/elf/elf.h"

struct md_symbol_index;

/* @elf must outlive the result. Return: NULL: no memory. */
struct md_symbol_index *md_symbol_index_new(const struct mp_elf *elf);
void md_symbol_index_free(struct md_symbol_index *names);
/* Return: false if the file does not have @name, or the name is ambiguous. */
bool md_symbol_index_find(const struct md_symbol_index *names, const char *name, uint64_t *vaddr);

#endif
