// SPDX-License-Identifier: Apache-2.0
/*
 * verify_head - the head of an instruction: its bytes before displacement and immediate.
 *
 * Instructions with equal heads differ only in the values of displacement and immediate. Code
 * repeats itself, so caches that are indexed by heads seldom need Zydis. Included by
 * verify_decode and verify_effect, which cache different answers.
 */
#ifndef ME_VERIFY_HEAD_H
#define ME_VERIFY_HEAD_H

#include <Zydis/Zydis.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Return: the first bytes at @bytes, which include the head. */
static inline uint64_t vf_head_read(const uint8_t *bytes, size_t avail)
{
	uint64_t head = 0;

	if (avail >= sizeof(head)) /* memcpy() of a constant size is one instruction */
		memcpy(&head, bytes, sizeof(head));
	else
		memcpy(&head, bytes, avail);
	return head;
}

/* @size: less than 8 bytes. */
static inline uint64_t vf_head_mask(uint8_t size)
{
	return (UINT64_C(1) << 8 * size) - 1;
}

/*
 * Return: an index below 1 << @log2 into a cache. Hashes as many bytes as such instructions
 * usually have in their heads. A wrong guess costs time, not correctness.
 */
static inline size_t vf_head_index(uint64_t head, unsigned int log2)
{
	uint64_t bits = 0xffff;

	switch (head & 0xff) {
	case 0x50 ... 0x5f:
	case 0x70 ... 0x7f:
	case 0xb8 ... 0xbf:
	case 0xc3:
	case 0xe8 ... 0xeb: bits = 0xff; break;
	case 0x0f:
		if ((head & 0xf000) != 0x8000)
			bits = 0xffffff;
		break;
	case 0x40 ... 0x4f:
		if ((head & 0xe000) != 0x4000)
			bits = 0xffffff;
		break;
	case 0x66:
	case 0xf2:
	case 0xf3: bits = 0xffffffff; break;
	}
	return (head & bits) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - log2);
}

/* Return: the number of bytes in the head; 0: this cannot be told. */
static inline uint8_t vf_head_size(const ZydisDecodedInstruction *z)
{
	uint8_t size = z->length;

	if (z->raw.disp.size && z->raw.disp.offset < size)
		size = z->raw.disp.offset;
	for (int i = 0; i < 2; i++) {
		if (z->raw.imm[i].size && z->raw.imm[i].offset < size)
			size = z->raw.imm[i].offset;
	}
	return size < sizeof(uint64_t) ? size : 0;
}

#endif
