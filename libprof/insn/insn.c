// SPDX-License-Identifier: Apache-2.0
/*
 * insn - decides what one instruction means for control flow and for relocation.
 * It reports "undecodable" also for far transfers, and for forms on which processors
 * disagree (branches with 16-bit offsets, EIP-relative addresses): Morph could not move
 * these correctly. Called by all code that decodes instructions, except the editor's
 * verify.
 */
#include "libprof/insn/insn.h"

#include <errno.h>
#include <string.h>

#include "libprof/insn/decoder.h"
#include "libprof/insn/insn_quick.h"

static enum mp_insn_kind kind_of(const ZydisDecodedInstruction *z)
{
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_JMP: return z->raw.imm[0].is_relative ? MP_INSN_JUMP : MP_INSN_IJUMP;
	case ZYDIS_MNEMONIC_CALL: return z->raw.imm[0].is_relative ? MP_INSN_CALL : MP_INSN_ICALL;
	case ZYDIS_MNEMONIC_RET:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_UIRET: return MP_INSN_RET;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_INT1: return MP_INSN_TRAP;
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
	case ZYDIS_MNEMONIC_JCXZ:
	case ZYDIS_MNEMONIC_XBEGIN: return MP_INSN_LOOP;
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INTO: return MP_INSN_SYSCALL;
	default: break;
	}
	if (z->meta.category == ZYDIS_CATEGORY_COND_BR)
		return MP_INSN_COND;
	return MP_INSN_OTHER;
}

static bool is_branch(uint8_t kind)
{
	return kind == MP_INSN_COND || kind == MP_INSN_JUMP || kind == MP_INSN_IJUMP ||
	       kind == MP_INSN_CALL || kind == MP_INSN_ICALL || kind == MP_INSN_LOOP;
}

static int take_branch(const ZydisDecodedInstruction *z, struct mp_insn *insn)
{
	bool wide = z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && z->raw.rex.W;

	if (z->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return -EILSEQ;
	/* AMD truncates the target to 16 bits, Intel does not. With REX.W both agree. */
	if ((z->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) && !wide)
		return -EILSEQ;
	insn->notrack = z->attributes & ZYDIS_ATTRIB_HAS_NOTRACK;
	insn->bnd = z->attributes & ZYDIS_ATTRIB_HAS_BND;
	if (!z->raw.imm[0].is_relative)
		return 0;
	if (z->raw.imm[0].size != 8 && z->raw.imm[0].size != 32)
		return -EILSEQ;
	insn->disp_off = z->raw.imm[0].offset;
	insn->disp_size = z->raw.imm[0].size / 8;
	insn->target = insn->vaddr + insn->len + (uint64_t)z->raw.imm[0].value.s;
	if (insn->kind != MP_INSN_COND)
		return 0;
	/* Conditional branches of other forms (Knights Corner's jkzd) are not supported. */
	if (z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
	    !((z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (z->opcode & 0xf0) == 0x70) ||
	      (z->opcode_map == ZYDIS_OPCODE_MAP_0F && (z->opcode & 0xf0) == 0x80)))
		return -EILSEQ;
	insn->cc = z->opcode & 0xf;
	return 0;
}

int mp_insn_decode_full(const uint8_t *bytes, size_t avail, uint64_t vaddr, struct mp_insn *insn)
{
	ZydisDecodedInstruction z;

	if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(mp_decoder(), NULL, bytes, avail, &z)))
		return -EILSEQ;
	memset(insn, 0, sizeof(*insn));
	insn->vaddr = vaddr;
	insn->len = z.length;
	insn->kind = (uint8_t)kind_of(&z);
	if (is_branch(insn->kind) && take_branch(&z, insn))
		return -EILSEQ;
	if (insn->kind == MP_INSN_RET && z.meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR &&
	    (z.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE))
		return -EILSEQ;
	if ((z.attributes & ZYDIS_ATTRIB_HAS_MODRM) && z.raw.modrm.mod == 0 &&
	    z.raw.modrm.rm == 5 && z.raw.disp.size == 32) {
		if (z.attributes & ZYDIS_ATTRIB_HAS_ADDRESSSIZE)
			return -EILSEQ;
		insn->rip_relative = true;
		insn->disp_off = z.raw.disp.offset;
		insn->disp_size = 4;
		/* Relative to the next instruction: an immediate may follow the displacement. */
		insn->target = vaddr + z.length + (uint64_t)z.raw.disp.value;
	}
	if ((z.attributes & ZYDIS_ATTRIB_HAS_MODRM) && !insn->rip_relative && z.raw.disp.size == 32)
		insn->mem_disp_off = z.raw.disp.offset;
	if (z.raw.imm[0].size && !z.raw.imm[0].is_relative) {
		insn->imm_off = z.raw.imm[0].offset;
		insn->imm_size = z.raw.imm[0].size / 8;
	}
	if (!(z.attributes & ZYDIS_ATTRIB_HAS_MODRM) && z.raw.disp.size == 64) {
		insn->imm_off = z.raw.disp.offset;
		insn->imm_size = 8;
	}
	insn->endbr64 = z.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
	insn->nop = z.mnemonic == ZYDIS_MNEMONIC_NOP;
	return 0;
}

int mp_insn_decode(const uint8_t *bytes, size_t avail, uint64_t vaddr, struct mp_insn *insn)
{
	if (mp_insn_decode_quick(bytes, avail, vaddr, insn))
		return 0;
	return mp_insn_decode_full(bytes, avail, vaddr, insn);
}
