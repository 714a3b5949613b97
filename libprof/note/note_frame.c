// SPDX-License-Identifier: Apache-2.0
/* note_frame - the common form of notes and tables; see note_frame.h. */
#include "libprof/note/note_frame.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

void mp_frame_put_checksum(struct mp_varint_writer *w, size_t from)
{
	uint64_t sum;

	if (w->failed)
		return;
	sum = XXH3_64bits(w->bytes + from, w->size - from);
	mp_varint_put_bytes(w, &sum, sizeof(sum));
}

int mp_frame_open(const char *what, const char *path, const uint8_t *bytes, size_t size,
		  uint64_t version, struct mp_varint_reader *r, struct mp_err *err)
{
	uint64_t sum = 0, have;

	*r = (struct mp_varint_reader){.p = bytes, .end = bytes};
	if (size >= MP_FRAME_CHECKSUM_SIZE) {
		r->end = bytes + size - MP_FRAME_CHECKSUM_SIZE;
		memcpy(&sum, r->end, sizeof(sum));
	}
	/* Check the sum first: it tells damage from a newer version. */
	if (size < MP_FRAME_CHECKSUM_SIZE ||
	    sum != XXH3_64bits(bytes, size - MP_FRAME_CHECKSUM_SIZE))
		return mp_err_set(err, EBADMSG, "%s: damaged %s", path, what);
	have = mp_varint_get(r);
	if (r->failed)
		return mp_err_set(err, EBADMSG, "%s: damaged %s", path, what);
	if (have != version)
		return mp_err_set(err, EBADMSG,
				  "%s: %s of version %" PRIu64
				  ", this program knows version %" PRIu64,
				  path, what, have, version);
	return 0;
}

int mp_frame_find(const struct mp_elf *elf, const char *name, const char *what, const char *missing,
		  const uint8_t **bytes, size_t *size, struct mp_err *err)
{
	const struct mp_section *sec = mp_elf_section(elf, name);

	if (!sec)
		return mp_err_set(err, ENOENT, "%s: %s", elf->path, missing);
	if (!elf->data)
		return mp_err_set(err, EINVAL, "%s: opened for its id alone", elf->path);
	if (sec->type == SHT_NOBITS)
		return mp_err_set(err, EBADMSG, "%s: damaged %s", elf->path, what);
	*bytes = elf->data + sec->off;
	*size = sec->size;
	return 0;
}

uint32_t mp_frame_get_nr(struct mp_varint_reader *r, size_t size)
{
	uint64_t nr = mp_varint_get(r);

	if (nr > MP_FRAME_NR_MAX || nr > (size_t)(r->end - r->p) / size) {
		r->failed = true;
		return 0;
	}
	return (uint32_t)nr;
}

void mp_frame_put_block(struct mp_varint_writer *w, uint64_t vaddr, uint32_t size,
			uint32_t term_off, uint64_t *end)
{
	mp_varint_put_signed(w, (int64_t)(vaddr - *end));
	mp_varint_put(w, size);
	mp_varint_put(w, size - term_off);
	*end = vaddr + size;
}

void mp_frame_get_block(struct mp_varint_reader *r, uint64_t *vaddr, uint32_t *size,
			uint32_t *term_off, uint64_t *end)
{
	uint64_t length, term;

	*vaddr = *end + (uint64_t)mp_varint_get_signed(r);
	length = mp_varint_get(r);
	term = mp_varint_get(r);
	if (length > UINT32_MAX || term > length) {
		r->failed = true;
		return;
	}
	*size = (uint32_t)length;
	*term_off = (uint32_t)(length - term);
	*end = *vaddr + length;
}

int mp_frame_error(const char *what, const char *path, int rc, struct mp_err *err)
{
	return rc == -ENOMEM ? mp_err_set(err, ENOMEM, "%s: out of memory", path)
			     : mp_err_set(err, EBADMSG, "%s: damaged %s", path, what);
}
