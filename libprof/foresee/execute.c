// SPDX-License-Identifier: Apache-2.0
/*
 * execute - executes plain integer instructions. Called by foresee.
 *
 * Functions here return false, and then have changed nothing, where the result does not follow from what is known. The
 * registers and flags that the instruction writes then become unknown.
 */
#include "libprof/foresee/execute_private.h"

#include "libprof/foresee/alu_private.h"

/* @op as a zero-extended value of its size; an immediate has its sign in all 64 bits. */
static bool operand_read(const struct mp_processor *p, const ZydisDecodedOperand *op,
			 uint64_t *value)
{
	if (op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		*value = op->imm.value.u;
		return true;
	}
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && mp_register_read(p, op->reg.value, value);
}

/* Memory is not kept. */
static void operand_write(struct mp_processor *p, const ZydisDecodedOperand *op, uint64_t value)
{
	if (op->type == ZYDIS_OPERAND_TYPE_REGISTER)
		mp_register_write(p, op->reg.value, value);
}

static void flags_write(struct mp_processor *p, const struct mp_alu *alu)
{
	p->flags = (p->flags & ~alu->changed) | (alu->flags & alu->defined);
	p->flags_known = (p->flags_known & ~alu->changed) | alu->defined;
}

static void forget(struct mp_processor *p, const struct mp_decoded *d)
{
	const ZydisAccessedFlags *flags = d->insn.cpu_flags;

	for (unsigned int i = 0; i < d->insn.operand_count; i++)
		if (d->operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    d->operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			mp_register_forget(p, d->operands[i].reg.value);
	if (flags)
		p->flags_known &=
			~(flags->modified | flags->set_0 | flags->set_1 | flags->undefined);
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

	if (!is_idiom_of_zero(d) &&
	    (!operand_read(p, &d->operands[0], &a) || !operand_read(p, &d->operands[1], &b)))
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
		operand_write(p, &d->operands[0], alu.value);
	flags_write(p, &alu);
	return true;
}

/* inc dec neg not */
static bool unary(struct mp_processor *p, const struct mp_decoded *d)
{
	unsigned int bits = d->operands[0].size;
	struct mp_alu alu = {0};
	uint64_t a;

	if (!operand_read(p, &d->operands[0], &a))
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
	operand_write(p, &d->operands[0], alu.value);
	flags_write(p, &alu);
	return true;
}

static bool shift(struct mp_processor *p, const struct mp_decoded *d, enum mp_shift kind)
{
	unsigned int bits = d->operands[0].size;
	uint64_t a, count;
	struct mp_alu alu;

	if (!operand_read(p, &d->operands[1], &count))
		return false;
	count &= bits == 64 ? 63 : 31;
	if (!operand_read(p, &d->operands[0], &a))
		return !count; /* flags keep their values */
	alu = mp_alu_shift(kind, a, (unsigned int)count, bits);
	operand_write(p, &d->operands[0], alu.value);
	flags_write(p, &alu);
	return true;
}

/* imul of two and three operands; the last two are the factors. */
static bool multiply(struct mp_processor *p, const struct mp_decoded *d)
{
	unsigned int nr = d->insn.operand_count_visible;
	struct mp_alu alu;
	uint64_t a, b;

	if (nr < 2 || !operand_read(p, &d->operands[nr - 2], &a) ||
	    !operand_read(p, &d->operands[nr - 1], &b))
		return false;
	alu = mp_alu_multiply(a, b, d->operands[0].size);
	operand_write(p, &d->operands[0], alu.value);
	flags_write(p, &alu);
	return true;
}

/* bt: only carry gets a value; the zero flag keeps its own. */
static bool bit_test(struct mp_processor *p, const struct mp_decoded *d)
{
	struct mp_alu alu = {.defined = MP_CF, .changed = MP_STATUS_FLAGS & ~MP_ZF};
	uint64_t a, n;

	if (!operand_read(p, &d->operands[0], &a) || !operand_read(p, &d->operands[1], &n))
		return false;
	alu.flags = a >> (n % d->operands[0].size) & 1 ? MP_CF : 0;
	flags_write(p, &alu);
	return true;
}

/* mov and movzx, and with @is_signed movsx and movsxd. */
static bool move(struct mp_processor *p, const struct mp_decoded *d, bool is_signed)
{
	uint64_t value;

	if (!operand_read(p, &d->operands[1], &value))
		return false;
	if (is_signed)
		value = mp_sign_extend(value, d->operands[1].size);
	operand_write(p, &d->operands[0], value);
	return true;
}

/* Addresses of the code itself are not known: the code may run elsewhere than it was linked. */
static bool address(struct mp_processor *p, const struct mp_decoded *d)
{
	const ZydisDecodedOperandMem *mem = &d->operands[1].mem;
	uint64_t base = 0, index = 0;

	/* Without a base, some versions of Zydis name r13 where the prefix has the bit of a base. No compiler sets it. */
	if (d->insn.raw.modrm.rm == 4 && !d->insn.raw.modrm.mod && d->insn.raw.sib.base == 5 &&
	    d->insn.raw.rex.B)
		return false;
	if ((mem->base != ZYDIS_REGISTER_NONE && !mp_register_read(p, mem->base, &base)) ||
	    (mem->index != ZYDIS_REGISTER_NONE && !mp_register_read(p, mem->index, &index)))
		return false;
	base += index * mem->scale + (uint64_t)mem->disp.value;
	operand_write(p, &d->operands[0], base & mp_low_bits(d->insn.address_width));
	return true;
}

static bool exchange(struct mp_processor *p, const struct mp_decoded *d)
{
	uint64_t a, b;

	if (!operand_read(p, &d->operands[0], &a) || !operand_read(p, &d->operands[1], &b))
		return false;
	operand_write(p, &d->operands[0], b);
	operand_write(p, &d->operands[1], a);
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

	if (truth == MP_UNKNOWN || !operand_read(p, &d->operands[truth == MP_TRUE], &value))
		return false;
	operand_write(p, &d->operands[0], value);
	return true;
}

static bool condition_set(struct mp_processor *p, const struct mp_decoded *d)
{
	enum mp_truth truth = mp_condition(p, d->insn.opcode & 15);

	if (truth == MP_UNKNOWN)
		return false;
	operand_write(p, &d->operands[0], truth == MP_TRUE);
	return true;
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
	case ZYDIS_MNEMONIC_IMUL: return multiply(p, d);
	case ZYDIS_MNEMONIC_BT: return bit_test(p, d);
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
