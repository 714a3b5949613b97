// SPDX-License-Identifier: Apache-2.0
/*
 * saves - follows the stack pointer through the instructions of each block, by the unwind rows, and notes
 * which registers the instructions change.
 */
#include "editor/evidence/saves.h"

#include <stdlib.h>
#include <string.h>

#include "editor/base/grow.h"
#include "editor/evidence/saves_private.h"
#include "editor/unwind/unwind.h"
#include "libprof/insn/decoder.h"

enum { /* bytes */
	WORD = 8,
	DEPTH_MAX = 1 << 16,
};

const struct me_callee_saved me_callee_saved[ME_NR_CALLEE_SAVED] = {{3, 3},   {6, 5},	{12, 12},
								    {13, 13}, {14, 14}, {15, 15}};

uint16_t me_callee_saved_rows(uint8_t set)
{
	uint16_t rows = 0;

	for (int i = 0; i < ME_NR_CALLEE_SAVED; i++)
		if (set >> i & 1)
			rows |= (uint16_t)(1u << me_callee_saved[i].row);
	return rows;
}

int me_callee_saved_index(ZydisRegister reg)
{
	switch (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg)) {
	case ZYDIS_REGISTER_RBX: return 0;
	case ZYDIS_REGISTER_RBP: return 1;
	case ZYDIS_REGISTER_R12: return 2;
	case ZYDIS_REGISTER_R13: return 3;
	case ZYDIS_REGISTER_R14: return 4;
	case ZYDIS_REGISTER_R15: return 5;
	default: return -1;
	}
}

bool me_save_decode(const uint8_t *bytes, uint64_t avail, struct me_save_decoded *d)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(mp_decoder(), bytes, avail, &d->z, d->op));
}

static bool is_stack_pointer(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg) ==
	       ZYDIS_REGISTER_RSP;
}

