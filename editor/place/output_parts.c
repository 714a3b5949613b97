// SPDX-License-Identifier: Apache-2.0
/* output_parts - collects the parts of an output file, and writes them. */
#include "editor/place/output_parts.h"
#include "libprof/base/assert.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libprof/base/grow.h"

static void part_fini(struct me_part *part)
{
	if (part->mapped)
		munmap(part->owned, part->size);
	else
		free(part->owned);
}

int me_output_parts_add(struct me_output_parts *output, const uint8_t *bytes, size_t size,
			uint64_t align, int own, uint64_t *off)
{
	uint64_t at = align > 1 ? (output->size_bytes + align - 1) / align * align
				: output->size_bytes;
	struct me_part part = {at, bytes, size, own ? (uint8_t *)bytes : NULL,
			       own == ME_OUTPUT_PARTS_UNMAP};

	if (mp_grow(output->parts, output->capacity, output->nr_parts + 1)) {
		part_fini(&part);
		return -ENOMEM;
	}
	output->parts[output->nr_parts++] = part;
	output->size_bytes = at + size;
	if (off)
		*off = at;
	return 0;
}

uint64_t me_output_parts_holes(const struct me_output_parts *output)
{
	const uint64_t block = 4096;
	uint64_t end = 0, holes = 0;

	for (uint32_t i = 0; i < output->nr_parts; i++) {
		uint64_t from = (end + block - 1) / block, to = output->parts[i].off / block;

		if (to > from)
			holes += (to - from) * block;
		end = output->parts[i].off + output->parts[i].size;
	}
	return holes;
}

/* Bytes of a mapped part that are written at once. */
#define WRITE_AT_ONCE (4u << 20)

static int write_some(const struct me_part *part, int fd, size_t done, size_t end)
{
	while (done < end) {
		ssize_t n = pwrite(fd, part->bytes + done, end - done, (off_t)(part->off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

static int write_part(const struct me_part *part, int fd)
{
	size_t step = part->mapped ? WRITE_AT_ONCE : part->size;
	int rc = 0;

	for (size_t done = 0, n; !rc && done < part->size; done += n) {
		n = part->size - done < step ? part->size - done : step;
		rc = write_some(part, fd, done, done + n);
		if (part->mapped)
			madvise(part->owned + done, n, MADV_DONTNEED);
	}
	return rc;
}

int me_output_parts_write(const struct me_output_parts *output, int fd)
{
	mp_assert(mp_ascends(output->parts, output->nr_parts, off));
	for (uint32_t i = 0; i < output->nr_parts; i++) {
		int rc = write_part(&output->parts[i], fd);

		if (rc)
			return rc;
	}
	return ftruncate(fd, (off_t)output->size_bytes) ? -errno : 0;
}

void me_output_parts_fini(struct me_output_parts *output)
{
	for (uint32_t i = 0; i < output->nr_parts; i++)
		part_fini(&output->parts[i]);
	free(output->parts);
	*output = (struct me_output_parts){0};
}
