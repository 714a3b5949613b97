// SPDX-License-Identifier: Apache-2.0
/* operand - computes addresses, and finds out where an operand is; see operand_private.h. Called by execute. */
#include "libprof/foresee/operand_private.h"

enum {
	FORGET_MAX = 64 /* bytes, of one vector */
};

/* Without a base, some versions of Zydis name r13 where the prefix has the bit of a base. No compiler sets it. */
static bool is_ambiguous(const ZydisDecodedInstruction *insn)
{
	return insn->raw.modrm.rm == 4 && !insn->raw.modrm.mod && insn->raw.sib.base == 5 &&
	       insn->raw.rex.B;
}

bool mp_operand_address(const struct mp_processor *p, const struct mp_decoded *d,
			const ZydisDecodedOperand *op, uint64_t *address)
{
	const ZydisDecodedOperandMem *mem = &op->mem;
	uint64_t base = 0, index = 0;

	if (is_ambiguous(&d->insn))
		return false;
	if (mem->base == ZYDIS_REGISTER_RIP)
		base = p->behind;
	else if (mem->base != ZYDIS_REGISTER_NONE && !mp_register_read(p, mem->base, &base))
		return false;
	if (mem->index != ZYDIS_REGISTER_NONE && !mp_register_read(p, mem->index, &index))
		return false;
	base += index * mem->scale + (uint64_t)mem->disp.value;
	*address = base & mp_low_bits(d->insn.address_width);
	return true;
}

/* The bases of fs and gs are not known, those of the others are 0. */
static bool memory_address(const struct mp_processor *p, const struct mp_decoded *d,
			   const ZydisDecodedOperand *op, uint64_t *address)
{
	return op->mem.type == ZYDIS_MEMOP_TYPE_MEM && op->mem.segment != ZYDIS_REGISTER_FS &&
	       op->mem.segment != ZYDIS_REGISTER_GS && mp_operand_address(p, d, op, address);
}

bool mp_operand_read(const struct mp_processor *p, const struct mp_decoded *d,
		     const ZydisDecodedOperand *op, uint64_t *value)
{
	uint64_t address;

	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_IMMEDIATE: *value = op->imm.value.u; return true;
	case ZYDIS_OPERAND_TYPE_REGISTER: return mp_register_read(p, op->reg.value, value);
	case ZYDIS_OPERAND_TYPE_MEMORY:
		return memory_address(p, d, op, &address) &&
		       mp_memory_read(&p->memory, address, op->size / 8, value);
	default: return false;
	}
}

void mp_operand_write(struct mp_processor *p, const struct mp_decoded *d,
		      const ZydisDecodedOperand *op, uint64_t value)
{
	uint64_t address;

	if (op->type == ZYDIS_OPERAND_TYPE_REGISTER)
		mp_register_write(p, op->reg.value, value);
	else if (op->type != ZYDIS_OPERAND_TYPE_MEMORY)
		return;
	else if (memory_address(p, d, op, &address))
		mp_memory_write(&p->memory, address, op->size / 8, value);
	else
		mp_memory_forget_all(&p->memory);
}

void mp_operand_forget(struct mp_processor *p, const struct mp_decoded *d,
		       const ZydisDecodedOperand *op)
{
	uint64_t address;

	if (op->type == ZYDIS_OPERAND_TYPE_REGISTER)
		mp_register_forget(p, op->reg.value);
	else if (op->type != ZYDIS_OPERAND_TYPE_MEMORY)
		return;
	else if (op->size && op->size / 8 <= FORGET_MAX && memory_address(p, d, op, &address))
		mp_memory_forget(&p->memory, address, op->size / 8);
	else
		mp_memory_forget_all(&p->memory);
}