uint8_t me_save_writes(const struct me_save_decoded *d)
{
	uint8_t writes = 0;

	for (int i = 0; i < d->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &d->op[i];
		int reg = op->type == ZYDIS_OPERAND_TYPE_REGISTER
				  ? me_callee_saved_index(op->reg.value)
				  : -1;

		if (reg >= 0 && op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			writes |= (uint8_t)(1u << reg);
	}
	return writes;
}

static bool writes_stack_pointer(const struct me_save_decoded *d)
{
	for (int i = 0; i < d->z.operand_count; i++)
		if (d->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    is_stack_pointer(d->op[i].reg.value) &&
		    d->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			return true;
	return false;
}

/* `add`, `sub` or `lea` of a constant to the stack pointer. Return: false: another instruction. */
static bool moves_stack_pointer(const struct me_save_decoded *d, int32_t *raises)
{
	const ZydisDecodedOperand *op = d->op;
	int64_t by;

	if (op[0].type != ZYDIS_OPERAND_TYPE_REGISTER || op[0].reg.value != ZYDIS_REGISTER_RSP)
		return false;
	switch (d->z.mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return false;
		by = op[1].imm.value.s;
		break;
	case ZYDIS_MNEMONIC_LEA:
		if (op[1].type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    op[1].mem.base != ZYDIS_REGISTER_RSP ||
		    op[1].mem.index != ZYDIS_REGISTER_NONE || d->z.address_width != 64)
			return false;
		by = op[1].mem.disp.value;
		break;
	default: return false;
	}
	if (by < -DEPTH_MAX || by > DEPTH_MAX)
		return false;
	*raises = (int32_t)(d->z.mnemonic == ZYDIS_MNEMONIC_SUB ? -by : by);
	return true;
}

/* What an instruction does to the stack. Return: false: something else. */
static bool read_effect(const struct me_save_decoded *d, struct me_save_insn *insn, bool *push)
{
	const ZydisDecodedOperand *op = &d->op[0];
	int reg = op->type == ZYDIS_OPERAND_TYPE_REGISTER ? me_callee_saved_index(op->reg.value)
							  : -1;

	*push = false;
	insn->saves = insn->restores = -1;
	insn->raises = 0;
	if (d->z.mnemonic == ZYDIS_MNEMONIC_PUSH && d->z.operand_width == 64) {
		insn->raises = -WORD;
		insn->saves = (int8_t)reg;
		*push = true;
		return true;
	}
	if (d->z.mnemonic == ZYDIS_MNEMONIC_POP && d->z.operand_width == 64 &&
	    op->type == ZYDIS_OPERAND_TYPE_REGISTER && !is_stack_pointer(op->reg.value)) {
		insn->raises = WORD;
		insn->restores = (int8_t)reg;
		return true;
	}
	if (d->z.meta.category == ZYDIS_CATEGORY_CALL || d->z.meta.category == ZYDIS_CATEGORY_RET)
		return true;
	return moves_stack_pointer(d, &insn->raises) || !writes_stack_pointer(d);
}

#define STATUS                                                                                     \
	(ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF |               \
	 ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF)

/* Does an instruction that replaces all flags, or a call or return, follow before any reads one? */
static bool flags_are_dead(const uint8_t *bytes, uint64_t avail)
{
	struct me_save_decoded d;

	for (uint64_t off = 0; off < avail; off += d.z.length) {
		if (!me_save_decode(bytes + off, avail - off, &d))
			return false;
		if (d.z.cpu_flags && d.z.cpu_flags->tested & STATUS)
			return false;
		switch (d.z.mnemonic) {
		case ZYDIS_MNEMONIC_ADD:
		case ZYDIS_MNEMONIC_SUB:
		case ZYDIS_MNEMONIC_CMP:
		case ZYDIS_MNEMONIC_TEST:
		case ZYDIS_MNEMONIC_AND:
		case ZYDIS_MNEMONIC_OR:
		case ZYDIS_MNEMONIC_XOR: return true;
		default: break;
		}
		if (d.z.meta.category == ZYDIS_CATEGORY_CALL ||
		    d.z.meta.category == ZYDIS_CATEGORY_RET)
			return true;
		if (d.z.meta.category == ZYDIS_CATEGORY_COND_BR ||
		    d.z.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
		    d.z.meta.category == ZYDIS_CATEGORY_SYSCALL)
			return false;
	}
	return false;
}

struct reader {
	const struct mp_cfg *cfg;
	const struct me_stack_rows *rows;
	struct me_kept_registers *kept;
	struct me_save_facts *facts;
	uint8_t nr_pushes[ME_NR_CALLEE_SAVED];
	uint8_t barred; /* something else names the place, or it is not always the same */
};

/* Is a register's place named by memory of @op, which counts from a stack pointer @depth below the entry's? */
static uint8_t named(const struct reader *r, const struct me_save_decoded *d, int32_t depth)
{
	uint8_t set = 0;

	for (int i = 0; i < d->z.operand_count_visible; i++) {
		const ZydisDecodedOperand *op = &d->op[i];
		int64_t from;

		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || !is_stack_pointer(op->mem.base) ||
		    op->mem.index != ZYDIS_REGISTER_NONE)
			continue;
		from = op->mem.disp.value - depth - WORD; /* from the CFA on */
		for (int k = 0; k < ME_NR_CALLEE_SAVED; k++) {
			int64_t place = -(int64_t)r->facts->place[k];

			if (place && from < place + WORD &&
			    from + (op->size ? op->size / 8 : 1) > place)
				set |= (uint8_t)(1u << k);
		}
	}
	return set;
}

/* A push behind which the row says that the register is saved there is a save. */
static bool is_save(struct reader *r, const struct me_save_insn *insn, int32_t depth)
{
	int64_t place;

	if (insn->saves < 0)
		return false;
	place = me_stack_rows_saved(r->rows, insn->vaddr + insn->len,
				    me_callee_saved[insn->saves].row);
	return place == depth + 2 * WORD &&
	       !me_stack_rows_saved(r->rows, insn->vaddr, me_callee_saved[insn->saves].row);
}

static bool is_restore(struct reader *r, const struct me_save_insn *insn, int32_t depth)
{
	return insn->restores >= 0 &&
	       me_stack_rows_saved(r->rows, insn->vaddr, me_callee_saved[insn->restores].row) ==
		       depth + WORD;
}

static bool add_insn(struct me_save_facts *facts, const struct me_save_insn *insn)
{
	if (!me_grow(&facts->insns, &facts->cap_insns, facts->nr_insns + 1, sizeof(*facts->insns)))
		return false;
	facts->insns[facts->nr_insns++] = *insn;
	return true;
}

/* Is the way by which control leaves the block understood, with nothing in the stack where it leaves the function? */
static bool leaves_plainly(const struct mp_cfg *cfg, const struct mp_block *block, int32_t depth)
{
	const uint8_t *last = mp_elf_bytes(cfg->elf, block->vaddr + block->size - block->term_len,
					   block->term_len);

	switch (block->term) {
	case MP_TERM_FALL:
	case MP_TERM_JUMP: return block->nr_edges == 1;
	case MP_TERM_COND: return block->nr_edges == 2;
	case MP_TERM_RET:
		return !depth && last &&
		       (block->term_len == 1 ? last[0] == 0xc3
					     : block->term_len == 2 && last[1] == 0xc3);
	case MP_TERM_TAIL: return !depth;
	default: return false;
	}
}

/* Return: false: out of memory. Blocks that are not understood are not plain. */
static bool read_block(struct reader *r, uint32_t block_index, struct me_save_block *out)
{
	const struct mp_block *block = &r->cfg->blocks[block_index];
	const uint8_t *bytes = mp_elf_bytes(r->cfg->elf, block->vaddr, block->size);
	int64_t depth = me_stack_rows_depth(r->rows, block->vaddr);
	struct me_save_decoded d;

	*out = (struct me_save_block){.depth_in = (int32_t)depth, .first_insn = r->facts->nr_insns};
	if (!bytes || depth < 0 || depth > DEPTH_MAX)
		return true;
	out->plain = true;
	for (uint64_t off = 0; off < block->size; off += d.z.length) {
		struct me_save_insn insn = {.vaddr = block->vaddr + off};
		uint8_t writes;
		bool push;

		/* The rows of code that cannot be decoded are of no use. */
		if (!me_save_decode(bytes + off, block->size - off, &d)) {
			r->barred = UINT8_MAX;
			break;
		}
		insn.len = d.z.length;
		if (me_stack_rows_depth(r->rows, insn.vaddr) != depth ||
		    !read_effect(&d, &insn, &push)) {
			out->plain = false;
			break;
		}
		writes = me_save_writes(&d);
		if (is_save(r, &insn, (int32_t)depth)) {
			uint8_t *nr = &r->nr_pushes[insn.saves];

			*nr = (uint8_t)(*nr < 2 ? *nr + 1 : 2);
			r->facts->place[insn.saves] = (int32_t)depth + 2 * WORD;
			out->saves |= (uint8_t)(1u << insn.saves);
		} else {
			insn.saves = -1;
		}
		if (is_restore(r, &insn, (int32_t)depth)) {
			out->restores |= (uint8_t)(1u << insn.restores);
			writes = 0;
		} else {
			insn.restores = -1;
		}
		out->writes |= writes;
		depth -= insn.raises;
		if (depth < 0 || depth > DEPTH_MAX) {
			out->plain = false;
			break;
		}
		if (insn.saves < 0 && insn.restores < 0 &&
		    (!insn.raises || push || writes || d.z.mnemonic == ZYDIS_MNEMONIC_POP))
			continue;
		insn.flags_used =
			insn.saves < 0 && insn.restores < 0 && d.z.mnemonic != ZYDIS_MNEMONIC_LEA &&
			!flags_are_dead(bytes + off + insn.len, block->size - off - insn.len);
		if (!add_insn(r->facts, &insn))
			return false;
	}
	out->nr_insns = r->facts->nr_insns - out->first_insn;
	out->depth_out = (int32_t)depth;
	out->plain = out->plain && leaves_plainly(r->cfg, block, (int32_t)depth);
	return true;
}

/* Looks for other uses of the places. Blocks must have been read. */
static void bar_named(struct reader *r, const struct mp_func *f)
{
	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		const struct mp_block *block = &r->cfg->blocks[b];
		const uint8_t *bytes = mp_elf_bytes(r->cfg->elf, block->vaddr, block->size);
		struct me_save_decoded d;

		if (block->flags & (MP_BLOCK_PADDING | MP_BLOCK_COLD_PART))
			continue;
		for (uint64_t off = 0; off < block->size; off += d.z.length) {
			int64_t depth = me_stack_rows_depth(r->rows, block->vaddr + off);

			if (!bytes || depth < 0 ||
			    !me_save_decode(bytes + off, block->size - off, &d)) {
				r->barred = UINT8_MAX;
				return;
			}
			r->barred |= named(r, &d, (int32_t)depth);
		}
	}
}

