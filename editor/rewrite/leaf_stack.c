// SPDX-License-Identifier: Apache-2.0
/*
 * leaf_stack - functions that use the stack, and may stand in place of a call all the same. Called by leaf.
 *
 * Follows how far the stack pointer is below its value at the entry, its depth, through all blocks. At each
 * instruction the depth must be known, and the unwind row must say the same. What an instruction does with
 * the stack pointer must come from a short list; everything else is refused. No instruction may name the
 * return address, since there is none in place of a call.
 */
#include <stdlib.h>

#include "editor/rewrite/leaf_private.h"
#include "editor/unwind/unwind.h"

enum { /* bytes */
	WORD = 8,
	RED_ZONE = 128,
	DEPTH_MAX = 1 << 16,
};

#define NOT_KNOWN (-1)

struct stack {
	int64_t depth;
	bool needs_addresses; /* an instruction depends on the stack pointer's value */
	bool below;	      /* an instruction names memory below the stack pointer */
};

static bool is_register(const ZydisDecodedOperand *op, ZydisRegister reg)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->reg.value == reg;
}

/* A general register of 8 bytes that is neither stack pointer nor, perhaps, frame pointer. */
static bool is_other_register(const ZydisDecodedOperand *op, bool frame_pointer)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       ZydisRegisterGetClass(op->reg.value) == ZYDIS_REGCLASS_GPR64 &&
	       op->reg.value != ZYDIS_REGISTER_RSP &&
	       (frame_pointer || op->reg.value != ZYDIS_REGISTER_RBP);
}

/* Memory by the stack pointer. */
static bool is_stack_memory(const struct me_leaf_insn *f, const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && f->z.address_width == 64 &&
	       op->mem.base == ZYDIS_REGISTER_RSP && op->mem.segment == ZYDIS_REGISTER_SS;
}

/* An element of an array: by C's rules, its address never reaches the return address. */
static bool has_index(const ZydisDecodedOperand *op)
{
	return op->mem.index != ZYDIS_REGISTER_NONE;
}

static bool names_stack(const ZydisDecodedOperand *op)
{
	if (op->type == ZYDIS_OPERAND_TYPE_REGISTER)
		return me_leaf_is_stack_pointer(op->reg.value);
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       (me_leaf_is_stack_pointer(op->mem.base) || me_leaf_is_stack_pointer(op->mem.index));
}

/* Lowers the stack pointer by @by bytes. Return: false: above the return address, or far below it. */
static bool lower(struct stack *s, int64_t by)
{
	if (by < -DEPTH_MAX || by > DEPTH_MAX)
		return false;
	s->depth += by;
	return s->depth >= 0 && s->depth <= DEPTH_MAX;
}

/* Do bytes [@from, @from + @size) from the stack pointer on hold nothing of the return address? */
static bool is_clear(struct stack *s, int64_t from, int64_t size)
{
	if (size <= 0 || from < -RED_ZONE || from > DEPTH_MAX)
		return false;
	s->below |= from < 0;
	if (from + size <= s->depth)
		return true;
	/* An argument */
	s->needs_addresses = true;
	return from >= s->depth + WORD;
}

static bool step_push(const struct me_leaf_insn *f, struct stack *s)
{
	const ZydisDecodedOperand *op = &f->op[0];

	return f->z.operand_width == 64 &&
	       (is_other_register(op, true) || op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) &&
	       lower(s, WORD);
}

static bool step_pop(const struct me_leaf_insn *f, struct stack *s)
{
	return f->z.operand_width == 64 && is_other_register(&f->op[0], true) && lower(s, -WORD);
}

/* `add`, `sub`. Their flags depend on the stack pointer. */
static bool step_sum(const struct me_leaf_insn *f, struct stack *s)
{
	int64_t by = f->op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? f->op[1].imm.value.s : 0;

	s->needs_addresses = true;
	if (f->op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || by < -DEPTH_MAX || by > DEPTH_MAX)
		return false;
	return lower(s, f->z.mnemonic == ZYDIS_MNEMONIC_SUB ? by : -by);
}

/*
 * The register gets the address @from bytes above the stack pointer: of a variable, or of an argument. A frame pointer
 * is refused: what follows frame pointers expects a return address behind each.
 */
static bool step_address(const struct me_leaf_insn *f, struct stack *s, int64_t from)
{
	s->needs_addresses = true;
	return is_other_register(&f->op[0], false) && is_clear(s, from, 1);
}

static bool step_element(const struct me_leaf_insn *f, struct stack *s)
{
	s->needs_addresses = true;
	return is_other_register(&f->op[0], false);
}

static bool step_lea(const struct me_leaf_insn *f, struct stack *s)
{
	if (!is_stack_memory(f, &f->op[1]))
		return false;
	if (has_index(&f->op[1]))
		return step_element(f, s);
	if (is_register(&f->op[0], ZYDIS_REGISTER_RSP))
		return f->op[1].mem.disp.value <= DEPTH_MAX &&
		       f->op[1].mem.disp.value >= -DEPTH_MAX && lower(s, -f->op[1].mem.disp.value);
	return step_address(f, s, f->op[1].mem.disp.value);
}

