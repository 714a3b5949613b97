// SPDX-License-Identifier: Apache-2.0
/*
 * dwarf_cursor - bounded reading of DWARF's encodings: debug information, unwind sections, exception tables.
 * The bytes may be hostile. After a read past the end @bad stays set and every value is 0, so that a reader checks
 * once at its end. Called by all who read DWARF but verify, which reads by itself.
 */
#ifndef MP_DWARF_CURSOR_H
#define MP_DWARF_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* DW_EH_PE: formats of pointers, the base that is added, and whether the result leads to the pointer. */
#define MP_EH_PE_OMIT	  0xff
#define MP_EH_PE_ABSPTR	  0x00
#define MP_EH_PE_ULEB128  0x01
#define MP_EH_PE_UDATA2	  0x02
#define MP_EH_PE_UDATA4	  0x03
#define MP_EH_PE_UDATA8	  0x04
#define MP_EH_PE_SLEB128  0x09
#define MP_EH_PE_SDATA2	  0x0a
#define MP_EH_PE_SDATA4	  0x0b
#define MP_EH_PE_SDATA8	  0x0c
#define MP_EH_PE_PCREL	  0x10
#define MP_EH_PE_DATAREL  0x30
#define MP_EH_PE_FUNCREL  0x40
#define MP_EH_PE_INDIRECT 0x80

struct mp_cursor {
	const uint8_t *p, *end;
	bool bad;
	uint64_t vaddr; /* load address of @p, for pc-relative values */
};

static inline struct mp_cursor mp_cursor_over(const uint8_t *p, const uint8_t *end)
{
	return (struct mp_cursor){.p = p, .end = end};
}

/* A cursor over [@off, @size) of @data. */
static inline struct mp_cursor mp_cursor_at(const uint8_t *data, uint64_t size, uint64_t off)
{
	struct mp_cursor c = {data, data, off > size || !data, 0};

	if (!c.bad) {
		c.p = data + off;
		c.end = data + size;
	}
	return c;
}

/* Return: the bytes that are skipped; NULL: there are less. */
static inline const uint8_t *mp_cursor_skip(struct mp_cursor *c, uint64_t size)
{
	const uint8_t *p = c->p;

	if (c->bad || size > (uint64_t)(c->end - c->p)) {
		c->bad = true;
		return NULL;
	}
	c->p += size;
	c->vaddr += size;
	return p;
}

static inline uint64_t mp_cursor_fixed(struct mp_cursor *c, unsigned int size)
{
	const uint8_t *p = mp_cursor_skip(c, size);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, size);
	return v;
}

static inline uint8_t mp_cursor_u8(struct mp_cursor *c)
{
	return (uint8_t)mp_cursor_fixed(c, 1);
}

static inline uint16_t mp_cursor_u16(struct mp_cursor *c)
{
	return (uint16_t)mp_cursor_fixed(c, 2);
}

static inline uint32_t mp_cursor_u32(struct mp_cursor *c)
{
	return (uint32_t)mp_cursor_fixed(c, 4);
}

static inline uint64_t mp_cursor_u64(struct mp_cursor *c)
{
	return mp_cursor_fixed(c, 8);
}

/* A LEB128 number in 10 bytes at most. *@shift: bits that it has, 7 for each byte. *@last: its last byte. */
static inline uint64_t mp_cursor_leb(struct mp_cursor *c, unsigned int *shift, uint8_t *last)
{
	const uint8_t *p = c->p;
	uint64_t v = 0;

	for (*shift = 0; *shift < 70 && !c->bad && p < c->end;) {
		*last = *p++;
		v |= (uint64_t)(*last & 0x7f) << *shift;
		*shift += 7;
		if (!(*last & 0x80)) {
			mp_cursor_skip(c, (uint64_t)(p - c->p));
			return v;
		}
	}
	c->bad = true;
	return 0;
}

/* Numbers of more than 64 bits set @bad. */
static inline uint64_t mp_cursor_uleb(struct mp_cursor *c)
{
	unsigned int shift;
	uint8_t last = 0;
	uint64_t v;

	/* Most numbers are small. */
	if (!c->bad && c->p < c->end && *c->p < 0x80)
		return *mp_cursor_skip(c, 1);
	v = mp_cursor_leb(c, &shift, &last);
	if (shift > 63 && last > 1) {
		c->bad = true;
		return 0;
	}
	return v;
}

static inline int64_t mp_cursor_sleb(struct mp_cursor *c)
{
	unsigned int shift;
	uint8_t last = 0;
	uint64_t v = mp_cursor_leb(c, &shift, &last);

	if (shift < 64 && last & 0x40 && !c->bad)
		v |= ~UINT64_C(0) << shift;
	return (int64_t)v;
}

/* Return: a terminated string; NULL if there is none. */
static inline const char *mp_cursor_string(struct mp_cursor *c)
{
	const uint8_t *nul = NULL;

	if (!c->bad && c->p < c->end)
		nul = memchr(c->p, 0, (size_t)(c->end - c->p));
	if (!nul) {
		c->bad = true;
		return NULL;
	}
	return (const char *)mp_cursor_skip(c, (uint64_t)(nul + 1 - c->p));
}

/* Bytes of a pointer with a fixed size; 0 for LEB128, omitted and unknown ones. */
static inline unsigned int mp_pe_size(uint8_t enc)
{
	switch (enc == MP_EH_PE_OMIT ? enc : enc & 0x0f) {
	case MP_EH_PE_ABSPTR:
	case MP_EH_PE_UDATA8:
	case MP_EH_PE_SDATA8: return 8;
	case MP_EH_PE_UDATA4:
	case MP_EH_PE_SDATA4: return 4;
	case MP_EH_PE_UDATA2:
	case MP_EH_PE_SDATA2: return 2;
	default: return 0;
	}
}

/*
 * Reads an encoded pointer. @datarel is the base of MP_EH_PE_DATAREL (.eh_frame_hdr's
 * address). A stored 0 means "none" and gives 0 with any base. With the indirect bit the
 * result is the address of the pointer.
 */
static inline uint64_t mp_cursor_pointer(struct mp_cursor *c, uint8_t enc, uint64_t datarel)
{
	uint64_t at = c->vaddr, v;

	if (enc == MP_EH_PE_OMIT)
		return 0;
	switch (enc & 0x0f) {
	case MP_EH_PE_ULEB128: v = mp_cursor_uleb(c); break;
	case MP_EH_PE_SLEB128: v = (uint64_t)mp_cursor_sleb(c); break;
	case MP_EH_PE_SDATA4: v = (uint64_t)(int64_t)(int32_t)mp_cursor_u32(c); break;
	case MP_EH_PE_SDATA2: v = (uint64_t)(int64_t)(int16_t)mp_cursor_u16(c); break;
	default: v = mp_cursor_fixed(c, mp_pe_size(enc)); c->bad |= !mp_pe_size(enc);
	}
	if (!v || c->bad)
		return 0;
	switch (enc & 0x70) {
	case MP_EH_PE_ABSPTR: return v;
	case MP_EH_PE_PCREL: return v + at;
	case MP_EH_PE_DATAREL: return v + datarel;
	default: c->bad = true; return 0;
	}
}

#endif
