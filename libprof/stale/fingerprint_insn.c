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

static bool is_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65:
	case 0x66:
	case 0x67:
	case 0xf0:
	case 0xf2:
	case 0xf3: return true;
	default: return (byte & 0xf0) == 0x40; /* REX */
	}
}

/* Opcodes whose ModRM byte selects the operation by three bits. */
static bool is_group(uint32_t opcode)
{
	switch (opcode) {
	case 0x80 ... 0x83:
	case 0xc0:
	case 0xc1:
	case 0xd0 ... 0xd3:
	case 0xf6:
	case 0xf7:
	case 0xfe:
	case 0xff:
	case 0x0f18:
	case 0x0f71 ... 0x0f73:
	case 0x0fae:
	case 0x0fba:
	case 0x0fc7: return true;
	default: return false;
	}
}

/* The opcode as a number that depends neither on registers nor on the length of a constant. */
static uint32_t opcode_of(const uint8_t *bytes, uint8_t len)
{
	uint32_t opcode, at = 0;
	uint8_t padded[16] = {0};

	memcpy(padded, bytes, len);
	while (at < len && is_prefix(padded[at]))
		at++;
	if (at + 4 >= sizeof(padded))
		return 0;
	if (padded[at] == 0xc5)
		return 0xc50000 | padded[at + 2];
	if (padded[at] == 0xc4)
		return 0xc40000 | (uint32_t)(padded[at + 1] & 0x1f) << 8 | padded[at + 3];
	if (padded[at] == 0x62)
		return 0x620000 | (uint32_t)(padded[at + 1] & 7) << 8 | padded[at + 4];
	opcode = padded[at++];
	if (opcode == 0x0f) {
		opcode = opcode << 8 | padded[at++];
		if (opcode == 0x0f38 || opcode == 0x0f3a)
			return opcode << 8 | padded[at];
	} else if ((opcode >= 0x50 && opcode <= 0x5f) || (opcode >= 0xb0 && opcode <= 0xbf)) {
		return opcode & 0xf8;
	} else if (opcode == 0x6a) {
		return 0x68;
	}
	if (!is_group(opcode))
		return opcode;
	return (opcode == 0x83 ? 0x81 : opcode) << 3 | (padded[at] >> 3 & 7);
}

static bool may_be_address(const uint8_t *field, uint64_t low, uint64_t high)
{
	uint32_t value;

	memcpy(&value, field, sizeof(value));
	return value >= low && value < high;
}

struct mp_print_insn mp_print_insn(const uint8_t *bytes, const struct mp_insn *insn, uint64_t low,
				   uint64_t high)
{
	struct mp_print_insn out = {.hashed = true};
	uint8_t masked[16] = {0};

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
	memcpy(masked, bytes, insn->len);
	if (insn->disp_size)
		memset(masked + insn->disp_off, 0, insn->disp_size);
	if (insn->mem_disp_off && may_be_address(bytes + insn->mem_disp_off, low, high))
		memset(masked + insn->mem_disp_off, 0, 4);
	if (insn->imm_size == 4 && may_be_address(bytes + insn->imm_off, low, high))
		memset(masked + insn->imm_off, 0, 4);
	out.full = (uint32_t)XXH3_64bits(masked, insn->len);
	out.loose = mp_print_mix(opcode_of(bytes, insn->len), 1);
	return out;
}
