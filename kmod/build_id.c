// SPDX-License-Identifier: GPL-2.0
/*
 * build_id - from the notes in a file's first page; see build_id.h.
 *
 * The file is anybody's: it may change while it is read, so each number is fetched once, and its
 * page may have left the kernel's own map (broken memory), so the first fetch may
 * fail.
 */
#include <linux/elf.h>
#include <linux/highmem.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "kmod/build_id.h"
#include "kmod/uapi/morph_abi.h"

/* Of NT_GNU_BUILD_ID, which only user space has a name for. */
#define NOTE_BUILD_ID 3

/* Nobody's first page has more; a hostile one could keep us for long. */
#define NOTES_MAX 64

struct reader {
	const u8 *page;
	u32 nr_notes;
	u8 *out;
};

/*
 * Return: false where [off, off + size) is not in the page. Not inlined, or the compiler might
 * look at the page again instead of at the copy.
 */
static noinline bool fetch(const struct reader *r, void *to, u64 off, u32 size)
{
	if (off > PAGE_SIZE || size > PAGE_SIZE - off)
		return false;
	memcpy(to, r->page + off, size);
	return true;
}

static u32 find_in_notes(struct reader *r, u64 off, u64 end)
{
	u64 name, desc;
	Elf64_Nhdr note;
	u32 gnu;

	while (off < end && r->nr_notes++ < NOTES_MAX && fetch(r, &note, off, sizeof(note))) {
		name = off + sizeof(note);
		desc = name + ALIGN((u64)note.n_namesz, 4);
		off = desc + ALIGN((u64)note.n_descsz, 4);
		if (note.n_type == NOTE_BUILD_ID && note.n_namesz == sizeof(gnu) && off <= end &&
		    note.n_descsz <= MORPH_BUILD_ID_MAX && fetch(r, &gnu, name, sizeof(gnu)) &&
		    !memcmp(&gnu, "GNU", sizeof(gnu)) && fetch(r, r->out, desc, note.n_descsz))
			return note.n_descsz;
	}
	return 0;
}

static u32 find_in_page(struct reader *r)
{
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	u32 i, len = 0;
	u64 at;

	/* Where this can be read, the rest of the page can. */
	if (copy_from_kernel_nofault(&ehdr, r->page, sizeof(ehdr)) ||
	    memcmp(ehdr.e_ident, ELFMAG, SELFMAG) || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_phentsize != sizeof(phdr))
		return 0;
	for (i = 0; i < ehdr.e_phnum && !len; i++) {
		at = ehdr.e_phoff + i * sizeof(phdr);
		if (at < ehdr.e_phoff || !fetch(r, &phdr.p_type, at, sizeof(phdr.p_type)))
			return 0;
		if (phdr.p_type == PT_NOTE && fetch(r, &phdr, at, sizeof(phdr)) &&
		    phdr.p_offset <= PAGE_SIZE)
			len = find_in_notes(r, phdr.p_offset,
					    min_t(u64, PAGE_SIZE, phdr.p_offset + phdr.p_filesz));
	}
	return len;
}

u32 morph_build_id_read(struct file *file, u8 *out)
{
	struct reader reader = {.out = out};
	struct page *page;
	u8 *bytes;
	u32 len;

	if (!file->f_mapping)
		return 0;
	page = find_get_page(file->f_mapping, 0);
	if (!page)
		return 0;
	if (!PageUptodate(page)) {
		put_page(page);
		return 0;
	}
	bytes = kmap_local_page(page);
	reader.page = bytes;
	len = find_in_page(&reader);
	kunmap_local(bytes);
	put_page(page);
	if (!len)
		memset(out, 0, MORPH_BUILD_ID_MAX);
	return len;
}
