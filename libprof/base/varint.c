// SPDX-License-Identifier: Apache-2.0
/* varint - writes and reads numbers with a variable number of bytes; see varint.h. */
#include "libprof/base/varint.h"

#include <stdlib.h>
#include <string.h>

void mp_varint_put_bytes(struct mp_varint_writer *w, const void *data, size_t size)
{
	if (w->failed)
		return;
	if (size > w->room - w->size) {
		size_t room = w->room + w->room / 2 + size + 256;
		uint8_t *bytes = realloc(w->bytes, room);

		if (!bytes) {
			w->failed = true;
			return;
		}
		w->bytes = bytes;
		w->room = room;
	}
	if (size)
		memcpy(w->bytes + w->size, data, size);
	w->size += size;
}

void mp_varint_put(struct mp_varint_writer *w, uint64_t v)
{
	uint8_t buf[10];
	size_t n = 0;

	do {
		buf[n] = v & 0x7f;
		v >>= 7;
		if (v)
			buf[n] |= 0x80;
		n++;
	} while (v);
	mp_varint_put_bytes(w, buf, n);
}

void mp_varint_put_signed(struct mp_varint_writer *w, int64_t v)
{
	mp_varint_put(w, ((uint64_t)v << 1) ^ (v < 0 ? ~0ull : 0));
}

const uint8_t *mp_varint_get_bytes(struct mp_varint_reader *r, size_t size)
{
	const uint8_t *p = r->p;

	if (r->failed || size > (size_t)(r->end - r->p)) {
		r->failed = true;
		return NULL;
	}
	r->p += size;
	return p;
}

uint64_t mp_varint_get_long(struct mp_varint_reader *r)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		const uint8_t *p = mp_varint_get_bytes(r, 1);

		if (!p)
			return 0;
		if ((shift == 63 && (*p & 0x7e)) || (shift && !*p))
			break; /* more than 64 bits, or more bytes than needed */
		v |= (uint64_t)(*p & 0x7f) << shift;
		if (!(*p & 0x80))
			return v;
	}
	r->failed = true;
	return 0;
}

int64_t mp_varint_get_signed(struct mp_varint_reader *r)
{
	uint64_t v = mp_varint_get(r);

	return (int64_t)((v >> 1) ^ -(v & 1));
}
