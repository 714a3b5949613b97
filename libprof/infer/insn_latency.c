// SPDX-License-Identifier: Apache-2.0
/* insn_latency - classifies opcodes and gives the cost of each class. Called by counts. */
#include "libprof/infer/insn_latency.h"

#include <stdbool.h>

/*
 * Means of the values that scripts/bench/fit-hints found in two programs with many samples. Those
 * of a compressor differ by a factor of 3.
 */
static const double cost[MP_NR_LATENCIES] = {
	[MP_LATENCY_PLAIN] = 0.4,    [MP_LATENCY_MOVE] = 0.3,	[MP_LATENCY_LOAD] = 2.8,
	[MP_LATENCY_LOAD_USE] = 4.0, [MP_LATENCY_MODIFY] = 2.5, [MP_LATENCY_STORE] = 0.9,
	[MP_LATENCY_PUSH] = 1.0,     [MP_LATENCY_POP] = 0.4,	[MP_LATENCY_CALL] = 0.8,
	[MP_LATENCY_DIVIDE] = 6.0,   [MP_LATENCY_VECTOR] = 0.6, [MP_LATENCY_LOCKED] = 10.0,
	[MP_LATENCY_BRANCH] = 0.4,
};

double mp_latency_cost(enum mp_latency latency)
{
	return cost[latency];
}

static enum mp_latency latency_one_byte(uint8_t op, uint8_t modrm)
{
	bool memory = modrm < 0xc0;
	uint8_t reg = modrm >> 3 & 7;

	switch (op) {
	case 0x50 ... 0x57:
	case 0x68:
	case 0x6a: return MP_LATENCY_PUSH;
	case 0x58 ... 0x5f:
	case 0xc9: return MP_LATENCY_POP;
	case 0x00 ... 0x3f:
		if ((op & 7) > 3)
			return op >= 0x38 ? MP_LATENCY_MOVE : MP_LATENCY_PLAIN;
		if (!memory)
			return op >= 0x38 ? MP_LATENCY_MOVE : MP_LATENCY_PLAIN;
		return op & 2 || op >= 0x38 ? MP_LATENCY_LOAD_USE : MP_LATENCY_MODIFY;
	case 0x63:
	case 0x8a:
	case 0x8b: return memory ? MP_LATENCY_LOAD : MP_LATENCY_MOVE;
	case 0x69:
	case 0x6b: return memory ? MP_LATENCY_LOAD_USE : MP_LATENCY_PLAIN;
	case 0x80 ... 0x83:
		if (!memory)
			return reg == 7 ? MP_LATENCY_MOVE : MP_LATENCY_PLAIN;
		return reg == 7 ? MP_LATENCY_LOAD_USE : MP_LATENCY_MODIFY;
	case 0x84:
	case 0x85: return memory ? MP_LATENCY_LOAD_USE : MP_LATENCY_MOVE;
	case 0x86:
	case 0x87: return memory ? MP_LATENCY_LOCKED : MP_LATENCY_PLAIN;
	case 0x88:
	case 0x89:
	case 0xc6:
	case 0xc7: return memory ? MP_LATENCY_STORE : MP_LATENCY_MOVE;
	case 0xa8:
	case 0xa9:
	case 0x90:
	case 0xb0 ... 0xbf: return MP_LATENCY_MOVE;
	case 0xc0:
	case 0xc1:
	case 0xd0 ... 0xd3: return memory ? MP_LATENCY_MODIFY : MP_LATENCY_PLAIN;
	case 0xf6:
	case 0xf7:
		if (reg < 2)
			return memory ? MP_LATENCY_LOAD_USE : MP_LATENCY_MOVE;
		if (reg >= 6)
			return MP_LATENCY_DIVIDE;
		return memory ? MP_LATENCY_MODIFY : MP_LATENCY_PLAIN;
	case 0xfe:
	case 0xff:
		if (op == 0xff && reg == 6)
			return MP_LATENCY_PUSH;
		return memory ? MP_LATENCY_MODIFY : MP_LATENCY_PLAIN;
	default: return MP_LATENCY_PLAIN;
	}
}

static enum mp_latency latency_two_bytes(uint8_t op, uint8_t modrm)
{
	bool memory = modrm < 0xc0;

	switch (op) {
	case 0x1e:
	case 0x1f: return MP_LATENCY_MOVE;
	case 0xb6:
	case 0xb7:
	case 0xbe:
	case 0xbf: return memory ? MP_LATENCY_LOAD : MP_LATENCY_MOVE;
	case 0x40 ... 0x4f:
	case 0xaf:
	case 0xa3:
	case 0xbc:
	case 0xbd: return memory ? MP_LATENCY_LOAD_USE : MP_LATENCY_PLAIN;
	case 0x90 ... 0x9f: return memory ? MP_LATENCY_STORE : MP_LATENCY_PLAIN;
	case 0x11:
	case 0x13:
	case 0x17:
	case 0x29:
	case 0x2b:
	case 0x7f:
	case 0xd6:
	case 0xe7: return memory ? MP_LATENCY_STORE : MP_LATENCY_VECTOR;
	case 0x5e:
	case 0x51: return MP_LATENCY_DIVIDE;
	case 0x10:
	case 0x12:
	case 0x14 ... 0x16:
	case 0x28:
	case 0x2a:
	case 0x2c ... 0x2f:
	case 0x50:
	case 0x52 ... 0x5d:
	case 0x5f ... 0x7e:
	case 0xc2:
	case 0xc6:
	case 0xd0 ... 0xd5:
	case 0xd7 ... 0xe6:
	case 0xe8 ... 0xff: return memory ? MP_LATENCY_LOAD : MP_LATENCY_VECTOR;
	case 0xb0:
	case 0xb1:
	case 0xc0:
	case 0xc1: return memory ? MP_LATENCY_MODIFY : MP_LATENCY_PLAIN;
	case 0xa2: return MP_LATENCY_LOCKED; /* cpuid */
	default: return MP_LATENCY_PLAIN;
	}
}

enum mp_latency mp_insn_latency(const uint8_t *bytes, const struct mp_insn *insn)
{
	uint8_t at = 0, op;

	if (insn->kind == MP_INSN_CALL || insn->kind == MP_INSN_ICALL)
		return MP_LATENCY_CALL;
	if (insn->kind != MP_INSN_OTHER)
		return insn->kind == MP_INSN_SYSCALL ? MP_LATENCY_LOCKED : MP_LATENCY_BRANCH;
	if (insn->nop)
		return MP_LATENCY_MOVE;
	for (; at + 1 < insn->len; at++) {
		uint8_t p = bytes[at];

		if (p == 0xf0)
			return MP_LATENCY_LOCKED;
		if (p != 0x66 && p != 0xf2 && p != 0xf3 && p != 0x2e && p != 0x3e && p != 0x64 &&
		    p != 0x65 && p != 0x26 && p != 0x36 && p != 0x67 && (p & 0xf0) != 0x40)
			break;
	}
	op = bytes[at++];
	if (op == 0xc4 || op == 0xc5) /* VEX */
		return MP_LATENCY_VECTOR;
	if (op == 0x0f && at < insn->len) {
		op = bytes[at++];
		if ((op == 0x38 || op == 0x3a) && at < insn->len)
			at++;
		return latency_two_bytes(op, at < insn->len ? bytes[at] : 0xc0);
	}
	return latency_one_byte(op, at < insn->len ? bytes[at] : 0xc0);
}
