// SPDX-License-Identifier: Apache-2.0
/*
 * phdr_room - room for one more program header, directly behind the table.
 *
 * The table stays where it is, so AT_PHDR, PT_PHDR, __ehdr_start and every tool find it as before.
 * What lies behind it in files of lld and mold is found through program headers alone: the name of
 * the program interpreter and notes. These go to the new segment, and their headers follow.
 *
 *	before:  Ehdr | table      | .interp | notes      | .dynsym ...
 *	after:   Ehdr | table, +56 bytes     | zeros      | .dynsym ...  new segment: .interp, notes
 */
#ifndef ME_PHDR_ROOM_H
#define ME_PHDR_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/elf.h"

/* Bytes of the original that move to the new segment, all by the same distance. */
struct me_displaced {
	uint64_t off, vaddr, size; /* in the original; size 0: nothing moves */
	uint64_t align;		   /* greatest alignment of what moves */
	uint64_t new_vaddr;	   /* emit fills this in */
};

/* Return: false: the bytes behind the table are something else, and stay. */
bool me_phdr_room_find(const struct mp_elf *elf, struct me_displaced *out);

/* Where the address @vaddr of the original is now. */
uint64_t me_displaced_vaddr(const struct me_displaced *moved, uint64_t vaddr);
/* Does @section move, of the original or of its debug file? */
bool me_displaced_has(const struct me_displaced *moved, const struct mp_section *section);
/* Move the values of those symbols of @symtab that name what moves. */
void me_displaced_symbols(const struct me_displaced *moved, uint8_t *symtab, size_t size);

/* Is [@off, @off + @size) of the original among what moves? */
bool me_displaced_holds(const struct me_displaced *moved, uint64_t off, uint64_t size);

#endif
