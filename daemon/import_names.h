// SPDX-License-Identifier: Apache-2.0
/*
 * import_names - which address a function's name in BOLT's fdata means in a file.
 *
 * BOLT writes a global symbol's name as it is. Local ones get a number, since several may have one
 * name, counted in the order of their addresses: "name/1", or "name/file.c/1" where a symbol says
 * the source. A function known by its unwind entry alone is "__BOLT_FDE_FUNCat<address>".
 */
#ifndef MD_IMPORT_NAMES_H
#define MD_IMPORT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/elf.h"

struct md_names;

/* @elf must outlive it. Return: NULL where there is no memory. */
struct md_names *md_names_new(const struct mp_elf *elf);
void md_names_free(struct md_names *names);
/* Return: false where @name is none of the file's, or could be one of several. */
bool md_names_find(const struct md_names *names, const char *name, uint64_t *vaddr);

#endif
