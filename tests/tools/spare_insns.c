// SPDX-License-Identifier: Apache-2.0
/*
 * spare_insns - says how many executed instructions load a constant from read-only data, and how many
 * change nothing. For scripts/bench/bench-small-rewrites.
 *
 *	spare-insns FILE EDGES
 *
 * EDGES: exact counts of FILE (tests/plugin/branches.c, edges=). Counts instructions with an operand in
 * memory that they only read, at an address that is known, in a section that is neither writable nor
 * relocated. Prints lines `NAME COUNT`, executions:
 *  instructions	all
 *  immediate		an immediate could stand there, in no more bytes
 *  longer		one could, in more bytes
 *  vector		the constant goes to a vector or x87 register
 *  other		the instruction has no form with an immediate there
 *  nops		those that change nothing; endbr64 is none of them
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libprof/insn/decoder.h"
#include "libprof/insn/insn.h"
#include "tests/support/counted_tool.h"

enum kind {
	KIND_NONE, /* no load of a constant */
	KIND_IMMEDIATE,
	KIND_LONGER,
	KIND_VECTOR,
	KIND_OTHER,
	KIND_NOP,
	NR_KINDS
};

static const char *const names[NR_KINDS] = {NULL, "immediate", "longer", "vector", "other", "nops"};

struct full {
	ZydisDecodedInstruction z;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

/* The bytes at @vaddr, if no run changes them; NULL: one may. */
static const uint8_t *constant_at(const struct mp_elf *elf, uint64_t vaddr, uint64_t size)
{
	const struct mp_section *section = mp_elf_section_at(elf, vaddr);

	if (!section || section->type != SHT_PROGBITS || section->flags & SHF_WRITE ||
	    section->vaddr + section->size - vaddr < size)
		return NULL;
	for (uint64_t at = vaddr < 7 ? 0 : vaddr - 7; at < vaddr + size; at++)
		if (mp_elf_dyn_reloc_at(elf, at))
			return NULL;
	return mp_elf_bytes(elf, vaddr, size);
}

static bool is_vector(const ZydisDecodedOperand *op)
{
	switch (ZydisRegisterGetClass(op->reg.value)) {
	case ZYDIS_REGCLASS_GPR8:
	case ZYDIS_REGCLASS_GPR16:
	case ZYDIS_REGCLASS_GPR32:
	case ZYDIS_REGCLASS_GPR64:
	case ZYDIS_REGCLASS_FLAGS: return false;
	default: return true;
	}
}

/* Bytes of the form with an immediate; 0: there is none. @value is extended to 64 bits by its sign. */
static unsigned int immediate_length(const struct full *f, int64_t value)
{
	bool fits = value == (int32_t)value, wide = f->op[0].size == 64;
	unsigned int rex = wide || (f->z.attributes & ZYDIS_ATTRIB_HAS_REX) ? 1 : 0;

	switch (f->z.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		if (!wide || value == (int64_t)(uint32_t)value)
			return 5 + (f->z.attributes & ZYDIS_ATTRIB_HAS_REX ? 1 : 0);
		return fits ? 7 : 10;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_ADC:
	case ZYDIS_MNEMONIC_SBB:
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_IMUL: return fits || !wide ? 6 + rex : 0;
	case ZYDIS_MNEMONIC_PUSH: return fits ? 5 : 0;
	default: return 0;
	}
}

static int64_t value_of(const struct full *f, const uint8_t *bytes, unsigned int size)
{
	uint64_t value = 0;

	memcpy(&value, bytes, size);
	if (f->z.mnemonic == ZYDIS_MNEMONIC_MOVZX || size == 8)
		return (int64_t)value;
	return (int64_t)(value << (64 - 8 * size)) >> (64 - 8 * size);
}

static enum kind kind_of(const struct mp_elf *elf, const struct mp_insn *insn, const struct full *f)
{
	const ZydisDecodedOperand *memory = NULL;
	bool vector = false, register_first = false;
	unsigned int size, length;
	const uint8_t *bytes;

	for (int i = 0; i < f->z.operand_count_visible; i++) {
		const ZydisDecodedOperand *op = &f->op[i];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.type == ZYDIS_MEMOP_TYPE_MEM)
			memory = op;
		else if (op->type == ZYDIS_OPERAND_TYPE_REGISTER)
			vector |= is_vector(op);
		register_first |= i == 0 && op->type == ZYDIS_OPERAND_TYPE_REGISTER;
	}
	if (!memory || memory->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
		return KIND_NONE;
	size = memory->size / 8u;
	bytes = constant_at(elf, insn->target, size);
	if (!bytes)
		return KIND_NONE;
	if (vector || f->z.meta.category == ZYDIS_CATEGORY_X87_ALU)
		return KIND_VECTOR;
	if (!size || size > 8 ||
	    (!register_first && f->z.mnemonic != ZYDIS_MNEMONIC_TEST &&
	     f->z.mnemonic != ZYDIS_MNEMONIC_PUSH))
		return KIND_OTHER;
	length = immediate_length(f, value_of(f, bytes, size));
	if (!length)
		return KIND_OTHER;
	return length <= insn->len ? KIND_IMMEDIATE : KIND_LONGER;
}

static void add_run(const struct mp_elf *elf, const struct exact_run *run, uint64_t *counts)
{
	const uint8_t *bytes = mp_elf_bytes(elf, run->start, run->end - run->start);
	struct mp_insn insn;
	struct full f;

	for (uint64_t at = run->start; bytes && at < run->end; at += insn.len) {
		const uint8_t *b = bytes + (at - run->start);

		if (mp_insn_decode(b, run->end - at, at, &insn))
			return;
		if (insn.nop)
			counts[KIND_NOP] += run->count;
		else if (insn.rip_relative && insn.kind == MP_INSN_OTHER &&
			 ZYAN_SUCCESS(
				 ZydisDecoderDecodeFull(mp_decoder(), b, insn.len, &f.z, f.op)))
			counts[kind_of(elf, &insn, &f)] += run->count;
	}
}

static int print(const struct mp_elf *elf, const struct exact_counts *counts, struct mp_err *err)
{
	uint64_t of[NR_KINDS] = {0};

	(void)err;
	for (size_t i = 0; i < counts->nr_runs; i++)
		add_run(elf, &counts->runs[i], of);
	printf("instructions %" PRIu64 "\n", counts->nr_insns);
	for (int k = KIND_IMMEDIATE; k < NR_KINDS; k++)
		printf("%s %" PRIu64 "\n", names[k], of[k]);
	return 0;
}

int main(int argc, char **argv)
{
	return counted_tool(argc, argv, "spare-insns", MP_ELF_RELOCS, print);
}
