// SPDX-License-Identifier: Apache-2.0
/*
 * id - compares and prints module ids, and reads them from an ELF file.
 * The build-id comes from PT_NOTE, which needs no section headers, else from SHT_NOTE.
 */
#include "libprof/elf/id.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libprof/elf/elf_private.h"

bool mp_id_equal(const struct mp_id *a, const struct mp_id *b)
{
	return a->text_hash == b->text_hash && a->build_id_len == b->build_id_len &&
	       !memcmp(a->build_id, b->build_id, a->build_id_len);
}

void mp_id_format_build_id(const struct mp_id *id, char *buf)
{
	static const char hex[] = "0123456789abcdef";
	unsigned int len = id->build_id_len;

	if (len > MP_BUILD_ID_MAX)
		len = MP_BUILD_ID_MAX;
	for (unsigned int i = 0; i < len; i++) {
		*buf++ = hex[id->build_id[i] >> 4];
		*buf++ = hex[id->build_id[i] & 15];
	}
	*buf = '\0';
}

/* Takes the first GNU build-id from the notes of one segment or section in @buf. */
static void scan_notes(const uint8_t *buf, size_t size, uint64_t align, struct mp_id *id)
{
	size_t off = 0, pad = align == 8 ? 7 : 3;

	while (size - off >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr nhdr;
		size_t name, desc, len;

		memcpy(&nhdr, buf + off, sizeof(nhdr));
		name = off + sizeof(nhdr);
		if (nhdr.n_namesz > size - name)
			return;
		/* 32-bit sizes and size_t offsets: the sums cannot wrap. */
		desc = (name + nhdr.n_namesz + pad) & ~pad;
		if (desc > size || nhdr.n_descsz > size - desc)
			return;
		if (nhdr.n_type == NT_GNU_BUILD_ID && nhdr.n_namesz == 4 &&
		    !memcmp(buf + name, "GNU", 4) && nhdr.n_descsz) {
			len = nhdr.n_descsz < MP_BUILD_ID_MAX ? nhdr.n_descsz : MP_BUILD_ID_MAX;
			memcpy(id->build_id, buf + desc, len);
			id->build_id_len = (uint8_t)len;
			return;
		}
		off = (desc + nhdr.n_descsz + pad) & ~pad;
		if (off > size)
			return;
	}
}

static int read_notes(struct mp_elf *elf, uint64_t off, uint64_t size, uint64_t align,
		      struct mp_err *err)
{
	uint8_t *buf;
	int ret;

	/* Megabytes of notes serve other purposes than a build-id. */
	if (!size || size > MP_ELF_MAX_NOTES)
		return 0;
	buf = malloc(size);
	if (!buf)
		return mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
	ret = mp_elf_read(elf, off, size, buf, err);
	if (!ret)
		scan_notes(buf, size, align, &elf->id);
	free(buf);
	return ret;
}

static int read_build_id(struct mp_elf *elf, struct mp_err *err)
{
	int ret = 0;

	for (uint32_t i = 0; i < elf->nr_phdrs && !ret && !elf->id.build_id_len; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];

		if (phdr->p_type == PT_NOTE)
			ret = read_notes(elf, phdr->p_offset, phdr->p_filesz, phdr->p_align, err);
	}
	for (uint32_t i = 1; i < elf->nr_sections && !ret && !elf->id.build_id_len; i++) {
		const struct mp_section *sec = &elf->sections[i];

		if (sec->type == SHT_NOTE && (sec->flags & SHF_ALLOC))
			ret = read_notes(elf, sec->off, sec->size, sec->align, err);
	}
	return ret;
}

static void hash_mapped(const struct mp_elf *elf, const Elf64_Phdr *load, XXH3_state_t *state)
{
	const uint8_t *bytes = elf->data + load->p_offset;
	uint64_t left = load->p_filesz;

	while (left) {
		size_t n = left < MP_ELF_READ_AT_ONCE ? (size_t)left : MP_ELF_READ_AT_ONCE;

		XXH3_64bits_update(state, bytes, n);
		mp_elf_drop_bytes(elf, bytes, n);
		bytes += n;
		left -= n;
	}
}

/* Reads in pieces: the daemon neither maps large files nor holds them in memory. */
static int hash_segment(struct mp_elf *elf, const Elf64_Phdr *load, XXH3_state_t *state,
			uint8_t *buf, size_t buf_size, struct mp_err *err)
{
	uint64_t off = load->p_offset, left = load->p_filesz;

	while (left) {
		size_t n = left < buf_size ? (size_t)left : buf_size;
		int ret = mp_elf_read(elf, off, n, buf, err);

		if (ret)
			return ret;
		XXH3_64bits_update(state, buf, n);
		off += n;
		left -= n;
	}
	return 0;
}

static int read_text_hash(struct mp_elf *elf, struct mp_err *err)
{
	const struct mp_elf_private *priv = elf->private_data;
	const size_t buf_size = 256 << 10;
	XXH3_state_t *state = XXH3_createState();
	uint8_t *buf = elf->data ? NULL : malloc(buf_size);
	int ret = 0;

	if (!state || (!elf->data && !buf)) {
		ret = mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
		goto out;
	}
	XXH3_64bits_reset(state);
	for (uint32_t i = 0; i < priv->nr_loads && !ret; i++) {
		const Elf64_Phdr *load = &priv->loads[i];

		if (!(load->p_flags & PF_X) || !load->p_filesz)
			continue;
		if (elf->data)
			hash_mapped(elf, load, state);
		else
			ret = hash_segment(elf, load, state, buf, buf_size, err);
	}
	elf->id.text_hash = XXH3_64bits_digest(state);
out:
	XXH3_freeState(state);
	free(buf);
	return ret;
}

int mp_elf_read_id(struct mp_elf *elf, bool hash, struct mp_err *err)
{
	int ret = read_build_id(elf, err);

	return ret || !hash ? ret : read_text_hash(elf, err);
}
