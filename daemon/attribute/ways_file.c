// SPDX-License-Identifier: Apache-2.0
/* ways_file - keeps pages of a file; see ways_file.h. */
#include "daemon/attribute/ways_file.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	LOADS_MAX = 16,
	HEADERS_MAX = 64,
	DYNAMIC_MAX = 512,
	PAGE = 4096,
	PAGES = 1024, /* kept at the same time */
	INSN_MAX = 15
};

struct load {
	uint64_t vaddr, off, size;
	bool is_code;
};

struct page {
	uint64_t number; /* in the file, + 1; 0: none */
	uint8_t bytes[PAGE];
};

struct md_ways_file {
	int fd;
	struct load loads[LOADS_MAX]; /* none that can be written */
	uint32_t nr_loads;
	bool is_patched; /* the loader writes to them all the same */
	uint8_t insn[INSN_MAX];
	struct page *pages;
};

/* Return: bytes read, fewer only at the file's end; -errno. */
static ssize_t read_at(int fd, void *to, size_t size, uint64_t off)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, (char *)to + done, size - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static const uint8_t *page_at(struct md_ways_file *file, uint64_t number)
{
	struct page *page = &file->pages[number % PAGES];
	ssize_t n;

	if (page->number == number + 1)
		return page->bytes;
	page->number = 0;
	n = read_at(file->fd, page->bytes, PAGE, number * PAGE);
	if (n < 0)
		return NULL;
	memset(page->bytes + n, 0, PAGE - (size_t)n);
	page->number = number + 1;
	return page->bytes;
}

/* Copies bytes of one or two pages. */
static bool copy(struct md_ways_file *file, uint64_t off, uint8_t *to, size_t size)
{
	while (size) {
		size_t in = off % PAGE, nr = size < PAGE - in ? size : PAGE - in;
		const uint8_t *page = page_at(file, off / PAGE);

		if (!page)
			return false;
		memcpy(to, page + in, nr);
		to += nr;
		off += nr;
		size -= nr;
	}
	return true;
}

static const struct load *load_at(const struct md_ways_file *file, uint64_t vaddr)
{
	for (uint32_t i = 0; i < file->nr_loads; i++)
		if (vaddr - file->loads[i].vaddr < file->loads[i].size)
			return &file->loads[i];
	return NULL;
}

const uint8_t *md_ways_file_bytes(void *data, uint64_t vaddr, size_t *avail)
{
	struct md_ways_file *file = data;
	const struct load *load = load_at(file, vaddr);
	uint64_t in;

	if (!load || !load->is_code)
		return NULL;
	in = vaddr - load->vaddr;
	*avail = load->size - in < INSN_MAX ? (size_t)(load->size - in) : INSN_MAX;
	return copy(file, load->off + in, file->insn, *avail) ? file->insn : NULL;
}

bool md_ways_file_constant(void *data, uint64_t vaddr, void *to, size_t size)
{
	struct md_ways_file *file = data;
	const struct load *load = load_at(file, vaddr);

	return load && !file->is_patched && size <= load->size - (vaddr - load->vaddr) &&
	       copy(file, load->off + (vaddr - load->vaddr), to, size);
}

static void add_load(struct md_ways_file *file, const Elf64_Phdr *header)
{
	uint64_t end;

	if (header->p_flags & PF_W || file->nr_loads == LOADS_MAX ||
	    __builtin_add_overflow(header->p_offset, header->p_filesz, &end) || end > INT64_MAX ||
	    __builtin_add_overflow(header->p_vaddr, header->p_filesz, &end))
		return;
	file->loads[file->nr_loads++] = (struct load){header->p_vaddr, header->p_offset,
						      header->p_filesz, header->p_flags & PF_X};
}

/* Does the loader relocate code or constants? */
static bool is_patched(int fd, const Elf64_Phdr *header)
{
	Elf64_Dyn dyn;

	for (uint64_t i = 0; i < DYNAMIC_MAX && i < header->p_filesz / sizeof(dyn); i++) {
		if (read_at(fd, &dyn, sizeof(dyn), header->p_offset + i * sizeof(dyn)) !=
			    sizeof(dyn) ||
		    dyn.d_tag == DT_NULL)
			return false;
		if (dyn.d_tag == DT_TEXTREL ||
		    (dyn.d_tag == DT_FLAGS && dyn.d_un.d_val & DF_TEXTREL))
			return true;
	}
	return false;
}

static int read_headers(struct md_ways_file *file)
{
	Elf64_Phdr header;
	Elf64_Ehdr ehdr;

	if (read_at(file->fd, &ehdr, sizeof(ehdr), 0) != sizeof(ehdr) ||
	    memcmp(ehdr.e_ident, ELFMAG, SELFMAG) || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_machine != EM_X86_64 || ehdr.e_phentsize != sizeof(header))
		return -EBADMSG;
	for (uint32_t i = 0; i < ehdr.e_phnum && i < HEADERS_MAX; i++) {
		if (read_at(file->fd, &header, sizeof(header), ehdr.e_phoff + i * sizeof(header)) !=
		    sizeof(header))
			return -EBADMSG;
		if (header.p_type == PT_LOAD)
			add_load(file, &header);
		else if (header.p_type == PT_DYNAMIC)
			file->is_patched = is_patched(file->fd, &header);
	}
	return 0;
}

int md_ways_file_open(int fd, struct md_ways_file **out)
{
	struct md_ways_file *file = calloc(1, sizeof(*file));
	int ret = -ENOMEM;

	*out = NULL;
	if (!file)
		return ret;
	file->fd = fd;
	file->pages = calloc(PAGES, sizeof(*file->pages));
	if (file->pages)
		ret = read_headers(file);
	if (ret)
		md_ways_file_close(file);
	else
		*out = file;
	return ret;
}

void md_ways_file_close(struct md_ways_file *file)
{
	if (!file)
		return;
	free(file->pages);
	free(file);
}
