// SPDX-License-Identifier: Apache-2.0
/*
 * table_op - decodes one instruction with its operands, for table recognition. Only code
 * near indirect jumps is decoded this way. Called by table and cfg_label.
 */
#include "libprof/cfg/table_op.h"

#include <errno.h>

#include "libprof/insn/decoder.h"

static uint8_t gpr(ZydisRegister reg)
{
	ZydisRegister wide;

	if (reg == ZYDIS_REGISTER_NONE)
		return MP_NO_REG;
	wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	if (wide < ZYDIS_REGISTER_RAX || wide > ZYDIS_REGISTER_R15)
		return MP_NO_REG;
	return (uint8_t)(wide - ZYDIS_REGISTER_RAX);
}

static void take_mem(struct mp_op *op, const ZydisDecodedOperand *o, uint64_t next)
{
	op->mem = true;
	op->base = gpr(o->mem.base);
	op->index = gpr(o->mem.index);
	op->scale = op->index == MP_NO_REG ? 0 : o->mem.scale;
	op->disp = o->mem.disp.has_displacement ? o->mem.disp.value : 0;
	op->size = (uint8_t)(o->size / 8);
	if (o->mem.base == ZYDIS_REGISTER_RIP) {
		op->rip = true;
		op->disp += (int64_t)next;
	}
}

static void take_move(struct mp_op *op, const ZydisDecodedOperand *o)
{
	if (o[0].type == ZYDIS_OPERAND_TYPE_MEMORY) {
		if (o[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
			return;
		op->src = gpr(o[1].reg.value);
		op->kind = op->src == MP_NO_REG ? MP_OP_OTHER : MP_OP_STORE;
		return;
	}
	op->dst = gpr(o[0].reg.value);
	op->width = (uint8_t)(o[0].size / 8);
	if (op->dst == MP_NO_REG || op->width < 4)
		return;
	if (o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		op->kind = MP_OP_CONST;
		op->value = op->width == 4 ? (int64_t)(uint32_t)o[1].imm.value.u : o[1].imm.value.s;
	} else if (o[1].type == ZYDIS_OPERAND_TYPE_MEMORY) {
		op->kind = MP_OP_LOAD;
	} else if (o[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
		op->src = gpr(o[1].reg.value);
		op->size = (uint8_t)(o[1].size / 8);
		op->kind = op->src == MP_NO_REG ? MP_OP_OTHER : MP_OP_COPY;
	}
}

static void take_arith(struct mp_op *op, const ZydisDecodedOperand *o, ZydisMnemonic mnemonic)
{
	bool imm = o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

	if (o[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return;
	op->dst = gpr(o[0].reg.value);
	op->width = op->size = (uint8_t)(o[0].size / 8);
	if (op->dst == MP_NO_REG)
		return;
	if (imm)
		op->value = o[1].imm.is_signed ? o[1].imm.value.s : (int64_t)o[1].imm.value.u;
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
		if (imm) {
			op->kind = MP_OP_ADD_IMM;
		} else if (o[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
			op->kind = MP_OP_ADD;
			op->src = gpr(o[1].reg.value);
		}
		break;
	case ZYDIS_MNEMONIC_SUB:
		op->value = -op->value;
		if (imm)
			op->kind = MP_OP_ADD_IMM;
		break;
	case ZYDIS_MNEMONIC_AND:
		if (imm)
			op->kind = MP_OP_AND_IMM;
		break;
	case ZYDIS_MNEMONIC_SHR:
		if (imm)
			op->kind = MP_OP_SHR_IMM;
		break;
	case ZYDIS_MNEMONIC_SHL:
		if (imm)
			op->kind = MP_OP_SHL_IMM;
		break;
	default: break;
	}
}

static void take_cmp(struct mp_op *op, const ZydisDecodedOperand *o)
{
	if (o[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return;
	if (o[0].type == ZYDIS_OPERAND_TYPE_REGISTER) {
		op->src = gpr(o[0].reg.value);
		op->size = (uint8_t)(o[0].size / 8);
		if (op->src == MP_NO_REG)
			return;
	}
	op->kind = MP_OP_CMP_IMM;
	op->value = o[1].imm.is_signed ? o[1].imm.value.s : (int64_t)o[1].imm.value.u;
}

static void take_jump(struct mp_op *op, const ZydisDecodedOperand *o)
{
	op->falls = false;
	if (o[0].type == ZYDIS_OPERAND_TYPE_REGISTER) {
		op->src = gpr(o[0].reg.value);
		op->kind = MP_OP_JUMP_REG;
	} else if (o[0].type == ZYDIS_OPERAND_TYPE_MEMORY) {
		op->kind = MP_OP_JUMP_MEM;
	}
}

static void take_kind(struct mp_op *op, const ZydisDecodedInstruction *z,
		      const ZydisDecodedOperand *o)
{
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD: take_move(op, o); break;
	case ZYDIS_MNEMONIC_CDQE:
		op->kind = MP_OP_COPY;
		op->dst = op->src = 0;
		op->size = 4;
		op->width = 8;
		break;
	case ZYDIS_MNEMONIC_LEA:
		op->dst = gpr(o[0].reg.value);
		op->width = (uint8_t)(o[0].size / 8);
		op->kind = op->rip ? MP_OP_CONST : MP_OP_LEA;
		if (op->rip)
			op->value = op->disp;
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SHL: take_arith(op, o, z->mnemonic); break;
	case ZYDIS_MNEMONIC_CMP: take_cmp(op, o); break;
	case ZYDIS_MNEMONIC_JMP: take_jump(op, o); break;
	case ZYDIS_MNEMONIC_RET:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3: op->falls = false; break;
	case ZYDIS_MNEMONIC_CALL: op->writes |= MP_CALLER_SAVED; break;
	default:
		if (z->meta.category == ZYDIS_CATEGORY_CMOV &&
		    o[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
			op->kind = MP_OP_CMOV;
			op->dst = gpr(o[0].reg.value);
			op->src = gpr(o[1].reg.value);
		}
		if (z->meta.category == ZYDIS_CATEGORY_COND_BR &&
		    z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY)
			op->cond = z->opcode & 0xf;
		break;
	}
}

int mp_op_decode(const struct mp_cfg_build *b, uint32_t at, struct mp_op *op)
{
	const struct mp_span *span = mp_space_span(b->index, at);
	ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	uint64_t next;

	if (!span)
		return -EILSEQ;
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(mp_decoder(), span->bytes + (at - span->at),
					       span->size - (at - span->at), &z, o)))
		return -EILSEQ;
	*op = (struct mp_op){
		.at = at,
		.len = z.length,
		.dst = MP_NO_REG,
		.src = MP_NO_REG,
		.base = MP_NO_REG,
		.index = MP_NO_REG,
		.falls = true,
		.cond = 0xff,
	};
	op->nop = z.mnemonic == ZYDIS_MNEMONIC_NOP;
	op->flags = z.cpu_flags && (z.cpu_flags->modified | z.cpu_flags->set_0 |
				    z.cpu_flags->set_1 | z.cpu_flags->undefined);
	next = span->vaddr + (at - span->at) + z.length;
	for (unsigned int i = 0; i < z.operand_count; i++) {
		if (o[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    o[i].visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN && !op->mem)
			take_mem(op, &o[i], next);
		if (o[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (o[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)) {
			uint8_t reg = gpr(o[i].reg.value);

			if (reg != MP_NO_REG)
				op->writes |= (uint16_t)(1u << reg);
		}
	}
	take_kind(op, &z, o);
	return 0;
}
