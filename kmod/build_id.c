// SPDX-License-Identifier: GPL-2.0
/*
 * build_id - reads the notes in a file's first page; see build_id.h.
 * The file is untrusted and may change while it is read: each number is fetched once.
 */
#include <linux/elf.h>
#include <linux/highmem.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/string.h>

#include "kmod/build_id.h"
#include "kmod/uapi/morph_abi.h"

/* Number of NT_GNU_BUILD_ID, whose name only user space's headers define. */
#define NOTE_BUILD_ID 3

/* No real first page has more notes; a hostile one could take us long. */
#define NOTES_MAX 64

static u32 find_in_notes(const u8 *page, u32 off, u32 end, u32 *nr_notes, u8 *out)
{
	const Elf64_Nhdr *note;
	u64 name, desc, next;
	u32 namesz, descsz;

	while (off + sizeof(*note) <= end && (*nr_notes)++ < NOTES_MAX) {
		note = (const void *)(page + off);
		namesz = READ_ONCE(note->n_namesz);
		descsz = READ_ONCE(note->n_descsz);
		name = off + sizeof(*note);
		desc = name + ALIGN((u64)namesz, 4);
		next = desc + ALIGN((u64)descsz, 4);
		if (next > end)
			return 0;
		if (READ_ONCE(note->n_type) == NOTE_BUILD_ID && namesz == 4 &&
		    descsz <= MORPH_BUILD_ID_MAX && !memcmp(page + name, "GNU", 4)) {
			memcpy(out, page + desc, descsz);
			return descsz;
		}
		off = next;
	}
	return 0;
}

static u32 find_in_page(const u8 *page, u8 *out)
{
	const Elf64_Ehdr *ehdr = (const void *)page;
	const Elf64_Phdr *phdr, *end;
	u32 nr_notes = 0, len = 0, nr;
	u64 off, size;

	if (memcmp(ehdr->e_ident, ELFMAG, SELFMAG) ||
	    READ_ONCE(ehdr->e_ident[EI_CLASS]) != ELFCLASS64 ||
	    READ_ONCE(ehdr->e_phentsize) != sizeof(*phdr))
		return 0;
	off = READ_ONCE(ehdr->e_phoff);
	nr = READ_ONCE(ehdr->e_phnum);
	if (!IS_ALIGNED(off, sizeof(u64)) || off > PAGE_SIZE ||
	    nr > (PAGE_SIZE - off) / sizeof(*phdr))
		return 0;
	phdr = (const void *)(page + off);
	for (end = phdr + nr; phdr < end && !len; phdr++) {
		if (READ_ONCE(phdr->p_type) != PT_NOTE)
			continue;
		off = READ_ONCE(phdr->p_offset);
		size = READ_ONCE(phdr->p_filesz);
		if (IS_ALIGNED(off, sizeof(u32)) && off <= PAGE_SIZE)
			len = find_in_notes(page, off, off + min(size, PAGE_SIZE - off), &nr_notes,
					    out);
	}
	return len;
}

u32 morph_build_id_read(struct file *file, u8 *out)
{
	struct page *page;
	u8 *bytes;
	u32 len;

	if (!file->f_mapping)
		return 0;
	page = find_get_page(file->f_mapping, 0);
	if (!page)
		return 0;
	/* The kernel's own mapping lacks a page with a memory error. */
	if (!PageUptodate(page) || PageHWPoison(page)) {
		put_page(page);
		return 0;
	}
	bytes = kmap_local_page(page);
	len = find_in_page(bytes, out);
	kunmap_local(bytes);
	put_page(page);
	return len;
}
