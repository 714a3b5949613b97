// SPDX-License-Identifier: Apache-2.0
/*
 * phdr_extend - makes room for one more program header, directly behind the table.
 *
 * The table stays where it is, so AT_PHDR, PT_PHDR, __ehdr_start and all tools find it as
 * before. In files of lld and mold, the name of the interpreter and notes lie behind it. These
 * are found through program headers alone, so they move to the new segment, and their headers
 * follow.
 *
 *	before:  Ehdr | table      | .interp | notes      | .dynsym ...
 *	after:   Ehdr | table, +56 bytes     | zeros      | .dynsym ...  new segment: .interp, notes
 */
#ifndef ME_PHDR_EXTEND_H
#define ME_PHDR_EXTEND_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/elf/elf.h"

/* Bytes of the original that move to the new segment, all by the same distance. */
struct me_displaced {
	uint64_t off, vaddr, size; /* in the original; size 0: nothing moves */
	uint64_t align;		   /* greatest alignment of the moved parts */
	uint64_t new_vaddr;	   /* emit fills this in */
};

/* Find the bytes that must move. Return: false: bytes behind the table cannot move. */
bool me_phdr_extend_find(const struct mp_elf *elf, struct me_displaced *out);

/* Return: the output's address for @vaddr of the original. */
uint64_t me_displaced_vaddr(const struct me_displaced *moved, uint64_t vaddr);
/* Does @section move, of the original or of its debug file? */
bool me_displaced_has(const struct me_displaced *moved, const struct mp_section *section);
/* Update the symbols of @symtab whose values are addresses of moved bytes. */
void me_displaced_symbols(const struct me_displaced *moved, uint8_t *symtab, size_t size);

/* Does the range [@off, @off + @size) of the original move as a whole? */
bool me_displaced_holds(const struct me_displaced *moved, uint64_t off, uint64_t size);

#endif
