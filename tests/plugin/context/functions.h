// SPDX-License-Identifier: Apache-2.0
/*
 * functions - the functions of a mapped file: ranges from its unwind table, and its PLT.
 *
 * Decides where a jump may be a tail call: at the start of a range whose return address lies on
 * top of the stack. A parser of its own on purpose: it shares no code with libprof, which it helps
 * to check. Needs no symbols, as Debian's programs have none.
 */
#ifndef MORPH_TESTS_FUNCTIONS_H
#define MORPH_TESTS_FUNCTIONS_H

#include <sys/mman.h>

#include "tests/plugin/objects.h"

struct function {
	uint64_t start, end; /* link-time addresses */
	bool enters;	     /* at the start, the caller's frame begins 8 bytes above rsp */
};

struct functions {
	struct function *v; /* by ascending start */
	size_t nr;
	struct ranges plt;
	bool is_read;
};

/* Bytes that are being read. A read behind the end sets @failed and gives 0. */
struct bytes {
	const uint8_t *at, *end;
	bool failed;
};

static uint64_t bytes_take(struct bytes *b, size_t size)
{
	uint64_t value = 0;

	if (b->failed || (size_t)(b->end - b->at) < size) {
		b->failed = true;
		return 0;
	}
	memcpy(&value, b->at, size);
	b->at += size;
	return value;
}

/* Return: an unsigned LEB128 number. A signed one has the same length. */
static uint64_t bytes_leb(struct bytes *b)
{
	uint64_t value = 0, byte;
	unsigned int shift = 0;

	do {
		byte = bytes_take(b, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) && !b->failed);
	return value;
}

/* Return: size of a value with the pointer encoding @enc; 0: not known. */
static size_t encoding_size(uint8_t enc)
{
	switch (enc & 0x0f) {
	case 0x00:
	case 0x04:
	case 0x0c: return 8;
	case 0x02:
	case 0x0a: return 2;
	case 0x03:
	case 0x0b: return 4;
	default: return 0;
	}
}

static uint64_t bytes_signed(struct bytes *b, uint8_t enc)
{
	uint64_t value = bytes_take(b, encoding_size(enc));

	if ((enc & 0x0f) == 0x0b)
		return (uint64_t)(int64_t)(int32_t)value;
	if ((enc & 0x0f) == 0x0a)
		return (uint64_t)(int64_t)(int16_t)value;
	return value;
}

struct image {
	const uint8_t *bytes;
	size_t size;
	const struct object *obj;
};

/* Return: the bytes of the file from link-time address @vaddr to the end of its segment. */
static struct bytes image_at(const struct image *image, uint64_t vaddr)
{
	size_t i;

	for (i = 0; i < image->obj->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &image->obj->phdrs[i];

		if (ph->p_type == PT_LOAD && vaddr >= ph->p_vaddr &&
		    vaddr - ph->p_vaddr < ph->p_filesz && ph->p_filesz <= image->size &&
		    ph->p_offset <= image->size - ph->p_filesz)
			return (struct bytes){image->bytes + ph->p_offset + (vaddr - ph->p_vaddr),
					      image->bytes + ph->p_offset + ph->p_filesz, false};
	}
	return (struct bytes){.failed = true};
}

/* Return: encoding of the addresses in the FDEs of the CIE at @b; 0xff: it cannot be read. */
static uint8_t cie_encoding(struct bytes b)
{
	const char *augmentation;
	uint8_t enc = 0, version;

	bytes_take(&b, 4);
	if (bytes_take(&b, 4) != 0 || b.failed)
		return 0xff;
	version = (uint8_t)bytes_take(&b, 1);
	augmentation = (const char *)b.at;
	while (bytes_take(&b, 1))
		;
	bytes_leb(&b);
	bytes_leb(&b);
	if (version == 1)
		bytes_take(&b, 1);
	else
		bytes_leb(&b);
	if (b.failed || *augmentation != 'z')
		return b.failed ? 0xff : enc;
	bytes_leb(&b);
	while (*++augmentation && !b.failed) {
		if (*augmentation == 'R')
			return (uint8_t)bytes_take(&b, 1);
		if (*augmentation == 'L')
			bytes_take(&b, 1);
		else if (*augmentation == 'P')
			bytes_take(&b, encoding_size((uint8_t)bytes_take(&b, 1)));
		else if (*augmentation != 'S' && *augmentation != 'B')
			return 0xff;
	}
	return enc;
}

/*
 * Return: whether the first row of the FDE with instructions @b has the caller's frame at rsp + 8.
 * A part of a function that lies apart (GCC's .cold) begins with another row as a rule.
 */
