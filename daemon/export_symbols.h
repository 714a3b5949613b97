// SPDX-License-Identifier: Apache-2.0
/*
 * export_symbols - the symbols of a file by address, and the names that BOLT knows functions by.
 */
#ifndef MD_EXPORT_SYMBOLS_H
#define MD_EXPORT_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/elf.h"

struct md_export_symbol {
	const struct mp_symbol *symbol;
	uint32_t number;  /* local symbols: the how many-th of this name, by address, from 1 */
	uint32_t nr_same; /* functions elsewhere in the file that have this name too */
	uint32_t name;	  /* the same number for the same name, below nr_names */
};

struct md_export_symbols {
	struct md_export_symbol *names; /* of functions, ascending vaddr, global ones first */
	size_t nr;
	uint32_t nr_names;
};

/* Return: 0, -ENOMEM. @elf must outlive @out. Ownership: md_export_symbols_fini(). */
int md_export_symbols_init(struct md_export_symbols *out, const struct mp_elf *elf);
void md_export_symbols_fini(struct md_export_symbols *names);

/* All names that begin at @vaddr: *@nr from the returned pointer; NULL: none. The first is the
 * one that others can see, where there is one. */
const struct md_export_symbol *md_export_symbols_at(const struct md_export_symbols *names,
						    uint64_t vaddr, size_t *nr);

/*
 * What llvm-bolt calls the function or the part of one that begins at @vaddr, blanks and
 * backslashes escaped as in fdata: "main"; "parse/2" for a local symbol; "__BOLT_FDE_FUNCat401000"
 * without a symbol in .symtab, whatever .dynsym says. Return: length; @size or more: it did not fit.
 */
size_t md_export_symbols_format_bolt(const struct md_export_symbols *names, uint64_t vaddr,
				     char *buf, size_t size);

#endif
