// SPDX-License-Identifier: Apache-2.0
/* unwinder_bytes - the numbers of unwind sections, for the readers in this folder. */
#ifndef MORPH_TESTS_UNWINDER_BYTES_H
#define MORPH_TESTS_UNWINDER_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct unwinder_image;

/* @bad: something was read behind @end. @base: of the image; absolute pointers do not count from it. */
struct bytes {
	const uint8_t *p, *end;
	uint64_t vaddr, base;
	bool bad;
};

/* From @vaddr to the end of its section */
struct bytes unwinder_bytes_at(const struct unwinder_image *image, uint64_t vaddr);

static inline void bytes_skip(struct bytes *b, uint64_t n)
{
	if (b->bad || n > (uint64_t)(b->end - b->p)) {
		b->bad = true;
		return;
	}
	b->p += n;
	b->vaddr += n;
}

static inline uint64_t bytes_fixed(struct bytes *b, unsigned int n)
{
	const uint8_t *p = b->p;
	uint64_t v = 0;

	bytes_skip(b, n);
	if (!b->bad)
		memcpy(&v, p, n);
	return v;
}

static inline uint8_t bytes_u8(struct bytes *b)
{
	return (uint8_t)bytes_fixed(b, 1);
}

static inline uint32_t bytes_u32(struct bytes *b)
{
	return (uint32_t)bytes_fixed(b, 4);
}

static inline uint64_t bytes_leb(struct bytes *b, bool is_signed)
{
	unsigned int shift = 0;
	uint64_t v = 0;
	uint8_t byte;

	do {
		byte = bytes_u8(b);
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !b->bad);
	if (is_signed && shift < 64 && byte & 0x40)
		v |= ~0ull << shift;
	return v;
}

static inline uint64_t bytes_uleb(struct bytes *b)
{
	return bytes_leb(b, false);
}

static inline int64_t bytes_sleb(struct bytes *b)
{
	return (int64_t)bytes_leb(b, true);
}

/* A pointer in the file's addresses. @start: what 0x40 (relative to the function) counts from. 0 stays 0. */
static inline uint64_t bytes_pointer_at(struct bytes *b, uint8_t enc, uint64_t start)
{
	uint64_t at = b->vaddr, v;

	switch (enc & 0x0f) {
	case 0x00:
	case 0x04:
	case 0x0c: v = bytes_fixed(b, 8); break;
	case 0x01: v = bytes_uleb(b); break;
	case 0x02: v = bytes_fixed(b, 2); break;
	case 0x03: v = bytes_fixed(b, 4); break;
	case 0x09: v = (uint64_t)bytes_sleb(b); break;
	case 0x0a: v = (uint64_t)(int64_t)(int16_t)bytes_fixed(b, 2); break;
	case 0x0b: v = (uint64_t)(int64_t)(int32_t)bytes_fixed(b, 4); break;
	default: b->bad = true; return 0;
	}
	switch (enc & 0x70) {
	case 0x00: return v;
	case 0x10: return v ? v + at : 0;
	case 0x40: return v ? v + start : 0;
	default: b->bad = true; return 0;
	}
}

/* The same; an absolute one is the address in memory. */
static inline uint64_t bytes_pointer(struct bytes *b, uint8_t enc)
{
	uint64_t v = bytes_pointer_at(b, enc, 0);

	return v && !(enc & 0x70) ? v - b->base : v;
}

#endif
