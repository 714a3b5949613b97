// SPDX-License-Identifier: Apache-2.0
/*
 * verify_unwind_saves - proves that copies in which registers are not saved do what the original does, and that
 * unwinders find these registers. Called by verify_unwind.
 *
 * The places of registers in the stack come from the original's rows: where its push stands, the row says how
 * far the CFA is, and the row behind it where the register is saved. From there on, each instruction's effect on the
 * stack pointer must be the one that the rows say, and no instruction changes the register. So the register still
 * has the caller's value where the original reads that value back, and where code stores it to its place.
 */
#include <errno.h>

#include "editor/verify/verify_unwind_private.h"

enum {
	STACK_POINTER = 7, /* in unwind rows */
	WORD = 8,
	ENTRY_CFA =
		8, /* distance of the CFA where nothing but the return address is in the stack */
};

/* The piece that is looked at. */
struct early {
	struct vf_unwinding *x;
	const struct mp_map_piece *p;
	uint8_t unsaved;	  /* now */
	const struct vf_row *row; /* the original's */
	int64_t cfa;		  /* its distance from the stack pointer */
};

static int refuse(const struct early *e, uint64_t at, const char *what)
{
	return vf_refuse(e->x->vf, at, "where registers are not saved: %s", what);
}

/* Finds the row at @at of the original. */
static int set_row(struct early *e, uint64_t at)
{
	e->row = vf_rows_at(&e->x->old_rows, at);
	if (!e->row || e->row->cfa.kind != VF_RULE_OFFSET || e->row->cfa_reg != STACK_POINTER)
		return refuse(e, at, "the row does not find the CFA by the stack pointer");
	e->cfa = e->row->cfa.off;
	return 0;
}

/* Return: how many bytes below the CFA register @i is saved by @row; 0: it is not; -1: in another way. */
static int64_t place_of(const struct vf_row *row, int i)
{
	const struct vf_rule *rule = &row->reg[vf_saved_row(i)];

	if (rule->kind == VF_RULE_SAME)
		return 0;
	return rule->kind == VF_RULE_OFFSET && rule->off < 0 ? -rule->off : -1;
}

/* All of [@from, @to) of the copy has the original's row, in which unsaved registers have no rule. */
static int compare(const struct early *e, uint64_t from, uint64_t to)
{
	struct vf_row want = *e->row;

	for (int i = 0; i < VF_NR_SAVED; i++) {
		if (!(e->unsaved >> i & 1))
			continue;
		if (place_of(e->row, i) < 0)
			return refuse(e, from, "the row finds a register in another way");
		want.reg[vf_saved_row(i)] = (struct vf_rule){.kind = VF_RULE_SAME};
	}
	if (vf_row_reads_pc(e->row))
		return refuse(e, from, "the row depends on the program counter");
	while (from < to) {
		const struct vf_row *now = vf_rows_at(&e->x->new_rows, from);

		e->x->vf->result->report.nr_unwind_rows++;
		if (!now || !vf_row_equal(&want, now))
			return refuse(e, from, "another unwind row");
		from = vf_end_of_row(&e->x->new_rows, now);
	}
	return 0;
}

/* ---- code that saves registers ---- */

static int check_code(struct early *e)
{
	const struct mp_map_piece *p = e->p;
	const uint8_t *b = mp_elf_bytes(e->x->vf->n, p->new_vaddr, p->new_size);
	uint8_t left = e->unsaved;
	uint64_t off = 0, len;
	int64_t disp;
	int reg, ret = set_row(e, p->old_vaddr);

	while (!ret && b && (len = vf_read_save(b + off, p->new_size - off, &reg, &disp)) > 0) {
		int64_t place = place_of(e->row, reg);

		if (!(left >> reg & 1) || place < 2 * WORD || disp < 0 || disp != e->cfa - place)
			return refuse(e, p->new_vaddr + off,
				      "a register is saved to another place");
		left &= (uint8_t) ~(1u << reg);
		off += len;
	}
	if (!ret && left)
		ret = refuse(e, p->new_vaddr, "not all of them are saved");
	return ret ? ret : compare(e, p->new_vaddr, vf_padding_end(e->x->vf, p));
}

/* ---- instructions ---- */

static bool is_stack_pointer(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg) ==
	       ZYDIS_REGISTER_RSP;
}

