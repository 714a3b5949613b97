// SPDX-License-Identifier: GPL-2.0
/* build_id - from the notes in a file's first page; see build_id.h. The file is anybody's. */
#include <linux/elf.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/string.h>

#include "kmod/build_id.h"
#include "kmod/uapi/morph_abi.h"

/* Of NT_GNU_BUILD_ID, which only user space has a name for. */
#define NOTE_BUILD_ID 3

static u32 find_in_notes(const u8 *notes, u32 size, u8 *out)
{
	const Elf64_Nhdr *note;
	u32 name, desc;

	while (size >= sizeof(*note)) {
		note = (const void *)notes;
		notes += sizeof(*note);
		size -= sizeof(*note);
		if (note->n_namesz > size || note->n_descsz > size)
			return 0;
		name = ALIGN(note->n_namesz, 4);
		desc = ALIGN(note->n_descsz, 4);
		if (name > size || desc > size - name)
			return 0;
		if (note->n_type == NOTE_BUILD_ID && note->n_namesz == 4 &&
		    note->n_descsz <= MORPH_BUILD_ID_MAX && !memcmp(notes, "GNU", 4)) {
			memcpy(out, notes + name, note->n_descsz);
			return note->n_descsz;
		}
		notes += name + desc;
		size -= name + desc;
	}
	return 0;
}

static u32 find_in_page(const u8 *page, u8 *out)
{
	const Elf64_Ehdr *ehdr = (const void *)page;
	const Elf64_Phdr *phdr;
	u32 i, len = 0;

	if (memcmp(ehdr->e_ident, ELFMAG, SELFMAG) || ehdr->e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr->e_phentsize != sizeof(*phdr) || !IS_ALIGNED(ehdr->e_phoff, 8) ||
	    ehdr->e_phoff > PAGE_SIZE ||
	    ehdr->e_phnum > (PAGE_SIZE - ehdr->e_phoff) / sizeof(*phdr))
		return 0;
	phdr = (const void *)(page + ehdr->e_phoff);
	for (i = 0; i < ehdr->e_phnum && !len; i++)
		if (phdr[i].p_type == PT_NOTE && IS_ALIGNED(phdr[i].p_offset, 4) &&
		    phdr[i].p_offset <= PAGE_SIZE &&
		    phdr[i].p_filesz <= PAGE_SIZE - phdr[i].p_offset)
			len = find_in_notes(page + phdr[i].p_offset, phdr[i].p_filesz, out);
	return len;
}

u32 morph_build_id_read(struct file *file, u8 *out)
{
	struct page *page;
	u8 *bytes;
	u32 len;

	if (!file->f_mapping || !file_inode(file)->i_size)
		return 0;
	page = find_get_page(file->f_mapping, 0);
	if (!page)
		return 0;
	if (!PageUptodate(page)) {
		put_page(page);
		return 0;
	}
	bytes = kmap_local_page(page);
	len = find_in_page(bytes, out);
	kunmap_local(bytes);
	put_page(page);
	return len;
}
