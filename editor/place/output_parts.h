// SPDX-License-Identifier: Apache-2.0
/*
 * output_parts - the output file as a list of parts, in file order. Filled by emit, written by
 * optimize.
 *
 * Most of a file is unchanged, so parts point into the original where possible.
 */
#ifndef ME_OUTPUT_PARTS_H
#define ME_OUTPUT_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"

struct me_part {
	uint64_t off; /* ascending, not overlapping; gaps are zero bytes */
	const uint8_t *bytes;
	size_t size;
	uint8_t *owned; /* equals @bytes if me_output_parts_fini() frees them, else NULL */
	bool mapped;	/* freed by munmap() */
};

enum me_output_parts_own {
	ME_OUTPUT_PARTS_BORROW,
	ME_OUTPUT_PARTS_FREE,
	ME_OUTPUT_PARTS_UNMAP, /* page-aligned, as large as the part */
};

struct me_output_parts {
	struct me_part *parts;
	uint32_t nr_parts, capacity;
	uint64_t size_bytes; /* end of the last part */
};

/*
 * me_output_parts_add - append a part at the next multiple of @align; *@off, if @off is not
 * NULL, is its offset. Ownership: with @own (enum me_output_parts_own, or true: free()) the
 * output frees @bytes, after an error too.
 * Return: 0, -ENOMEM.
 */
int me_output_parts_add(struct me_output_parts *output, const uint8_t *bytes, size_t size,
			uint64_t align, int own, uint64_t *off);

/*
 * me_output_parts_holes - bytes in 4096-byte blocks that no part uses: a file system with
 * holes stores none of them.
 */
uint64_t me_output_parts_holes(const struct me_output_parts *output);
/*
 * me_output_parts_write - write all parts to @fd. Parts that are mapped lose their bytes, so that
 * written ones take no memory: write them once. Return: 0 or -errno.
 */
int me_output_parts_write(const struct me_output_parts *output, int fd);
void me_output_parts_fini(struct me_output_parts *output);

#endif