static bool changes_stack_pointer(const struct vf_full *f)
{
	for (int i = 0; i < f->z.operand_count; i++)
		if (f->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    is_stack_pointer(f->op[i].reg.value) &&
		    f->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			return true;
	return false;
}

/* Bytes that the instruction adds to the stack pointer. Return: false: this is not known. */
static bool read_effect(const struct vf_full *f, int64_t *raises)
{
	const ZydisDecodedOperand *op = f->op;

	*raises = 0;
	switch (f->z.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH: *raises = -WORD; return f->z.operand_width == 64;
	case ZYDIS_MNEMONIC_POP:
		*raises = WORD;
		return f->z.operand_width == 64 && op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		       !is_stack_pointer(op[0].reg.value);
	case ZYDIS_MNEMONIC_CALL: return true; /* the callee returns */
	case ZYDIS_MNEMONIC_RET: return f->z.opcode == 0xc3;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (!changes_stack_pointer(f))
			return true;
		*raises = f->z.mnemonic == ZYDIS_MNEMONIC_ADD ? op[1].imm.value.s
							      : -op[1].imm.value.s;
		return op[0].reg.value == ZYDIS_REGISTER_RSP &&
		       op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	case ZYDIS_MNEMONIC_LEA:
		if (!changes_stack_pointer(f))
			return true;
		*raises = op[1].mem.disp.value;
		return op[0].reg.value == ZYDIS_REGISTER_RSP &&
		       op[1].mem.base == ZYDIS_REGISTER_RSP &&
		       op[1].mem.index == ZYDIS_REGISTER_NONE && f->z.address_width == 64;
	default: return !changes_stack_pointer(f);
	}
}

/* Do the unsaved registers keep their places, or none, in the row that follows at @at? */
static int check_row_behind(struct early *e, const struct vf_row *before, uint64_t at)
{
	for (int i = 0; i < VF_NR_SAVED; i++) {
		int64_t place = place_of(e->row, i);

		if (e->unsaved >> i & 1 && place && place != place_of(before, i))
			return refuse(e, at, "a register's place changes");
	}
	return 0;
}

/* The effect of one instruction, at @at. *@cfa: the distance that must be the CFA's behind it. */
static int check_insn(struct early *e, uint64_t at, const struct vf_full *f,
		      const struct vf_insn *insn)
{
	int64_t raises;

	if (vf_saved_writes(f) & e->unsaved)
		return refuse(e, at, "an instruction changes a register");
	if (!read_effect(f, &raises))
		return refuse(e, at, "the stack pointer changes in another way");
	if (insn->kind == VF_STOP && (f->z.mnemonic != ZYDIS_MNEMONIC_RET || e->cfa != ENTRY_CFA))
		return refuse(e, at, "no plain return");
	if (insn->kind == VF_IJMP_REG || insn->kind == VF_IJMP_MEM || insn->kind == VF_ODD)
		return refuse(e, at, "an indirect jump");
	if (insn->kind == VF_CALL)
		vf_ask_kept(e->x->vf, insn->target, e->unsaved);
	e->cfa -= raises;
	return 0;
}

/* One instruction of a step. */
static int check_step_insn(struct early *e, uint64_t at, const struct vf_full *f)
{
	uint8_t set = f->z.mnemonic == ZYDIS_MNEMONIC_POP ? vf_saved_writes(f) : 0;
	int64_t raises;

	if (!read_effect(f, &raises))
		return refuse(e, at, "the stack pointer changes in another way");
	for (int i = 0; i < VF_NR_SAVED; i++)
		if (set >> i & 1 && (!(e->unsaved >> i & 1) || place_of(e->row, i) != e->cfa))
			return refuse(e, at, "a register is restored from another place");
	if ((f->z.mnemonic == ZYDIS_MNEMONIC_ADD || f->z.mnemonic == ZYDIS_MNEMONIC_SUB) &&
	    !vf_flags_are_dead(e->x->vf, at + f->z.length, true))
		return refuse(e, at, "flags are read that no instruction sets");
	e->cfa -= raises;
	return 0;
}

/* Return: the register that `push %reg` saves; -1: it is another instruction. */
static int pushed(const struct vf_full *f)
{
	ZydisRegister reg = f->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? f->op[0].reg.value
									 : ZYDIS_REGISTER_NONE;

	if (f->z.mnemonic != ZYDIS_MNEMONIC_PUSH)
		return -1;
	switch (reg) {
	case ZYDIS_REGISTER_RBX: return 0;
	case ZYDIS_REGISTER_RBP: return 1;
	case ZYDIS_REGISTER_R12: return 2;
	case ZYDIS_REGISTER_R13: return 3;
	case ZYDIS_REGISTER_R14: return 4;
	case ZYDIS_REGISTER_R15: return 5;
	default: return -1;
	}
}

/* Does an operand name one of the bytes where a register of @set is saved, by the place in @row? */
static bool names_place(const struct vf_full *f, int64_t cfa, const struct vf_row *row, uint8_t set)
{
	for (int o = 0; o < f->z.operand_count_visible; o++) {
		const ZydisDecodedOperand *op = &f->op[o];
		int64_t from, size;

		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || !is_stack_pointer(op->mem.base) ||
		    op->mem.index != ZYDIS_REGISTER_NONE)
			continue;
		from = op->mem.disp.value - cfa;
		size = op->size ? op->size / 8 : 1;
		for (int i = 0; i < VF_NR_SAVED; i++) {
			int64_t place = -place_of(row, i);

			if (set >> i & 1 && from < place + WORD && from + size > place)
				return true;
		}
	}
	return false;
}

