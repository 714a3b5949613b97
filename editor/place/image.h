// SPDX-License-Identifier: Apache-2.0
/*
 * image - the output file as a list of parts, in file order. Filled by emit, written by optimize.
 *
 * Most of a file is unchanged, so parts point into the original where possible.
 */
#ifndef ME_IMAGE_H
#define ME_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"

struct me_part {
	uint64_t off; /* ascending, not overlapping; gaps are zero bytes */
	const uint8_t *bytes;
	size_t size;
	uint8_t *owned; /* equals @bytes if the image frees them, else NULL */
	bool mapped;	/* freed by munmap() */
};

enum me_image_own {
	ME_IMAGE_BORROW,
	ME_IMAGE_FREE,
	ME_IMAGE_UNMAP, /* page-aligned, as large as the part */
};

struct me_image {
	struct me_part *parts;
	uint32_t nr_parts, capacity;
	uint64_t size_bytes; /* end of the last part */
};

/*
 * me_image_add - append a part at the next multiple of @align; *@off, if @off is not
 * NULL, is its offset. Ownership: with @own (enum me_image_own, or true: free()) the
 * image frees @bytes, after an error too.
 * Return: 0, -ENOMEM.
 */
int me_image_add(struct me_image *image, const uint8_t *bytes, size_t size, uint64_t align, int own,
		 uint64_t *off);

/*
 * me_image_holes - bytes in 4096-byte blocks that no part uses: a file system with
 * holes stores none of them.
 */
uint64_t me_image_holes(const struct me_image *image);
/* me_image_write - write all parts to @fd. Return: 0 or -errno. */
int me_image_write(const struct me_image *image, int fd);
void me_image_fini(struct me_image *image);

#endif
