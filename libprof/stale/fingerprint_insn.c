// SPDX-License-Identifier: Apache-2.0
/*
 * fingerprint_insn - computes the two hashes of one instruction. It decides which
 * differences two builds of the same source may have: addresses and lengths of branches in
 * both hashes, registers and constants in the loose one. Called by fingerprint.
 */
#include <string.h>

#include <xxhash.h>

#include "libprof/stale/fingerprint.h"

uint32_t mp_print_mix(uint32_t a, uint32_t b)
{
	uint64_t x = ((uint64_t)a << 32 | b) + UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)(x ^ x >> 31);
}

/* Tables: each instruction asks several times. */
static const bool is_prefix[256] = {
	[0x26] = true,		[0x2e] = true, [0x36] = true, [0x3e] = true,
	[0x40 ... 0x4f] = true, /* REX */
	[0x64] = true,		[0x65] = true, [0x66] = true, [0x67] = true,
	[0xf0] = true,		[0xf2] = true, [0xf3] = true,
};

/* Opcodes of one byte whose ModRM byte selects the operation by three bits. */
static const bool is_short_group[256] = {
	[0x80 ... 0x83] = true, [0xc0 ... 0xc1] = true, [0xd0 ... 0xd3] = true,
	[0xf6 ... 0xf7] = true, [0xfe ... 0xff] = true,
};

static bool is_group(uint32_t opcode)
{
	switch (opcode) {
	case 0x0f18:
	case 0x0f71 ... 0x0f73:
	case 0x0fae:
	case 0x0fba:
	case 0x0fc7: return true;
	default: return opcode < 256 && is_short_group[opcode];
	}
}

/*
 * The opcode as a number that depends neither on registers nor on the length of a constant. The instruction was decoded,
 * so it has the bytes that its first ones ask for.
 */
static uint32_t opcode_of(const uint8_t *bytes, uint8_t len)
{
	uint32_t opcode, at = 0;

	while (at < len && is_prefix[bytes[at]])
		at++;
	if (at + 4 >= 16)
		return 0;
	if (bytes[at] == 0xc5)
		return 0xc50000 | bytes[at + 2];
	if (bytes[at] == 0xc4)
		return 0xc40000 | (uint32_t)(bytes[at + 1] & 0x1f) << 8 | bytes[at + 3];
	if (bytes[at] == 0x62)
		return 0x620000 | (uint32_t)(bytes[at + 1] & 7) << 8 | bytes[at + 4];
	opcode = bytes[at++];
	if (opcode == 0x0f) {
		opcode = opcode << 8 | bytes[at++];
		if (opcode == 0x0f38 || opcode == 0x0f3a)
			return opcode << 8 | bytes[at];
	} else if ((opcode >= 0x50 && opcode <= 0x5f) || (opcode >= 0xb0 && opcode <= 0xbf)) {
		return opcode & 0xf8;
	} else if (opcode == 0x6a) {
		return 0x68;
	}
	if (!is_group(opcode))
		return opcode;
	return (opcode == 0x83 ? 0x81 : opcode) << 3 | (bytes[at] >> 3 & 7);
}

static bool may_be_address(const uint8_t *field, uint64_t low, uint64_t high)
{
	uint32_t value;

	memcpy(&value, field, sizeof(value));
	return value >= low && value < high;
}

/* Copies of a fixed size take fewer instructions than memcpy(). */
static void copy(uint8_t to[16], const uint8_t *from, uint8_t len)
{
	if (len >= 8) {
		memcpy(to, from, 8);
		memcpy(to + len - 8, from + len - 8, 8);
	} else if (len >= 4) {
		memcpy(to, from, 4);
		memcpy(to + len - 4, from + len - 4, 4);
	} else {
		for (uint8_t i = 0; i < len; i++)
			to[i] = from[i];
	}
}

struct mp_print_insn mp_print_insn(const uint8_t *bytes, const struct mp_insn *insn, uint64_t low,
				   uint64_t high)
{
	struct mp_print_insn out = {.hashed = true};
	uint8_t masked[16];

	if (insn->nop || insn->endbr64 || insn->kind == MP_INSN_JUMP)
		return (struct mp_print_insn){0};
	if (insn->kind == MP_INSN_COND || insn->kind == MP_INSN_CALL) {
		/*
		 * The order of blocks may invert a branch, so the loose hash leaves the
		 * condition out.
		 */
		out.full = mp_print_mix(insn->kind, insn->cc);
		out.loose = mp_print_mix(insn->kind, UINT32_MAX);
		return out;
	}
	copy(masked, bytes, insn->len);
	if (insn->disp_size == 4)
		memset(masked + insn->disp_off, 0, 4);
	else if (insn->disp_size)
		memset(masked + insn->disp_off, 0, insn->disp_size);
	if (insn->mem_disp_off && may_be_address(bytes + insn->mem_disp_off, low, high))
		memset(masked + insn->mem_disp_off, 0, 4);
	if (insn->imm_size == 4 && may_be_address(bytes + insn->imm_off, low, high))
		memset(masked + insn->imm_off, 0, 4);
	out.full = (uint32_t)XXH3_64bits(masked, insn->len);
	out.loose = mp_print_mix(opcode_of(bytes, insn->len), 1);
	return out;
}
