// SPDX-License-Identifier: Apache-2.0
/*
 * store_codec - encodes and decodes one chunk's counts. Decides the bytes only; which chunk, and
 * what is merged into it, is for store_counts, which calls this.
 */
#include "libprof/store_codec.h"

#include <errno.h>
#include <stdbool.h>

enum how {
	SAME,
	ONE,
	TWO,
	EXPLICIT
};

static uint8_t *put_varint(uint8_t *p, uint64_t value)
{
	while (value >= 0x80) {
		*p++ = (uint8_t)value | 0x80;
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

static bool get_varint(const uint8_t **pos, const uint8_t *end, uint64_t *value)
{
	const uint8_t *p = *pos;
	unsigned int shift = 0;
	uint64_t v = 0;

	while (p < end && shift < 64) {
		uint8_t byte = *p++;

		/* The tenth byte has room for one bit only. */
		if (shift == 63 && byte > 1)
			return false;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*pos = p;
			*value = v;
			return true;
		}
		shift += 7;
	}
	return false;
}

static enum how how_to_say(uint64_t count, uint64_t last)
{
	if (count == last)
		return SAME;
	if (count == 1)
		return ONE;
	if (count == 2)
		return TWO;
	return EXPLICIT;
}

size_t mp_chunk_encode(uint64_t base, const struct mp_ip_count *ips, size_t nr, uint8_t *out)
{
	uint64_t next = base, last = 1;
	uint8_t *p = out;

	for (size_t i = 0; i < nr; i++) {
		enum how how = how_to_say(ips[i].count, last);

		p = put_varint(p, (ips[i].vaddr - next) << 2 | how);
		if (how == EXPLICIT)
			p = put_varint(p, ips[i].count);
		last = ips[i].count;
		next = ips[i].vaddr + 1;
	}
	return (size_t)(p - out);
}

int mp_chunk_decode(uint64_t base, const uint8_t *data, size_t size, struct mp_ip_count *out,
		    size_t *nr)
{
	const uint8_t *p = data, *end = data + size;
	uint64_t off = 0, count = 1, token;
	size_t n = 0;

	while (p < end) {
		if (!get_varint(&p, end, &token) || token >> 2 >= MP_CHUNK_SIZE - off)
			return -EBADMSG;
		off += token >> 2;
		switch (token & 3) {
		case SAME: break;
		case EXPLICIT:
			if (!get_varint(&p, end, &count) || !count)
				return -EBADMSG;
			break;
		default: count = token & 3;
		}
		out[n].vaddr = base + off;
		out[n++].count = count;
		off++;
	}
	*nr = n;
	return 0;
}
