// SPDX-License-Identifier: Apache-2.0
/*
 * verify_effect - tells which parts of the general registers one instruction reads, and which
 * it certainly replaces, by Zydis's operands. Where these are not certain, a part counts as
 * read and not replaced. Called by verify_graph, verify_table_bases, verify_free_registers
 * and verify_read.
 */
#include <stddef.h>

#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_head.h"
#include "editor/verify/read/verify_effect.h"

#define R(n) ((uint16_t)(1u << (n)))

static uint16_t number_of(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15
		       ? R(ZydisRegisterGetId(whole))
		       : 0;
}

/* Set the bit of @reg in the parts that the operand covers. */
static void add_parts(uint16_t parts[VF_NR_PARTS], ZydisRegister reg)
{
	uint16_t bit = number_of(reg);
	ZydisRegisterClass class = ZydisRegisterGetClass(reg);
	bool high = reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH;

	if (!high)
		parts[VF_PART_LOW] |= bit;
	if (high || class != ZYDIS_REGCLASS_GPR8)
		parts[VF_PART_HIGH] |= bit;
	if (class != ZYDIS_REGCLASS_GPR8 && class != ZYDIS_REGCLASS_GPR16)
		parts[VF_PART_REST] |= bit;
}

static void add_memory(struct vf_effect *e, const ZydisDecodedOperand *op)
{
	const uint16_t bits = number_of(op->mem.base) | number_of(op->mem.index);

	for (int k = 0; k < VF_NR_PARTS; k++)
		e->reads[k] |= bits;
	if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) ||
	    (op->mem.base != ZYDIS_REGISTER_RSP && op->mem.base != ZYDIS_REGISTER_RBP))
		return;
	e->flags |= VF_EFFECT_STACK;
	if (op->mem.base == ZYDIS_REGISTER_RSP && op->mem.index == ZYDIS_REGISTER_NONE &&
	    !op->mem.disp.value)
		e->flags |= VF_EFFECT_TOP;
}

static void add_register(struct vf_effect *e, const ZydisDecodedOperand *op, bool sure)
{
	const ZydisRegister reg = op->reg.value;

	if (!number_of(reg))
		return;
	if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		add_parts(e->reads, reg);
	if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return;
	e->sets |= number_of(reg);
	if (sure && op->actions & ZYDIS_OPERAND_ACTION_WRITE)
		add_parts(e->writes, reg);
	if (op->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT)
		e->named |= number_of(reg);
}

