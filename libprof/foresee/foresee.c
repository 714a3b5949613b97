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

/* Where control goes from an instruction. */
enum next {
	NEXT_INSN,
	NEXT_JUMP,
	NEXT_BRANCH,
	NEXT_CALL,
	NEXT_RETURN,
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

static bool is_near_return(const ZydisDecodedInstruction *insn)
{
	return insn->mnemonic == ZYDIS_MNEMONIC_RET && (insn->opcode & 0xfe) == 0xc2 &&
	       !(insn->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE);
}

static enum next next_of(const struct mp_decoded *d)
{
	if (is_unusual(&d->insn))
		return NEXT_UNKNOWN;
	switch (d->insn.meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		return is_relative(d) && is_jcc(&d->insn) ? NEXT_BRANCH : NEXT_UNKNOWN;
	case ZYDIS_CATEGORY_UNCOND_BR:
		return d->insn.mnemonic == ZYDIS_MNEMONIC_JMP ? NEXT_JUMP : NEXT_UNKNOWN;
	case ZYDIS_CATEGORY_CALL: return NEXT_CALL;
	case ZYDIS_CATEGORY_RET: return is_near_return(&d->insn) ? NEXT_RETURN : NEXT_UNKNOWN;
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

static void begin(struct mp_processor *p, const struct mp_foresee_code *code,
		  const struct mp_foresee_sample *sample)
{
	*p = (struct mp_processor){
		.known = (uint16_t)sample->known,
		.memory = {.file = code, .bias = sample->bias},
	};
	memcpy(p->values, sample->registers, sizeof(p->values));
	if (sample->known >> MP_FORESEE_FLAGS & 1) {
		p->flags = (uint32_t)sample->registers[MP_FORESEE_FLAGS] & MP_STATUS_FLAGS;
		p->flags_known = MP_STATUS_FLAGS;
	}
	if (sample->known >> MP_FORESEE_RSP & 1) {
		p->memory.stack = sample->stack;
		p->memory.stack_address = sample->registers[MP_FORESEE_RSP];
		p->memory.stack_size = sample->nr_stack * sizeof(*sample->stack);
	}
}

/* Where the call or jump @d leads, at run time. Return: false: not known. */
static bool target_of(const struct mp_processor *p, const struct mp_decoded *d, uint64_t *target)
{
	if (d->operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return mp_target_read(p, d, target);
	*target = p->behind + d->operands[0].imm.value.u;
	return is_relative(d);
}

/* `ret N' takes N bytes of arguments off the stack. */
static bool come_back(struct mp_processor *p, const struct mp_decoded *d, uint64_t *target)
{
	uint64_t rsp;

	if (!mp_pop(p, target) || !mp_register_read(p, ZYDIS_REGISTER_RSP, &rsp))
		return false;
	if (d->operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		mp_register_write(p, ZYDIS_REGISTER_RSP, rsp + d->operands[0].imm.value.u);
	return true;
}

/* Executes @d, and finds the run-time address of the next instruction. Return: false: not known. */
static bool step(struct mp_processor *p, const struct mp_decoded *d, uint64_t *next,
		 enum mp_truth *branch)
{
	*branch = MP_UNKNOWN;
	*next = p->behind;
	switch (next_of(d)) {
	case NEXT_UNKNOWN: return false;
	case NEXT_JUMP: return target_of(p, d, next);
	case NEXT_RETURN: return come_back(p, d, next);
	case NEXT_INSN: mp_execute(p, d); return true;
	case NEXT_CALL:
		if (!target_of(p, d, next))
			return false;
		mp_push(p, &p->behind);
		return true;
	case NEXT_BRANCH:
		*branch = mp_condition(p, d->insn.opcode & 15);
		if (*branch == MP_TRUE)
			*next += d->operands[0].imm.value.u;
		return *branch != MP_UNKNOWN;
	}
	return false;
}

uint32_t mp_foresee(const struct mp_foresee_code *code, const struct mp_foresee_sample *sample,
		    struct mp_foreseen_way ways[MP_FORESEE_WAYS])
{
	uint64_t vaddr = sample->vaddr, next;
	struct mp_processor p;
	struct mp_decoded d;
	enum mp_truth branch;
	uint32_t nr = 0;

	begin(&p, code, sample);
	for (unsigned int i = 0; i < INSNS_MAX && decode(code, vaddr, &d); i++) {
		p.behind = vaddr - sample->bias + d.insn.length;
		if (!step(&p, &d, &next, &branch))
			break;
		if (branch != MP_UNKNOWN) {
			ways[nr++] = (struct mp_foreseen_way){vaddr, branch == MP_TRUE};
			if (nr == MP_FORESEE_WAYS)
				break;
		}
		vaddr = next + sample->bias;
	}
	return nr;
}
