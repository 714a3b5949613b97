// SPDX-License-Identifier: Apache-2.0
/*
 * old_part - the bytes of the original in an output: a private mapping of the file, with changes.
 *
 * Reading a page of the mapping makes it memory of this process, although it may be the same as in
 * the file. So this reads the pages without changes where they are given back again.
 */
#ifndef ME_OLD_PART_H
#define ME_OLD_PART_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/elf/elf.h"

struct me_old_part {
	const struct mp_elf *elf;
	uint8_t *bytes;	   /* private copy of the file's first @size bytes */
	uint64_t *changed; /* a bit for each page */
	size_t size;
};

/*
 * me_old_part_init - finds the changes of @bytes, which mp_elf_copy() made. Return: 0, -ENOMEM.
 * Ownership: of @bytes stays with the caller; me_old_part_fini().
 */
int me_old_part_init(struct me_old_part *part, const struct mp_elf *elf, uint8_t *bytes,
		     size_t size);
/* The caller changes [@off, @off + @len) from now on. */
void me_old_part_note_change(struct me_old_part *part, size_t off, size_t len);
/* *@hash: XXH3_64bits_withSeed() of all bytes. Return: 0, -ENOMEM. */
int me_old_part_hash(const struct me_old_part *part, uint64_t seed, uint64_t *hash);
void me_old_part_fini(struct me_old_part *part);

#endif
