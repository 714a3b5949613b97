// SPDX-License-Identifier: Apache-2.0
/*
 * dwarf_cursor - bounded reading of DWARF's small encodings (LSDA, unwind programs).
 * After a read past the end @bad stays set and every value is 0; callers check it once.
 */
#ifndef MP_DWARF_CURSOR_H
#define MP_DWARF_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct mp_cursor {
	const uint8_t *p, *end;
	uint64_t vaddr; /* address of @p, for pc-relative values */
	bool bad;
};

static inline uint64_t mp_cursor_fixed(struct mp_cursor *c, size_t size)
{
	uint64_t v = 0;

	if (c->bad || (size_t)(c->end - c->p) < size) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->p, size);
	c->p += size;
	c->vaddr += size;
	return v;
}

static inline void mp_cursor_skip(struct mp_cursor *c, uint64_t size)
{
	if (c->bad || (uint64_t)(c->end - c->p) < size) {
		c->bad = true;
		return;
	}
	c->p += size;
	c->vaddr += size;
}

static inline uint64_t mp_cursor_uleb(struct mp_cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte = (uint8_t)mp_cursor_fixed(c, 1);

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

static inline int64_t mp_cursor_sleb(struct mp_cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte = (uint8_t)mp_cursor_fixed(c, 1);

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if ((byte & 0x40) && shift + 7 < 64)
			v |= ~0ull << (shift + 7);
		return (int64_t)v;
	}
	c->bad = true;
	return 0;
}

/* Size of a fixed-size DW_EH_PE format in bytes; 0 if its size varies. */
static inline size_t mp_pe_size(uint8_t encoding)
{
	switch (encoding & 0x0f) {
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

/*
 * Reads a value in a DW_EH_PE format. A pc-relative base is added; other bases are not
 * known here.
 */
static inline uint64_t mp_cursor_encoded(struct mp_cursor *c, uint8_t encoding)
{
	uint64_t here = c->vaddr, v;
	size_t size = mp_pe_size(encoding);

	if ((encoding & 0x0f) == 0x01) {
		v = mp_cursor_uleb(c);
	} else if ((encoding & 0x0f) == 0x09) {
		v = (uint64_t)mp_cursor_sleb(c);
	} else if (size) {
		v = mp_cursor_fixed(c, size);
		if ((encoding & 0x08) && size < 8 && v >> (size * 8 - 1))
			v |= ~0ull << (size * 8);
	} else {
		c->bad = true;
		return 0;
	}
	if ((encoding & 0x70) == 0x10)
		v += here;
	return v;
}

#endif
