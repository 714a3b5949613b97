// SPDX-License-Identifier: Apache-2.0
/*
 * foresee - goes from instruction to instruction as far as the registers of a sample decide the way.
 * Called by morphd, for code that anybody may have written.
 */
#include "libprof/foresee/foresee.h"

#include <string.h>

#include "libprof/foresee/execute_private.h"
#include "libprof/insn/decoder.h"

enum {
	INSNS_MAX = 100
};

/* What the processor executes after an instruction. */
enum next {
	NEXT_INSN,
	NEXT_JUMP,
	NEXT_BRANCH,
	NEXT_UNKNOWN
};

static bool is_unusual(const ZydisDecodedInstruction *insn)
{
	return insn->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
				   ZYDIS_ATTRIB_HAS_REPNE | ZYDIS_ATTRIB_IS_PRIVILEGED);
}

/* jcc, not loop, jrcxz or xbegin. */
static bool is_jcc(const ZydisDecodedInstruction *insn)
{
	return insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT ? (insn->opcode & 0xf0) == 0x70
							    : (insn->opcode & 0xf0) == 0x80;
}

/* Processors differ in what a branch with an operand size of 16 bits does. */
static bool is_relative(const struct mp_decoded *d)
{
	return d->operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	       d->operands[0].imm.is_relative &&
	       !(d->insn.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE);
}

static enum next next_of(const struct mp_decoded *d)
{
	if (is_unusual(&d->insn))
		return NEXT_UNKNOWN;
	switch (d->insn.meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		return is_relative(d) && is_jcc(&d->insn) ? NEXT_BRANCH : NEXT_UNKNOWN;
	case ZYDIS_CATEGORY_UNCOND_BR: return is_relative(d) ? NEXT_JUMP : NEXT_UNKNOWN;
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_STRINGOP:
	case ZYDIS_CATEGORY_IO:
	case ZYDIS_CATEGORY_IOSTRINGOP:
	case ZYDIS_CATEGORY_VTX:
	case ZYDIS_CATEGORY_SGX:
	case ZYDIS_CATEGORY_UINTR: return NEXT_UNKNOWN;
	default: break;
	}
	switch (d->insn.mnemonic) {
	/* With a register in REX, this may be an exchange. */
	case ZYDIS_MNEMONIC_PAUSE: return d->insn.raw.rex.B ? NEXT_UNKNOWN : NEXT_INSN;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_XABORT: return NEXT_UNKNOWN;
	default: return NEXT_INSN;
	}
}

static bool decode(const struct mp_foresee_code *code, uint64_t vaddr, struct mp_decoded *d)
{
	size_t avail = 0;
	const uint8_t *bytes = code->bytes(code->data, vaddr, &avail);

	return bytes && avail &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeFull(
		       mp_decoder(), bytes,
		       avail < ZYDIS_MAX_INSTRUCTION_LENGTH ? avail : ZYDIS_MAX_INSTRUCTION_LENGTH,
		       &d->insn, d->operands));
}

uint32_t mp_foresee(const struct mp_foresee_code *code, uint64_t vaddr, const uint64_t *registers,
		    uint32_t known, struct mp_foreseen_way ways[MP_FORESEE_WAYS])
{
	struct mp_processor p = {.known = (uint16_t)known};
	struct mp_decoded d;
	uint32_t nr = 0;

	memcpy(p.values, registers, sizeof(p.values));
	if (known >> MP_FORESEE_FLAGS & 1) {
		p.flags = (uint32_t)registers[MP_FORESEE_FLAGS] & MP_STATUS_FLAGS;
		p.flags_known = MP_STATUS_FLAGS;
	}
	for (unsigned int i = 0; i < INSNS_MAX && decode(code, vaddr, &d); i++) {
		uint64_t behind = vaddr + d.insn.length;
		enum mp_truth truth;

		switch (next_of(&d)) {
		case NEXT_UNKNOWN: return nr;
		case NEXT_JUMP: vaddr = behind + d.operands[0].imm.value.u; break;
		case NEXT_INSN:
			mp_execute(&p, &d);
			vaddr = behind;
			break;
		case NEXT_BRANCH:
			truth = mp_condition(&p, d.insn.opcode & 15);
			if (truth == MP_UNKNOWN)
				return nr;
			ways[nr++] = (struct mp_foreseen_way){vaddr, truth == MP_TRUE};
			if (nr == MP_FORESEE_WAYS)
				return nr;
			vaddr = behind + (truth == MP_TRUE ? d.operands[0].imm.value.u : 0);
		}
	}
	return nr;
}