static bool fde_enters(struct bytes b)
{
	while (b.at < b.end && !b.failed) {
		uint8_t op = (uint8_t)bytes_take(&b, 1);

		if (op == 0x0e)
			return bytes_leb(&b) == 8;
		if (op != 0x00)
			return op >> 6 == 1 || (op >= 0x02 && op <= 0x04);
	}
	return true;
}

/* Reads the FDE at link-time address @vaddr. Return: false: it cannot be read. */
static bool fde_read(const struct image *image, uint64_t vaddr, struct function *f)
{
	struct bytes b = image_at(image, vaddr);
	uint64_t size = bytes_take(&b, 4), back;
	uint8_t enc;

	if (b.failed || size < 4 || size > (size_t)(b.end - b.at))
		return false;
	b.end = b.at + size;
	back = bytes_take(&b, 4);
	enc = cie_encoding(image_at(image, vaddr + 4 - back));
	if (!encoding_size(enc))
		return false;
	bytes_take(&b, encoding_size(enc));
	f->end = f->start + bytes_take(&b, encoding_size(enc));
	size = bytes_leb(&b); /* augmentation data; every CIE of GCC and LLVM has `z' */
	if (b.failed || size > (size_t)(b.end - b.at))
		return false;
	b.at += size;
	f->enters = fde_enters(b);
	return true;
}

/* Reads the sorted table of .eh_frame_hdr. */
static void functions_read_table(struct functions *out, const struct image *image, uint64_t vaddr)
{
	struct bytes b = image_at(image, vaddr);
	uint8_t frame_enc, count_enc, table_enc;
	uint64_t nr;

	bytes_take(&b, 1);
	frame_enc = (uint8_t)bytes_take(&b, 1);
	count_enc = (uint8_t)bytes_take(&b, 1);
	table_enc = (uint8_t)bytes_take(&b, 1);
	bytes_take(&b, encoding_size(frame_enc));
	nr = bytes_take(&b, encoding_size(count_enc));
	if (table_enc != 0x3b) /* relative to the header, 4 bytes */
		return;
	while (nr-- && !b.failed) {
		struct function f = {0};
		uint64_t fde;

		f.start = vaddr + bytes_signed(&b, table_enc);
		fde = vaddr + bytes_signed(&b, table_enc);
		if (b.failed || !fde_read(image, fde, &f))
			continue;
		out->v = grow(out->v, out->nr, sizeof(f));
		out->v[out->nr++] = f;
	}
}

static void functions_find_plt(struct functions *out, const struct image *image)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)image->bytes;
	const Elf64_Shdr *sh = (const Elf64_Shdr *)(image->bytes + eh->e_shoff), *names;
	size_t i;

	if (!eh->e_shnum || eh->e_shentsize != sizeof(*sh) || eh->e_shoff > image->size ||
	    (size_t)eh->e_shnum * sizeof(*sh) > image->size - eh->e_shoff ||
	    eh->e_shstrndx >= eh->e_shnum)
		return;
	names = &sh[eh->e_shstrndx];
	for (i = 0; i < eh->e_shnum; i++) {
		uint64_t at = names->sh_offset + sh[i].sh_name;

		if ((sh[i].sh_flags & SHF_EXECINSTR) && at < image->size - 5 &&
		    (!memcmp(image->bytes + at, ".plt", 4) ||
		     !memcmp(image->bytes + at, ".iplt", 5)))
			ranges_add(&out->plt, sh[i].sh_addr, sh[i].sh_size);
	}
	if (out->plt.nr)
		qsort(out->plt.v, out->plt.nr, sizeof(struct range), range_compare);
}

/* Reads the file of @obj. Without an unwind table there are no functions. */
static void functions_read(struct functions *out, const struct object *obj)
{
	struct image image = {.obj = obj};
	int fd = obj->phdrs ? open(obj->path, O_RDONLY | O_CLOEXEC) : -1;
	struct stat st;
	size_t i;

	out->is_read = true;
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_size > (off_t)sizeof(Elf64_Ehdr)) {
		image.size = (size_t)st.st_size;
		image.bytes = mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (image.bytes != MAP_FAILED) {
			for (i = 0; i < obj->nr_phdrs; i++)
				if (obj->phdrs[i].p_type == PT_GNU_EH_FRAME)
					functions_read_table(out, &image, obj->phdrs[i].p_vaddr);
			functions_find_plt(out, &image);
			munmap((void *)image.bytes, image.size);
		}
	}
	close(fd);
}

/* Return: the function whose range holds @vaddr, or NULL. */
static const struct function *functions_find(const struct functions *f, uint64_t vaddr)
{
	size_t low = 0, high = f->nr;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (vaddr < f->v[mid].start)
			high = mid;
		else
			low = mid + 1;
	}
	return low && vaddr < f->v[low - 1].end ? &f->v[low - 1] : NULL;
}

#endif
