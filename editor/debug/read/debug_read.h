// SPDX-License-Identifier: Apache-2.0
/*
 * debug_read - a bounded cursor over DWARF bytes, which may be hostile. A read beyond
 * the end gives 0 and sets @bad, so that a reader checks once at its end.
 */
#ifndef ME_DEBUG_READ_H
#define ME_DEBUG_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct me_cursor {
	const uint8_t *p, *end;
	bool bad;
};

static inline const uint8_t *me_cursor_skip(struct me_cursor *c, uint64_t size)
{
	const uint8_t *p = c->p;

	if (c->bad || size > (uint64_t)(c->end - c->p)) {
		c->bad = true;
		return NULL;
	}
	c->p += size;
	return p;
}

static inline uint64_t me_cursor_fixed(struct me_cursor *c, unsigned int size)
{
	const uint8_t *p = me_cursor_skip(c, size);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, size);
	return v;
}

static inline uint8_t me_cursor_u8(struct me_cursor *c)
{
	return (uint8_t)me_cursor_fixed(c, 1);
}

static inline uint16_t me_cursor_u16(struct me_cursor *c)
{
	return (uint16_t)me_cursor_fixed(c, 2);
}

static inline uint32_t me_cursor_u32(struct me_cursor *c)
{
	return (uint32_t)me_cursor_fixed(c, 4);
}

static inline uint64_t me_cursor_u64(struct me_cursor *c)
{
	return me_cursor_fixed(c, 8);
}

/* Numbers of more than 64 bits set @bad. */
static inline uint64_t me_cursor_uleb(struct me_cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 70 && !c->bad && c->p < c->end; shift += 7) {
		uint8_t byte = *c->p++;

		if (shift == 63 && (byte & 0x7e))
			break;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

static inline int64_t me_cursor_sleb(struct me_cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 70 && !c->bad && c->p < c->end; shift += 7) {
		uint8_t byte = *c->p++;

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (shift < 57 && (byte & 0x40))
			v |= ~UINT64_C(0) << (shift + 7);
		return (int64_t)v;
	}
	c->bad = true;
	return 0;
}

/* Return: a terminated string; NULL if there is none. */
static inline const char *me_cursor_string(struct me_cursor *c)
{
	const uint8_t *p = c->p, *nul = NULL;

	if (!c->bad && c->p < c->end)
		nul = memchr(c->p, 0, (size_t)(c->end - c->p));
	if (!nul) {
		c->bad = true;
		return NULL;
	}
	c->p = nul + 1;
	return (const char *)p;
}

/* A cursor over [@off, @size) of @data. */
static inline struct me_cursor me_cursor_at(const uint8_t *data, uint64_t size, uint64_t off)
{
	struct me_cursor c = {data, data, off > size || !data};

	if (!c.bad) {
		c.p = data + off;
		c.end = data + size;
	}
	return c;
}

#endif