/* Is the result the same for every value of the register? */
static bool is_constant(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op)
{
	if (op[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_SBB:
		return op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		       op[0].reg.value == op[1].reg.value;
	case ZYDIS_MNEMONIC_OR:
		return op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op[1].imm.value.s == -1;
	case ZYDIS_MNEMONIC_AND:
		return op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && !op[1].imm.value.s;
	default: return false;
	}
}

static bool is_sure(const ZydisDecodedInstruction *z)
{
	/* The destination may keep its value: no bit set, no valid descriptor, no repetition. */
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_BSF:
	case ZYDIS_MNEMONIC_BSR:
	case ZYDIS_MNEMONIC_LAR:
	case ZYDIS_MNEMONIC_LSL:
	case ZYDIS_MNEMONIC_CMPXCHG:
	case ZYDIS_MNEMONIC_CMPXCHG8B:
	case ZYDIS_MNEMONIC_CMPXCHG16B: return false;
	default: break;
	}
	return !(z->attributes &
		 (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) &&
	       z->meta.category != ZYDIS_CATEGORY_CMOV;
}

static struct vf_effect reads_all(void)
{
	return (struct vf_effect){.reads = {0xffff, 0xffff, 0xffff}};
}

/* Arguments from rax, rdi, rsi, rdx, r10, r8, r9; the processor itself takes rcx and r11. */
static struct vf_effect system_call(void)
{
	const uint16_t args = R(0) | R(7) | R(6) | R(2) | R(10) | R(8) | R(9);
	const uint16_t gone = R(0) | R(1) | R(11);

	return (struct vf_effect){
		.reads = {args, args, args}, .writes = {gone, gone, gone}, .sets = gone};
}

static struct vf_effect by_operands(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op)
{
	const bool sure = is_sure(z);
	struct vf_effect e = {0};

	for (uint8_t i = 0; i < z->operand_count; i++) {
		if (op[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			add_memory(&e, &op[i]);
		else if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
			add_register(&e, &op[i], sure);
	}
	if (is_constant(z, op)) {
		uint16_t parts[VF_NR_PARTS] = {0};

		add_parts(parts, op[0].reg.value);
		for (int k = 0; k < VF_NR_PARTS; k++)
			e.reads[k] &= (uint16_t)~parts[k];
	}
	if (z->mnemonic == ZYDIS_MNEMONIC_PUSH)
		e.flags |= VF_EFFECT_PUSH | VF_EFFECT_TOP;
	if (z->mnemonic == ZYDIS_MNEMONIC_POP)
		e.flags |= VF_EFFECT_POP;
	if (z->mnemonic == ZYDIS_MNEMONIC_MOV) {
		if (op[0].type == ZYDIS_OPERAND_TYPE_MEMORY && (e.flags & VF_EFFECT_STACK) &&
		    op[0].mem.index == ZYDIS_REGISTER_NONE &&
		    op[1].type == ZYDIS_OPERAND_TYPE_REGISTER)
			e.flags |= VF_EFFECT_SPILL;
		if (op[0].size == 64 && op[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    (op[1].mem.base == ZYDIS_REGISTER_RSP || op[1].mem.base == ZYDIS_REGISTER_RBP))
			e.flags |= VF_EFFECT_POP;
	}
	return e;
}

static struct vf_effect effect_of(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op)
{
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_NOP: return (struct vf_effect){0}; /* its operand is not accessed */
	case ZYDIS_MNEMONIC_SYSCALL: return system_call();
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ: return reads_all();
	default: break;
	}
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_VTX:
	case ZYDIS_CATEGORY_SGX: return reads_all();
	default: return by_operands(z, op);
	}
}

/* A cache. The effect depends only on the head, unless an immediate makes the result constant. */
struct known {
	uint64_t head;
	struct vf_effect effect;
	uint8_t size; /* of @head; 0: free */
};

enum {
	KNOWN_LOG2 = 13
};

static struct known *known_slot(uint64_t head)
{
	static _Thread_local struct known known[1 << KNOWN_LOG2];

	return &known[vf_head_index(head, KNOWN_LOG2)];
}

static bool is_repeatable(const ZydisDecodedInstruction *z)
{
	return z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
	       (z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT ||
		z->opcode_map == ZYDIS_OPCODE_MAP_0F) &&
	       z->mnemonic != ZYDIS_MNEMONIC_OR && z->mnemonic != ZYDIS_MNEMONIC_AND;
}

struct vf_effect vf_effect_of(const uint8_t *bytes, size_t avail)
{
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	struct vf_effect e;
	struct known *k;
	uint64_t head = vf_head_read(bytes, avail);
	uint8_t size;

	k = known_slot(head);
	if (k->size && k->size <= avail && (head & vf_head_mask(k->size)) == k->head)
		return k->effect;
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(vf_full_decoder(), bytes, avail, &z, op)))
		return reads_all();
	e = effect_of(&z, op);
	size = vf_head_size(&z);
	if (size && is_repeatable(&z)) {
		k->head = head & vf_head_mask(size);
		k->size = size;
		k->effect = e;
	}
	return e;
}

uint16_t vf_registers_of(const uint8_t *b, size_t avail)
{
	struct vf_effect e = vf_effect_of(b, avail);

	return e.reads[VF_PART_LOW] | e.reads[VF_PART_HIGH] | e.reads[VF_PART_REST] | e.sets;
}