/* Any other instruction: it may name memory by the stack pointer. */
static bool step_memory(const struct me_leaf_insn *f, struct stack *s)
{
	bool bit = f->z.meta.category == ZYDIS_CATEGORY_BITBYTE;

	for (int i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];

		if (!names_stack(op))
			continue;
		/* A bit's number may be larger than the operand. */
		if (!is_stack_memory(f, op) || op->mem.type != ZYDIS_MEMOP_TYPE_MEM ||
		    (bit && f->op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE))
			return false;
		if (!has_index(op) && !is_clear(s, op->mem.disp.value, op->size / 8))
			return false;
		if (has_index(op) || op->size > 8 * WORD) /* It may have to be aligned. */
			s->needs_addresses = true;
	}
	return true;
}

static bool step(const struct me_leaf_insn *f, struct stack *s)
{
	bool target = is_register(&f->op[0], ZYDIS_REGISTER_RSP);

	switch (f->z.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH: return step_push(f, s);
	case ZYDIS_MNEMONIC_POP: return step_pop(f, s);
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (target)
			return step_sum(f, s);
		break;
	case ZYDIS_MNEMONIC_LEA:
		if (names_stack(&f->op[0]) || names_stack(&f->op[1]))
			return step_lea(f, s);
		break;
	case ZYDIS_MNEMONIC_MOV:
		if (is_register(&f->op[1], ZYDIS_REGISTER_RSP))
			return step_address(f, s, 0);
		break;
	default: break;
	}
	return me_leaf_is_known(&f->z) && step_memory(f, s);
}

/*
 * Does the function called at @at find the stack pointer as it expects it? At entries it is 8 bytes above a multiple of
 * 16, and at calls such a multiple. What is called with another one is no compiler's function: `call __fentry__` at
 * the entry looks for the caller's return address. A function that calls itself stays apart.
 */
static bool may_call(const struct mp_cfg *cfg, const struct me_leaf *leaf,
		     const struct mp_insn *insn, const struct me_leaf_insn *f, struct stack *s)
{
	s->needs_addresses = true;
	if (s->depth % (2 * WORD) != WORD)
		return false;
	if (insn->kind == MP_INSN_CALL)
		return insn->disp_size == 4 && insn->target != cfg->funcs[leaf->func].vaddr;
	return f->z.meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR && !names_stack(&f->op[0]);
}

/* Follows the depth through part @i. Return: false: something is not understood. */
static bool follow_part(const struct mp_cfg *cfg, struct me_leaf *leaf,
			const struct me_stack_rows *rows, uint8_t i, struct stack *s)
{
	const struct me_leaf_part *part = &leaf->parts[i];
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, part->vaddr, part->size);
	struct mp_insn insn;
	struct me_leaf_insn f;

	for (uint32_t off = 0; off < part->size; off += insn.len) {
		uint64_t at = part->vaddr + off;
		bool simple;

		if (!bytes || mp_insn_decode(bytes + off, part->size - off, at, &insn) ||
		    insn.endbr64)
			return false;
		simple = me_leaf_is_simple(bytes + off, &insn);
		if ((!simple && !me_leaf_decode(bytes + off, part->size - off, &f)) ||
		    me_stack_rows_depth(rows, at) != s->depth)
			return false;
		if (insn.kind == MP_INSN_CALL || insn.kind == MP_INSN_ICALL) {
			if (!may_call(cfg, leaf, &insn, &f, s))
				return false;
			leaf->calls = true;
		} else if (!simple && (insn.kind != MP_INSN_OTHER || !step(&f, s))) {
			return false;
		}
		if (insn.rip_relative && ((!simple && f.z.address_width != 64) ||
					  me_leaf_is_own(cfg, leaf->func, insn.target)))
			return false;
	}
	return part->stops || me_stack_rows_depth(rows, part->vaddr + part->size) == s->depth;
}

/* Control comes to part @to with the depth @depth. Return: false: with another one from elsewhere. */
static bool arrive(int64_t *depths, uint8_t to, int64_t depth, bool *again)
{
	if (depths[to] == NOT_KNOWN) {
		depths[to] = depth;
		*again = true;
	}
	return depths[to] == depth;
}

static bool follow(const struct mp_cfg *cfg, struct me_leaf *leaf, const struct me_stack_rows *rows)
{
	int64_t depths[ME_LEAF_PARTS_MAX + 1];
	bool done[ME_LEAF_PARTS_MAX] = {false}, again = true;
	struct stack s = {0};

	for (uint8_t i = 1; i <= leaf->nr_parts; i++)
		depths[i] = NOT_KNOWN;
	depths[0] = 0;
	while (again) {
		again = false;
		for (uint8_t i = 0; i < leaf->nr_parts; i++) {
			if (done[i] || depths[i] == NOT_KNOWN)
				continue;
			done[i] = true;
			s.depth = depths[i];
			if (!follow_part(cfg, leaf, rows, i, &s))
				return false;
			if (!leaf->parts[i].stops &&
			    (!arrive(depths, leaf->parts[i].next, s.depth, &again) ||
			     !arrive(depths, leaf->parts[i].taken, s.depth, &again)))
				return false;
		}
	}
	/* The number of parts stands for what lies behind the call. */
	if (depths[leaf->nr_parts] != 0)
		return false;
	/* A function that it jumps to may use values that it has left below the stack pointer. */
	leaf->lowers = s.needs_addresses || (s.below && leaf->calls);
	leaf->frame = true;
	return true;
}

int me_leaf_find_stack(const struct mp_cfg *cfg, struct me_leaf *leaf)
{
	struct me_stack_rows *rows;
	int rc = me_stack_rows_new(cfg, leaf->func, &rows);

	if (!rc)
		rc = rows && follow(cfg, leaf, rows);
	me_stack_rows_free(rows);
	return rc;
}
