// SPDX-License-Identifier: Apache-2.0
/*
 * transfer - decodes what an x86-64 instruction does to control flow.
 *
 * A decoder of its own on purpose: it shares no code with libprof, which it helps to check. The
 * emulator gives the instruction's length, so only prefixes and opcode are decoded.
 */
#ifndef MORPH_TESTS_TRANSFER_H
#define MORPH_TESTS_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum transfer {
	TRANSFER_NONE, /* falls through; also system calls and traps */
	TRANSFER_COND, /* jcc, loop, jrcxz */
	TRANSFER_JUMP,
	TRANSFER_IJUMP,
	TRANSFER_CALL,
	TRANSFER_ICALL,
	TRANSFER_RET,
	NR_TRANSFERS
};

struct decoded {
	enum transfer transfer;
	int64_t displacement; /* COND, JUMP, CALL: relative to the next instruction */
	bool repeats;	      /* a string instruction with a rep prefix */
};

static inline int64_t transfer_displacement(const uint8_t *end, size_t size)
{
	int64_t value = (int8_t) * --end;

	/* little endian: the last byte has the sign */
	while (--size)
		value = value * 256 + *--end;
	return value;
}

static inline struct decoded transfer_decode(const uint8_t *bytes, size_t size)
{
	struct decoded out = {.transfer = TRANSFER_NONE};
	const uint8_t *end = bytes + size;
	bool rep = false;
	uint8_t op;

	while (bytes < end) {
		op = *bytes;
		if (op == 0xf2 || op == 0xf3)
			rep = true;
		else if (op != 0x66 && op != 0x67 && op != 0xf0 && op != 0x2e && op != 0x36 &&
			 op != 0x3e && op != 0x26 && op != 0x64 && op != 0x65 &&
			 (op & 0xf0) != 0x40)
			break;
		bytes++;
	}
	if (bytes == end)
		return out;
	op = *bytes;
	/* Check lengths: at the end of a page the emulator may show part of an instruction. */
	if (((op & 0xf0) == 0x70 || (op >= 0xe0 && op <= 0xe3)) && end - bytes > 1) {
		out.transfer = TRANSFER_COND;
		out.displacement = transfer_displacement(end, 1);
	} else if (op == 0x0f && end - bytes > 5 && (bytes[1] & 0xf0) == 0x80) {
		out.transfer = TRANSFER_COND;
		out.displacement = transfer_displacement(end, 4);
	} else if (op == 0xeb && end - bytes > 1) {
		out.transfer = TRANSFER_JUMP;
		out.displacement = transfer_displacement(end, 1);
	} else if (op == 0xe9 && end - bytes > 4) {
		out.transfer = TRANSFER_JUMP;
		out.displacement = transfer_displacement(end, 4);
	} else if (op == 0xe8 && end - bytes > 4) {
		out.transfer = TRANSFER_CALL;
		out.displacement = transfer_displacement(end, 4);
	} else if (op == 0xff && end - bytes > 1) {
		int extension = bytes[1] >> 3 & 7;

		if (extension == 2 || extension == 3)
			out.transfer = TRANSFER_ICALL;
		else if (extension == 4 || extension == 5)
			out.transfer = TRANSFER_IJUMP;
	} else if (op == 0xc2 || op == 0xc3 || op == 0xca || op == 0xcb) {
		out.transfer = TRANSFER_RET;
	}
	/* movs, cmps, stos, lods, scas, ins, outs */
	out.repeats = rep && ((op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf) ||
			      (op >= 0x6c && op <= 0x6f));
	return out;
}

#endif
