// SPDX-License-Identifier: Apache-2.0
/* saved_registers - also counts operands that an instruction does not name, and parts of registers. */
#include "tests/support/saved_registers.h"

#include "libprof/insn/decoder.h"

#define SAVED (1u << 3 | 1u << 5 | 0xf000u)

static unsigned int bit(ZydisRegister reg)
{
	ZydisRegister whole = ZYDIS_REGISTER_NONE;

	if (reg != ZYDIS_REGISTER_NONE)
		whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
		return 0;
	return (1u << (whole - ZYDIS_REGISTER_RAX)) & SAVED;
}

bool saved_registers_decode(const uint8_t *bytes, size_t avail, struct saved_registers *out)
{
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;

	if (ZYAN_FAILED(ZydisDecoderDecodeFull(mp_decoder(), bytes, avail, &z, op)))
		return false;
	*out = (struct saved_registers){.len = z.length};
	for (int i = 0; i < z.operand_count; i++) {
		if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
			out->mask |= bit(op[i].reg.value);
		else if (op[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			out->mask |= bit(op[i].mem.base) | bit(op[i].mem.index);
	}
	if (op[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return true;
	if (z.mnemonic == ZYDIS_MNEMONIC_PUSH)
		out->use = REGISTER_PUSH;
	else if (z.mnemonic == ZYDIS_MNEMONIC_POP)
		out->use = REGISTER_POP;
	return true;
}