/* No instruction of the function names the places of @set by the stack pointer. @row: it says where they are. */
static int check_places(struct early *e, const struct vf_row *row, uint8_t set)
{
	const struct vf_fde *fde = e->x->old;
	uint64_t end = fde->start + fde->size;
	struct vf_full f;

	for (uint64_t at = fde->start; at < end; at += f.z.length) {
		const struct vf_row *here = vf_rows_at(&e->x->old_rows, at);

		if (!vf_decode_full(e->x->vf, at, end, &f))
			return refuse(e, at, "undecodable");
		if (f.z.meta.category == ZYDIS_CATEGORY_NOP ||
		    f.z.meta.category == ZYDIS_CATEGORY_WIDENOP)
			continue;
		if (!here || here->cfa.kind != VF_RULE_OFFSET || here->cfa_reg != STACK_POINTER)
			return refuse(e, at, "the row does not find the CFA by the stack pointer");
		if (names_place(&f, here->cfa.off, row, set))
			return refuse(e, at, "an instruction names a register's place");
	}
	return 0;
}

/* ---- ways out ---- */

static int load_other(struct vf_unwinding *x, const struct vf_fde *fde)
{
	int ret;

	if (x->callee == fde)
		return 0;
	x->callee = NULL;
	ret = vf_rows_build(&x->vf->old_eh, fde, &x->callee_rows);
	if (ret == -EBADMSG)
		return vf_refuse(x->vf, fde->start, "unwind information is unreadable");
	if (!ret)
		x->callee = fde;
	return ret;
}

/* Control goes on at @to, in the original, with @e->unsaved, the row @e->row and the distance @e->cfa. */
static int check_way(struct early *e, uint64_t to)
{
	const struct vf_fde *old = e->x->old, *fde = vf_eh_find(&e->x->vf->old_eh, to);
	bool leaves = fde != old && vf_early_of(e->x->vf, e->p)->leaves;
	const struct vf_row *row;
	int ret;

	if (!e->unsaved)
		return 0;
	if (leaves && e->cfa != ENTRY_CFA)
		return refuse(e, to, "the function is left with something in the stack");
	if (!fde)
		return leaves ? 0 : refuse(e, to, "code without an FDE");
	ret = fde == old ? 0 : load_other(e->x, fde);
	if (ret)
		return ret;
	row = vf_rows_at(fde == old ? &e->x->old_rows : &e->x->callee_rows, to);
	/* A PLT stub's row is of another kind. No register is saved there. */
	if (leaves && row && to != fde->start && row->cfa.kind != VF_RULE_OFFSET)
		return 0;
	if (!row || row->cfa.kind != VF_RULE_OFFSET || row->cfa_reg != STACK_POINTER ||
	    row->cfa.off != e->cfa)
		return refuse(e, to, "the CFA is at another distance");
	for (int i = 0; i < VF_NR_SAVED; i++) {
		int64_t place = place_of(row, i);

		if (e->unsaved >> i & 1 && place && (leaves || place != place_of(e->row, i)))
			return refuse(e, to, "a register has another place");
	}
	return 0;
}

static int check_ways(struct early *e, const struct vf_insn *last)
{
	uint64_t end = e->p->old_vaddr + e->p->old_size;
	int ret = 0;

	if (last->kind == VF_STOP)
		return 0;
	if (last->kind == VF_JCC || last->kind == VF_JMP)
		ret = check_way(e, last->target);
	return ret || last->kind == VF_JMP ? ret : check_way(e, end);
}

/* The row behind the original's last instruction, where control runs on; at the FDE's end, that of the instruction. */
static int set_row_behind(struct early *e)
{
	uint64_t end = e->p->old_vaddr + e->p->old_size,
		 fde_end = e->x->old->start + e->x->old->size;
	int64_t cfa = e->cfa;
	const struct vf_row *before = e->row;
	int ret;

	if (end >= fde_end)
		return refuse(e, end, "the function ends");
	ret = set_row(e, end);
	if (!ret && e->cfa != cfa)
		ret = refuse(e, end, "the CFA is at another distance");
	return ret ? ret : check_row_behind(e, before, end);
}

