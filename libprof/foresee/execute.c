// SPDX-License-Identifier: Apache-2.0
/*
 * execute - executes plain integer instructions. Called by foresee.
 *
 * Functions here return false, and then have changed nothing, where the result does not follow from what is known. The
 * registers and flags that the instruction writes then become unknown.
 */
#include "libprof/foresee/execute_private.h"

#include "libprof/foresee/alu_private.h"

/* An instruction that stores elsewhere than its operand in memory says. */
static bool stores_elsewhere(const ZydisDecodedInstruction *insn)
{
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_BTC:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTS: /* a bit far from its operand */
	case ZYDIS_MNEMONIC_CLZERO:
	case ZYDIS_MNEMONIC_ENQCMD:
	case ZYDIS_MNEMONIC_MOVDIR64B:
	case ZYDIS_MNEMONIC_ENTER:
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFQ:
	case ZYDIS_MNEMONIC_POP: return true;
	default: break;
	}
	return insn->meta.category == ZYDIS_CATEGORY_AMX_TILE ||
	       insn->meta.category == ZYDIS_CATEGORY_XSAVE ||
	       insn->meta.category == ZYDIS_CATEGORY_XSAVEOPT;
}

static void forget(struct mp_processor *p, const struct mp_decoded *d)
{
	const ZydisAccessedFlags *flags = d->insn.cpu_flags;

	/* Places in memory first: registers that the instruction writes may be part of their addresses. */
	for (unsigned int i = 0; i < d->insn.operand_count; i++)
		if (d->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    d->operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			mp_operand_forget(p, d, &d->operands[i]);
	for (unsigned int i = 0; i < d->insn.operand_count; i++)
		if (d->operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    d->operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			mp_operand_forget(p, d, &d->operands[i]);
	if (flags)
		p->flags_known &=
			~(flags->modified | flags->set_0 | flags->set_1 | flags->undefined);
	if (stores_elsewhere(&d->insn))
		mp_memory_forget_all(&p->memory);
}

static bool is_same_register(const ZydisDecodedOperand *a, const ZydisDecodedOperand *b)
{
	return a->type == ZYDIS_OPERAND_TYPE_REGISTER && b->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       a->reg.value == b->reg.value;
}

static bool is_idiom_of_zero(const struct mp_decoded *d)
{
	return (d->insn.mnemonic == ZYDIS_MNEMONIC_XOR || d->insn.mnemonic == ZYDIS_MNEMONIC_SUB) &&
	       is_same_register(&d->operands[0], &d->operands[1]);
}

/* add adc sub sbb and or xor, and cmp and test, which write flags only. */
static bool arithmetic(struct mp_processor *p, const struct mp_decoded *d)
{
	unsigned int bits = d->operands[0].size;
	uint64_t a = 0, b = 0;
	bool carry = p->flags & MP_CF;
	struct mp_alu alu;

	if (!is_idiom_of_zero(d) && (!mp_operand_read(p, d, &d->operands[0], &a) ||
				     !mp_operand_read(p, d, &d->operands[1], &b)))
		return false;
	b &= mp_low_bits(bits);
	switch (d->insn.mnemonic) {
	case ZYDIS_MNEMONIC_ADD: alu = mp_alu_add(a, b, false, bits); break;
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_CMP: alu = mp_alu_sub(a, b, false, bits); break;
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_TEST: alu = mp_alu_logic(a & b, bits); break;
	case ZYDIS_MNEMONIC_OR: alu = mp_alu_logic(a | b, bits); break;
	case ZYDIS_MNEMONIC_XOR: alu = mp_alu_logic(a ^ b, bits); break;
	default:
		if (!(p->flags_known & MP_CF))
			return false;
		alu = d->insn.mnemonic == ZYDIS_MNEMONIC_ADC ? mp_alu_add(a, b, carry, bits)
							     : mp_alu_sub(a, b, carry, bits);
	}
	if (d->insn.mnemonic != ZYDIS_MNEMONIC_CMP && d->insn.mnemonic != ZYDIS_MNEMONIC_TEST)
		mp_operand_write(p, d, &d->operands[0], alu.value);
	mp_flags_write(p, &alu);
	return true;
}

/* inc dec neg not */
static bool unary(struct mp_processor *p, const struct mp_decoded *d)
{
	unsigned int bits = d->operands[0].size;
	struct mp_alu alu = {0};
	uint64_t a;

	if (!mp_operand_read(p, d, &d->operands[0], &a))
		return false;
	switch (d->insn.mnemonic) {
	case ZYDIS_MNEMONIC_INC: alu = mp_alu_add(a, 1, false, bits); break;
	case ZYDIS_MNEMONIC_DEC: alu = mp_alu_sub(a, 1, false, bits); break;
	case ZYDIS_MNEMONIC_NEG: alu = mp_alu_sub(0, a, false, bits); break;
	default: alu.value = ~a;
	}
	if (d->insn.mnemonic == ZYDIS_MNEMONIC_INC || d->insn.mnemonic == ZYDIS_MNEMONIC_DEC) {
		alu.defined &= ~MP_CF;
		alu.changed &= ~MP_CF;
	}
	mp_operand_write(p, d, &d->operands[0], alu.value);
	mp_flags_write(p, &alu);
	return true;
}

static bool shift(struct mp_processor *p, const struct mp_decoded *d, enum mp_shift kind)
{
	unsigned int bits = d->operands[0].size;
	uint64_t a, count;
	struct mp_alu alu;

	if (!mp_operand_read(p, d, &d->operands[1], &count))
		return false;
	count &= bits == 64 ? 63 : 31;
	if (!mp_operand_read(p, d, &d->operands[0], &a))
		return !count; /* flags keep their values */
	alu = mp_alu_shift(kind, a, (unsigned int)count, bits);
	mp_operand_write(p, d, &d->operands[0], alu.value);
	mp_flags_write(p, &alu);
	return true;
}

/* imul of two and three operands; the last two are the factors. */
static bool multiply(struct mp_processor *p, const struct mp_decoded *d)
{
	unsigned int nr = d->insn.operand_count_visible;
	struct mp_alu alu;
	uint64_t a, b;

	if (!mp_operand_read(p, d, &d->operands[nr - 2], &a) ||
	    !mp_operand_read(p, d, &d->operands[nr - 1], &b))
		return false;
	alu = mp_alu_multiply(a, b, d->operands[0].size);
	mp_operand_write(p, d, &d->operands[0], alu.value);
	mp_flags_write(p, &alu);
	return true;
}

/* mov and movzx, and with @is_signed movsx and movsxd. */
static bool move(struct mp_processor *p, const struct mp_decoded *d, bool is_signed)
{
	uint64_t value;

	if (!mp_operand_read(p, d, &d->operands[1], &value))
		return false;
	if (is_signed)
		value = mp_sign_extend(value, d->operands[1].size);
	mp_operand_write(p, d, &d->operands[0], value);
	return true;
}

static bool address(struct mp_processor *p, const struct mp_decoded *d)
{
	uint64_t value;

	if (!mp_operand_address(p, d, &d->operands[1], &value))
		return false;
	mp_operand_write(p, d, &d->operands[0], value);
	return true;
}

static bool exchange(struct mp_processor *p, const struct mp_decoded *d)
{
	uint64_t a, b;

	if (!mp_operand_read(p, d, &d->operands[0], &a) ||
	    !mp_operand_read(p, d, &d->operands[1], &b))
		return false;
	mp_operand_write(p, d, &d->operands[0], b);
	mp_operand_write(p, d, &d->operands[1], a);
	return true;
}

/* Writes the sign-extended @from to @low, or its sign to @high. */
static bool widen(struct mp_processor *p, ZydisRegister from, unsigned int bits, ZydisRegister low,
		  ZydisRegister high)
{
	uint64_t value;

	if (!mp_register_read(p, from, &value))
		return false;
	value = mp_sign_extend(value, bits);
	mp_register_write(p, low, value);
	mp_register_write(p, high, value >> 63 ? UINT64_MAX : 0);
	return true;
}

/* A conditional move of 32 bits clears the upper half even where nothing is moved. */
static bool conditional_move(struct mp_processor *p, const struct mp_decoded *d)
{
	enum mp_truth truth = mp_condition(p, d->insn.opcode & 15);
	uint64_t value;

	if (truth == MP_UNKNOWN || !mp_operand_read(p, d, &d->operands[truth == MP_TRUE], &value))
		return false;
	mp_operand_write(p, d, &d->operands[0], value);
	return true;
}

static bool condition_set(struct mp_processor *p, const struct mp_decoded *d)
{
	enum mp_truth truth = mp_condition(p, d->insn.opcode & 15);

	if (truth == MP_UNKNOWN)
		return false;
	mp_operand_write(p, d, &d->operands[0], truth == MP_TRUE);
	return true;
}

bool mp_target_read(const struct mp_processor *p, const struct mp_decoded *d, uint64_t *target)
{
	return d->operands[0].size == 64 && !(d->insn.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) &&
	       mp_operand_read(p, d, &d->operands[0], target);
}

static bool execute(struct mp_processor *p, const struct mp_decoded *d)
{
	const ZydisRegister none = ZYDIS_REGISTER_NONE;

	if (d->insn.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return false;
	if (d->insn.meta.category == ZYDIS_CATEGORY_CMOV)
		return conditional_move(p, d);
	if (d->insn.meta.category == ZYDIS_CATEGORY_SETCC)
		return condition_set(p, d);
	switch (d->insn.mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_ENDBR64: return true;
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX: return move(p, d, false);
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD: return move(p, d, true);
	case ZYDIS_MNEMONIC_LEA: return address(p, d);
	case ZYDIS_MNEMONIC_XCHG: return exchange(p, d);
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_ADC:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_SBB:
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST: return arithmetic(p, d);
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
	case ZYDIS_MNEMONIC_NEG:
	case ZYDIS_MNEMONIC_NOT: return unary(p, d);
	case ZYDIS_MNEMONIC_SHL: return shift(p, d, MP_SHL);
	case ZYDIS_MNEMONIC_SHR: return shift(p, d, MP_SHR);
	case ZYDIS_MNEMONIC_SAR: return shift(p, d, MP_SAR);
	case ZYDIS_MNEMONIC_ROL: return shift(p, d, MP_ROL);
	case ZYDIS_MNEMONIC_ROR: return shift(p, d, MP_ROR);
	case ZYDIS_MNEMONIC_IMUL:
		return d->insn.operand_count_visible > 1 ? multiply(p, d)
							 : mp_multiply_wide(p, d, true);
	case ZYDIS_MNEMONIC_MUL: return mp_multiply_wide(p, d, false);
	case ZYDIS_MNEMONIC_DIV: return mp_divide(p, d, false);
	case ZYDIS_MNEMONIC_IDIV: return mp_divide(p, d, true);
	case ZYDIS_MNEMONIC_PUSH: return mp_push_operand(p, d);
	case ZYDIS_MNEMONIC_POP: return mp_pop_operand(p, d);
	case ZYDIS_MNEMONIC_LEAVE: return mp_leave(p, d);
	case ZYDIS_MNEMONIC_BT: return mp_bit_test(p, d);
	case ZYDIS_MNEMONIC_BSF:
	case ZYDIS_MNEMONIC_BSR:
	case ZYDIS_MNEMONIC_TZCNT: return mp_bit_find(p, d);
	case ZYDIS_MNEMONIC_POPCNT: return mp_bit_count(p, d);
	case ZYDIS_MNEMONIC_BSWAP: return mp_byte_swap(p, d);
	case ZYDIS_MNEMONIC_CBW: return widen(p, ZYDIS_REGISTER_AL, 8, ZYDIS_REGISTER_AX, none);
	case ZYDIS_MNEMONIC_CWDE: return widen(p, ZYDIS_REGISTER_AX, 16, ZYDIS_REGISTER_EAX, none);
	case ZYDIS_MNEMONIC_CDQE: return widen(p, ZYDIS_REGISTER_EAX, 32, ZYDIS_REGISTER_RAX, none);
	case ZYDIS_MNEMONIC_CWD: return widen(p, ZYDIS_REGISTER_AX, 16, none, ZYDIS_REGISTER_DX);
	case ZYDIS_MNEMONIC_CDQ: return widen(p, ZYDIS_REGISTER_EAX, 32, none, ZYDIS_REGISTER_EDX);
	case ZYDIS_MNEMONIC_CQO: return widen(p, ZYDIS_REGISTER_RAX, 64, none, ZYDIS_REGISTER_RDX);
	default: return false;
	}
}

void mp_execute(struct mp_processor *p, const struct mp_decoded *d)
{
	if (!execute(p, d))
		forget(p, d);
}
