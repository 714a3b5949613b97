// SPDX-License-Identifier: Apache-2.0
/* image - collects the parts of an output file, and writes them. */
#include "editor/place/image.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void part_fini(struct me_part *part)
{
	if (part->mapped)
		munmap(part->owned, part->size);
	else
		free(part->owned);
}

int me_image_add(struct me_image *image, const uint8_t *bytes, size_t size, uint64_t align, int own,
		 uint64_t *off)
{
	uint64_t at = align > 1 ? (image->size_bytes + align - 1) / align * align
				: image->size_bytes;
	struct me_part part = {at, bytes, size, own ? (uint8_t *)bytes : NULL,
			       own == ME_IMAGE_UNMAP};

	if (image->nr_parts == image->capacity) {
		uint32_t capacity = image->capacity ? 2 * image->capacity : 32;
		struct me_part *parts = realloc(image->parts, capacity * sizeof(*parts));

		if (!parts) {
			part_fini(&part);
			return -ENOMEM;
		}
		image->parts = parts;
		image->capacity = capacity;
	}
	image->parts[image->nr_parts++] = part;
	image->size_bytes = at + size;
	if (off)
		*off = at;
	return 0;
}

uint64_t me_image_holes(const struct me_image *image)
{
	const uint64_t block = 4096;
	uint64_t end = 0, holes = 0;

	for (uint32_t i = 0; i < image->nr_parts; i++) {
		uint64_t from = (end + block - 1) / block, to = image->parts[i].off / block;

		if (to > from)
			holes += (to - from) * block;
		end = image->parts[i].off + image->parts[i].size;
	}
	return holes;
}

int me_image_write(const struct me_image *image, int fd)
{
	for (uint32_t i = 0; i < image->nr_parts; i++) {
		const struct me_part *part = &image->parts[i];
		size_t done = 0;

		while (done < part->size) {
			ssize_t n = pwrite(fd, part->bytes + done, part->size - done,
					   (off_t)(part->off + done));

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return n < 0 ? -errno : -EIO;
			done += (size_t)n;
		}
	}
	return ftruncate(fd, (off_t)image->size_bytes) ? -errno : 0;
}

void me_image_fini(struct me_image *image)
{
	for (uint32_t i = 0; i < image->nr_parts; i++)
		part_fini(&image->parts[i]);
	free(image->parts);
	*image = (struct me_image){0};
}