/* Registers that callees of plain blocks may change bar them for these blocks. */
static void add_callees(struct reader *r, const struct mp_func *f)
{
	const struct mp_cfg *cfg = r->cfg;
	uint32_t end = f->first_block + f->nr_blocks;

	for (uint32_t c = mp_cfg_call_from(cfg, 0, cfg->nr_calls, f->first_block);
	     c < cfg->nr_calls && cfg->calls[c].block < end; c++) {
		struct me_save_block *b = &r->facts->blocks[cfg->calls[c].block - f->first_block];

		if (b->plain && !cfg->calls[c].tail)
			b->writes |= me_kept_registers_changed(r->kept,
							       mp_call_target(cfg, &cfg->calls[c]));
	}
}

bool me_saves_find(const struct mp_cfg *cfg, uint32_t func, struct me_kept_registers *kept,
		   struct me_save_facts *out)
{
	const struct mp_func *f = &cfg->funcs[func];
	struct reader r = {.cfg = cfg, .kept = kept, .facts = out};
	struct me_stack_rows *rows;
	bool ok = true;

	*out = (struct me_save_facts){0};
	if (f->problem || !f->nr_blocks ||
	    f->flags & (MP_FUNC_BARE | MP_FUNC_SYSCALL | MP_FUNC_LABELS | MP_FUNC_IFUNC))
		return false;
	rows = me_stack_rows_of_entry(cfg, func);
	out->blocks = calloc(f->nr_blocks, sizeof(*out->blocks));
	if (!rows || !out->blocks || me_stack_rows_depth(rows, f->vaddr) != 0) {
		me_stack_rows_free(rows);
		return false;
	}
	r.rows = rows;
	for (uint32_t b = 0; b < f->nr_blocks && ok; b++)
		if (!(cfg->blocks[f->first_block + b].flags & MP_BLOCK_PADDING))
			ok = read_block(&r, f->first_block + b, &out->blocks[b]);
	for (int i = 0; i < ME_NR_CALLEE_SAVED; i++)
		out->saved |= (uint8_t)((r.nr_pushes[i] == 1) << i);
	if (ok && out->saved) {
		bar_named(&r, f);
		out->saved &= (uint8_t)~r.barred;
	}
	if (ok && out->saved)
		add_callees(&r, f);
	me_stack_rows_free(rows);
	return ok && out->saved;
}

void me_saves_fini(struct me_save_facts *facts)
{
	free(facts->blocks);
	free(facts->insns);
	*facts = (struct me_save_facts){0};
}
