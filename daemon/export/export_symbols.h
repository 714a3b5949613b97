// SPDX-License-Identifier: Apache-2.0
/*
 * export_symbols - lists a file's function symbols by address, and gives the function names
 * that BOLT uses. Called by the exports that name functions to other tools.
 */
#ifndef MD_EXPORT_SYMBOLS_H
#define MD_EXPORT_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/elf/elf.h"

struct md_export_symbol {
	const struct mp_symbol *symbol;
	uint32_t number;  /* local symbols: position among those of this name, by address, from 1 */
	uint32_t nr_same; /* other functions in the file with this name */
	uint32_t name;	  /* number of the name, below nr_names */
};

struct md_export_symbols {
	struct md_export_symbol *names; /* of functions, ascending by vaddr, global ones first */
	size_t nr;
	uint32_t nr_names;
};

/* Return: 0, -ENOMEM. @elf must outlive @out. Ownership: md_export_symbols_fini(). */
int md_export_symbols_init(struct md_export_symbols *out, const struct mp_elf *elf);
void md_export_symbols_fini(struct md_export_symbols *names);

/*
 * Finds all names at @vaddr: *@nr of them from the returned pointer. NULL: none. A global name,
 * if any, is first.
 */
const struct md_export_symbol *md_export_symbols_at(const struct md_export_symbols *names,
						    uint64_t vaddr, size_t *nr);

/*
 * Writes llvm-bolt's name of the function or part that begins at @vaddr, with blanks and
 * backslashes escaped as in fdata. Examples: "main"; "parse/2" for a local symbol;
 * "__BOLT_FDE_FUNCat401000" if .symtab has no symbol there. Return: length; @size or more: it
 * did not fit.
 */
size_t md_export_symbols_format_bolt(const struct md_export_symbols *names, uint64_t vaddr,
				     char *buf, size_t size);

#endif
