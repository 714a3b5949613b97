// SPDX-License-Identifier: Apache-2.0
/*
 * verify_decode - one instruction as verify sees it, straight from Zydis's raw fields.
 *
 * Shares nothing with libprof/insn: two readings of the same bytes must agree.
 */
#include "editor/verify_priv.h"

/* Minimal mode gives lengths and raw fields, all that is needed, at half the price. */
static const ZydisDecoder *decoder(void)
{
	static _Thread_local ZydisDecoder dec;
	static _Thread_local bool ready;

	if (!ready) {
		ZydisDecoderInit(&dec, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
		ZydisDecoderEnableMode(&dec, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
		ready = true;
	}
	return &dec;
}

static void decode_memory(const ZydisDecodedInstruction *z, uint64_t vaddr, struct vf_insn *insn)
{
	if (z->raw.modrm.mod == 0 && z->raw.modrm.rm == 5) {
		insn->disp_off = z->raw.disp.offset;
		insn->target = vaddr + z->length + (uint64_t)z->raw.disp.value;
		for (unsigned int i = 0; i < z->raw.prefix_count; i++)
			insn->eip_relative |= z->raw.prefixes[i].value == 0x67;
	} else if (z->raw.disp.size == 32) {
		/* A base register may hold anything, also an index of a table at this address. */
		insn->abs_off = z->raw.disp.offset;
		insn->abs = z->raw.disp.value;
	}
}

static uint8_t one_byte_kind(const ZydisDecodedInstruction *z, struct vf_insn *insn)
{
	uint8_t op = z->opcode;

	if (op >= 0x70 && op <= 0x7f) {
		insn->cc = op & 15;
		return VF_JCC;
	}
	switch (op) {
	case 0xe9:
	case 0xeb: return VF_JMP;
	case 0xe8: return VF_CALL;
	case 0xe0:
	case 0xe1:
	case 0xe2:
	case 0xe3: return VF_ODD;
	case 0xc2:
	case 0xc3:
	case 0xca:
	case 0xcb:
	case 0xcf:
	case 0xf4: return VF_STOP;
	case 0xcc: insn->int3 = true; return VF_OTHER;
	case 0x90: insn->nop = z->mnemonic == ZYDIS_MNEMONIC_NOP; return VF_OTHER;
	case 0x8d: insn->lea = true; return VF_OTHER;
	case 0xc7: return z->mnemonic == ZYDIS_MNEMONIC_XBEGIN ? VF_ODD : VF_OTHER;
	case 0xff:
		if (z->raw.modrm.reg == 2 || z->raw.modrm.reg == 3)
			return VF_ICALL;
		if (z->raw.modrm.reg == 4 || z->raw.modrm.reg == 5)
			return z->raw.modrm.mod == 3 ? VF_IJMP_REG : VF_IJMP_MEM;
		return VF_OTHER;
	default: return VF_OTHER;
	}
}

static uint8_t two_byte_kind(const ZydisDecodedInstruction *z, struct vf_insn *insn)
{
	uint8_t op = z->opcode;

	if (op >= 0x80 && op <= 0x8f) {
		insn->cc = op & 15;
		return VF_JCC;
	}
	switch (op) {
	case 0x07: /* sysret */
	case 0x35: /* sysexit */
	case 0x0b:
	case 0xb9:
	case 0xff: return VF_STOP;
	case 0x1f: insn->nop = true; return VF_OTHER;
	default: return VF_OTHER;
	}
}

bool vf_decode(const uint8_t *bytes, size_t avail, uint64_t vaddr, struct vf_insn *insn)
{
	ZydisDecodedInstruction z;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder(), NULL, bytes, avail, &z)))
		return false;
	*insn = (struct vf_insn){.len = z.length};
	if (z.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY) {
		if (z.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT)
			insn->kind = one_byte_kind(&z, insn);
		else if (z.opcode_map == ZYDIS_OPCODE_MAP_0F)
			insn->kind = two_byte_kind(&z, insn);
	}
	if ((z.attributes & ZYDIS_ATTRIB_HAS_MODRM) && z.raw.modrm.mod != 3)
		decode_memory(&z, vaddr, insn);
	for (int i = 0; i < 2; i++) {
		if (!z.raw.imm[i].size)
			continue;
		if (z.raw.imm[i].is_relative) {
			insn->rel_off = z.raw.imm[i].offset;
			insn->rel_size = z.raw.imm[i].size / 8;
			insn->target = vaddr + z.length + (uint64_t)z.raw.imm[i].value.s;
			if (insn->kind != VF_JCC && insn->kind != VF_JMP && insn->kind != VF_CALL)
				insn->kind = VF_ODD;
		} else if (!insn->imm_size) {
			insn->imm_off = z.raw.imm[i].offset;
			insn->imm_size = z.raw.imm[i].size / 8;
			insn->imm = z.raw.imm[i].value.s;
		}
	}
	/* A 16-bit relative branch truncates rip: not what compilers emit, not followed. */
	if (insn->rel_size == 2)
		insn->kind = VF_ODD;
	return true;
}
