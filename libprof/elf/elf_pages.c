// SPDX-License-Identifier: Apache-2.0
/*
 * elf_pages - the pages of mapped files: copies of them, and giving them back. A page of a mapped
 * file counts as memory of the process from its first use on. Called by all that read large files.
 */
#include <string.h>
#include <sys/mman.h>

#include "libprof/elf/elf_private.h"

uint8_t *mp_elf_copy(const struct mp_elf *elf, size_t size)
{
	const int prot = PROT_READ | PROT_WRITE;
	int fd = elf->private_data->copy_fd;
	uint8_t *copy = MAP_FAILED;

	if (!elf->data || size > elf->size)
		return NULL;
	if (fd >= 0)
		copy = mmap(NULL, size, prot, MAP_PRIVATE, fd, 0);
	if (copy != MAP_FAILED)
		return copy;
	copy = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return NULL;
	elf->private_data->copied = true;
	memcpy(copy, elf->data, size);
	return copy;
}

static void set_changed(uint64_t *changed, size_t off)
{
	changed[off / MP_ELF_PAGE / 64] |= 1ull << (off / MP_ELF_PAGE % 64);
}

/* Gives the pages of @copy back that are not changed, within [@off, @end). */
static void drop_unchanged(uint8_t *copy, size_t off, size_t end, const uint64_t *changed)
{
	size_t from = off;

	for (; off < end; off += MP_ELF_PAGE) {
		if (!(changed[off / MP_ELF_PAGE / 64] >> (off / MP_ELF_PAGE % 64) & 1))
			continue;
		if (off > from)
			madvise(copy + from, off - from, MADV_DONTNEED);
		from = off + MP_ELF_PAGE;
	}
	if (end > from)
		madvise(copy + from, end - from, MADV_DONTNEED);
}

void mp_elf_find_changed(const struct mp_elf *elf, uint8_t *copy, size_t size, uint64_t *changed)
{
	/* Only in a mapping of the file, pages without changes can be loaded again. */
	const bool mapped = elf->private_data->copy_fd >= 0 && !elf->private_data->copied;
	size_t end;

	for (size_t off = 0; off < size; off = end) {
		end = size - off < MP_ELF_READ_AT_ONCE ? size : off + MP_ELF_READ_AT_ONCE;
		for (size_t page = off; page < end; page += MP_ELF_PAGE)
			if (memcmp(copy + page, elf->data + page,
				   end - page < MP_ELF_PAGE ? end - page : MP_ELF_PAGE))
				set_changed(changed, page);
		mp_elf_drop_bytes(elf, elf->data + off, end - off);
		if (mapped)
			drop_unchanged(copy, off, end, changed);
	}
}

void mp_elf_drop_pages(const struct mp_elf *elf)
{
	const struct mp_elf_private *priv = elf ? elf->private_data : NULL;

	/* The mapping is read-only, so nothing is lost. */
	if (priv && priv->map)
		madvise(priv->map, elf->size, MADV_DONTNEED);
}

void mp_elf_drop_bytes(const struct mp_elf *elf, const uint8_t *bytes, size_t size)
{
	const struct mp_elf_private *priv = elf->private_data;
	size_t start;

	if (!priv->map || !size)
		return;
	/* Pages that are read in part are loaded again when their rest is read. */
	start = (size_t)(bytes - elf->data) & ~(size_t)(MP_ELF_PAGE - 1);
	size += (size_t)(bytes - elf->data) - start;
	madvise((uint8_t *)priv->map + start, size, MADV_DONTNEED);
}