static int check_step(struct early *e)
{
	const struct mp_map_piece *p = e->p;
	uint64_t at = p->old_vaddr, end = at + p->old_size;
	struct vf_insn insn = {0};
	struct vf_save_step step;
	struct vf_full f;
	int ret = set_row(e, at);

	if (!ret && !vf_read_step(e->x->vf, p, &step))
		ret = refuse(e, at, "no step");
	if (!ret)
		ret = compare(e, p->new_vaddr, p->new_vaddr + step.new_size);
	for (; !ret && at < end; at += f.z.length) {
		const struct vf_row *before;
		int reg;

		if (!vf_decode_full(e->x->vf, at, end, &f))
			return refuse(e, at, "undecodable");
		ret = check_step_insn(e, at, &f);
		if (ret)
			return ret;
		reg = pushed(&f);
		before = e->row;
		e->row = vf_rows_at(&e->x->old_rows, at + f.z.length);
		if (!e->row || e->row->cfa.kind != VF_RULE_OFFSET ||
		    e->row->cfa_reg != STACK_POINTER || e->row->cfa.off != e->cfa)
			return refuse(e, at, "the CFA is at another distance");
		ret = check_row_behind(e, before, at);
		if (reg < 0 || ret)
			continue;
		if (e->unsaved >> reg & 1 || place_of(before, reg) ||
		    place_of(e->row, reg) != e->cfa)
			return refuse(e, at, "the row does not say that a register is saved");
		e->unsaved |= (uint8_t)(1u << reg);
		ret = check_places(e, e->row, (uint8_t)(1u << reg));
	}
	if (!ret)
		ret = set_row_behind(e);
	if (!ret)
		ret = compare(e, p->new_vaddr + step.new_size, vf_padding_end(e->x->vf, p));
	return ret ? ret : check_ways(e, &insn);
}

static int check_copy(struct early *e)
{
	const struct vf *vf = e->x->vf;
	const struct mp_map_piece *p = e->p;
	uint64_t common = vf->marks->common[p - vf->map->pieces], k = 0;
	bool via_slot = vf_is_via_slot(vf, p, common);
	struct vf_insn insn = {0};
	struct vf_full f;
	int ret = set_row(e, p->old_vaddr);

	for (; !ret && k < p->old_size; k += insn.len) {
		uint64_t at = p->old_vaddr + k;
		const struct vf_row *before = e->row;
		int64_t cfa = e->cfa;

		if (!vf_decode_full(vf, at, p->old_vaddr + p->old_size, &f) ||
		    !vf_decode(mp_elf_bytes(vf->o, at, f.z.length), f.z.length, at, &insn))
			return refuse(e, at, "undecodable");
		if (k) {
			ret = set_row(e, at);
			if (!ret && e->cfa != cfa)
				ret = refuse(e, at, "the CFA is at another distance");
			if (!ret)
				ret = check_row_behind(e, before, at);
		}
		if (!ret && vf_end_of_row(&e->x->old_rows, e->row) < at + insn.len)
			ret = refuse(e, at, "the row changes within an instruction");
		if (!ret && k < common)
			ret = compare(e, p->new_vaddr + k, p->new_vaddr + k + insn.len);
		if (!ret)
			ret = check_insn(e, at, &f, &insn);
	}
	if (ret)
		return ret;
	k = common;
	if (via_slot && insn.kind == VF_CALL) {
		ret = compare(e, p->new_vaddr + k, p->new_vaddr + k + VF_SLOT_BRANCH);
		k += VF_SLOT_BRANCH;
	}
	if (!ret && insn.kind != VF_STOP && insn.kind != VF_JCC && insn.kind != VF_JMP)
		ret = set_row_behind(e);
	if (!ret)
		ret = compare(e, p->new_vaddr + k, vf_padding_end(vf, p));
	/* A PLT stub goes on at another function. */
	if (!ret && via_slot && insn.kind == VF_JMP)
		return e->unsaved && e->cfa != ENTRY_CFA
			       ? refuse(e, p->new_vaddr,
					"the function is left with something in the stack")
			       : 0;
	return ret ? ret : check_ways(e, &insn);
}

int vf_compare_early(struct vf_unwinding *x, const struct mp_map_piece *p)
{
	const struct vf_early *early = vf_early_of(x->vf, p);
	struct early e = {.x = x, .p = p, .unsaved = early->before};
	int ret;

	if (x->old_lsda.present || x->new_lsda.present)
		return refuse(&e, p->new_vaddr, "there is an exception table");
	switch (early->kind) {
	case VF_EARLY_CODE: ret = check_code(&e); break;
	case VF_EARLY_STEP:
		x->vf->result->report.nr_steps++;
		ret = check_step(&e);
		break;
	default: ret = check_copy(&e); break;
	}
	if (!ret && early->kind != VF_EARLY_CODE && e.unsaved != early->behind)
		ret = refuse(&e, p->new_vaddr, "not the registers that were found");
	return ret ? ret : vf_check_unreached(x, p);
}
