// SPDX-License-Identifier: Apache-2.0
/*
 * store_codec - encodes and decodes one chunk's counts or edges. Decides only about bytes;
 * store_ip_counts and store_edges, which call this, choose the chunk and merge its entries.
 */
#include "libprof/store/store_codec.h"

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

/* ---- edges --------------------------------------------------------------------------------- */

#define MISPREDICTED 4

/* Maps small distances in either direction to small numbers. */
static uint64_t fold_sign(uint64_t distance)
{
	return distance << 1 ^ (distance >> 63 ? UINT64_MAX : 0);
}

static uint64_t unfold_sign(uint64_t folded)
{
	return folded >> 1 ^ (folded & 1 ? UINT64_MAX : 0);
}

size_t mp_edge_encode(uint64_t base, const struct mp_edge_count *edges, size_t nr, uint8_t *out)
{
	uint64_t from = base, last = 1;
	uint8_t *p = out;

	for (size_t i = 0; i < nr; i++) {
		const struct mp_edge_count *edge = &edges[i];
		uint64_t how = how_to_say(edge->count, last);
		uint64_t to = i && edge->from == from ? edge->to - edges[i - 1].to - 1
						      : fold_sign(edge->to - edge->from);

		p = put_varint(p, (edge->from - from) << 3 |
					  (edge->mispredicted ? MISPREDICTED : 0) | how);
		p = put_varint(p, to);
		if (how == EXPLICIT)
			p = put_varint(p, edge->count);
		if (edge->mispredicted)
			p = put_varint(p, edge->mispredicted);
		last = edge->count;
		from = edge->from;
	}
	return (size_t)(p - out);
}

int mp_edge_decode(uint64_t base, const uint8_t *data, size_t size, struct mp_edge_count *out,
		   size_t *nr)
{
	const uint8_t *p = data, *end = data + size;
	uint64_t off = 0, count = 1, token, to;
	size_t n = 0;

	while (p < end) {
		struct mp_edge_count *edge = &out[n];

		if (!get_varint(&p, end, &token) || token >> 3 >= MP_CHUNK_SIZE - off ||
		    !get_varint(&p, end, &to))
			return -EBADMSG;
		off += token >> 3;
		edge->from = base + off;
		edge->mispredicted = 0;
		if (n && edge->from == edge[-1].from) {
			if (to >= UINT64_MAX - edge[-1].to)
				return -EBADMSG;
			edge->to = edge[-1].to + 1 + to;
		} else {
			edge->to = edge->from + unfold_sign(to);
		}
		switch (token & 3) {
		case SAME: break;
		case EXPLICIT:
			if (!get_varint(&p, end, &count) || !count)
				return -EBADMSG;
			break;
		default: count = token & 3;
		}
		edge->count = count;
		if (token & MISPREDICTED && (!get_varint(&p, end, &edge->mispredicted) ||
					     !edge->mispredicted || edge->mispredicted > count))
			return -EBADMSG;
		n++;
	}
	*nr = n;
	return 0;
}
