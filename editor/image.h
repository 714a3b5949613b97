// SPDX-License-Identifier: Apache-2.0
/*
 * image - the output file as a list of parts, in file order.
 *
 * Most of a file is unchanged, so parts point into the original where they can.
 */
#ifndef ME_IMAGE_H
#define ME_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/err.h"

struct me_part {
	uint64_t off; /* ascending, not overlapping; gaps are zero bytes */
	const uint8_t *bytes;
	size_t size;
	uint8_t *owned; /* == bytes where the image frees it, else NULL */
	bool mapped;	/* by munmap() */
};

enum me_image_own {
	ME_IMAGE_BORROW,
	ME_IMAGE_FREE,
	ME_IMAGE_UNMAP, /* page-aligned, of the part's size */
};

struct me_image {
	struct me_part *parts;
	uint32_t nr_parts, capacity;
	uint64_t size_bytes; /* end of the last part */
};

/*
 * me_image_add - append a part at the first offset >= the image's end that is a multiple of @align;
 * @off, if not NULL, receives it. With @own (enum me_image_own, or a truth value: free()) the image
 * frees @bytes, also when this fails.
 * Return: 0, -ENOMEM.
 */
int me_image_add(struct me_image *image, const uint8_t *bytes, size_t size, uint64_t align, int own,
		 uint64_t *off);

/* Whole blocks of 4096 bytes that hold nothing: they take no space where a file system can leave holes. */
uint64_t me_image_holes(const struct me_image *image);
/* Write everything to @fd at its offsets. Return: 0 or -errno. */
int me_image_write(const struct me_image *image, int fd);
void me_image_fini(struct me_image *image);

#endif
