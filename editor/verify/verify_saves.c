// SPDX-License-Identifier: Apache-2.0
/*
 * verify_saves - finds copies in which registers are saved later than in the original, and follows which ones are
 * unsaved where. verify_pieces compares instructions and ways; verify_unwind_saves proves the rest.
 *
 * Such a copy begins with a step: one instruction that moves the stack pointer as the original's pushes do. From
 * there on, control stays in pieces of the same function with the same registers unsaved, until code saves them,
 * or until the function returns. What is found here is only a claim: each way is checked later.
 */
#include <errno.h>

#include "editor/verify/verify_private.h"

enum { /* bytes of instructions with a displacement from the stack pointer */
	SHORT = 5,
	LONG = 8,
};

int vf_saved_row(int i)
{
	static const int rows[VF_NR_SAVED] = {3, 6, 12, 13, 14, 15};

	return rows[i];
}

/* Return: the index of the register that @reg is, or is a part of; -1: none. */
static int saved_index(ZydisRegister reg)
{
	static const ZydisRegister regs[VF_NR_SAVED] = {ZYDIS_REGISTER_RBX, ZYDIS_REGISTER_RBP,
							ZYDIS_REGISTER_R12, ZYDIS_REGISTER_R13,
							ZYDIS_REGISTER_R14, ZYDIS_REGISTER_R15};

	reg = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	for (int i = 0; i < VF_NR_SAVED; i++)
		if (reg == regs[i])
			return i;
	return -1;
}

uint8_t vf_saved_writes(const struct vf_full *f)
{
	uint8_t set = 0;

	for (int i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];
		int reg = op->type == ZYDIS_OPERAND_TYPE_REGISTER ? saved_index(op->reg.value) : -1;

		if (reg >= 0 && op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			set |= (uint8_t)(1u << reg);
	}
	return set;
}

/* An instruction @opcode of a register and memory at a displacement from the stack pointer. Return: its length; 0. */
static uint32_t read_by_stack(const uint8_t *b, uint64_t avail, uint8_t opcode, int *reg,
			      int64_t *disp)
{
	int32_t wide;

	if (avail < SHORT || (b[0] != 0x48 && b[0] != 0x4c) || b[1] != opcode || b[3] != 0x24)
		return 0;
	*reg = (b[2] >> 3 & 7) | (b[0] & 4 ? 8 : 0);
	if ((b[2] & 0xc7) == 0x44) {
		*disp = (int8_t)b[4];
		return SHORT;
	}
	if ((b[2] & 0xc7) != 0x84 || avail < LONG)
		return 0;
	memcpy(&wide, b + 4, sizeof(wide));
	*disp = wide;
	return LONG;
}

uint32_t vf_read_save(const uint8_t *b, uint64_t avail, int *reg, int64_t *disp)
{
	static const int indexes[16] = {-1, -1, -1, 0, -1, 1, -1, -1, -1, -1, -1, -1, 2, 3, 4, 5};
	uint32_t len = read_by_stack(b, avail, 0x89, reg, disp);

	*reg = len ? indexes[*reg] : -1;
	return *reg >= 0 ? len : 0;
}

/* Adds an instruction of the original to @step. Return: false: steps do not stand for it. */
static bool add_insn(const struct vf_full *f, struct vf_save_step *step)
{
	const ZydisDecodedOperand *op = f->op;
	int reg = op[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? saved_index(op[0].reg.value) : -1;
	uint8_t bit = (uint8_t)(reg >= 0 ? 1u << reg : 0);

	switch (f->z.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		if (!bit || f->z.operand_width != 64 || step->saves & bit)
			return false;
		step->saves |= bit;
		step->raises -= 8;
		return true;
	case ZYDIS_MNEMONIC_POP:
		if (!bit || f->z.operand_width != 64 || step->restores & bit)
			return false;
		step->restores |= bit;
		step->raises += 8;
		return true;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (op[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    op[0].reg.value != ZYDIS_REGISTER_RSP ||
		    op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return false;
		step->raises += f->z.mnemonic == ZYDIS_MNEMONIC_ADD ? op[1].imm.value.s
								    : -op[1].imm.value.s;
		return true;
	case ZYDIS_MNEMONIC_LEA:
		if (op[0].reg.value != ZYDIS_REGISTER_RSP || op[1].mem.base != ZYDIS_REGISTER_RSP ||
		    op[1].mem.index != ZYDIS_REGISTER_NONE || f->z.address_width != 64)
			return false;
		step->raises += op[1].mem.disp.value;
		return true;
	default: return false;
	}
}

bool vf_read_step(const struct vf *vf, const struct mp_map_piece *p, struct vf_save_step *step)
{
	const uint8_t *b = mp_elf_bytes(vf->n, p->new_vaddr, p->new_size);
	const uint8_t *a = mp_elf_bytes(vf->o, p->old_vaddr, p->old_size);
	uint64_t end = p->old_vaddr + p->old_size;
	int64_t raises;
	struct vf_full f;
	int reg;

	*step = (struct vf_save_step){0};
	if (!a || !b || !p->old_size)
		return false;
	step->new_size = read_by_stack(b, p->new_size, 0x8d, &reg, &raises);
	if (!step->new_size || reg != 4 /* rsp */ ||
	    (p->old_size >= step->new_size && !memcmp(a, b, step->new_size)))
		return false;
	for (uint64_t at = p->old_vaddr; at < end; at += f.z.length)
		if (!vf_decode_full(vf, at, end, &f) || !add_insn(&f, step))
			return false;
	return step->raises == raises && (step->saves | step->restores) != 0;
}

/* Does @p begin with an instruction that saves a register? */
static bool is_code(const struct vf *vf, const struct mp_map_piece *p)
{
	const uint8_t *b = mp_elf_bytes(vf->n, p->new_vaddr, p->new_size);
	int64_t disp;
	int reg;

	return b && !p->old_size && vf_read_save(b, p->new_size, &reg, &disp);
}

const struct vf_early *vf_early_of(const struct vf *vf, const struct mp_map_piece *p)
{
	return &vf->early[p - vf->map->pieces];
}

bool vf_is_early(const struct vf *vf, const struct mp_map_piece *p)
{
	return vf->early[p - vf->map->pieces].before;
}

bool vf_has_early(const struct vf *vf, const struct mp_map_piece *p)
{
	const struct vf_early *e = vf_early_of(vf, p);

	return e->before | e->behind | e->kind;
}

bool vf_early_holds(const struct vf *vf, uint64_t old)
{
	for (uint32_t i = 0; i < vf->map->nr_pieces; i++)
		if (vf->early[i].before &&
		    old - vf->map->pieces[i].old_vaddr < vf->map->pieces[i].old_size)
			return true;
	return false;
}

/* Pieces whose ways are still to be followed. */
struct todo {
	uint32_t *list;
	uint32_t nr, cap;
	bool failed; /* out of memory */
};

static void push(struct todo *todo, uint32_t piece)
{
	if (todo->nr == todo->cap) {
		uint32_t cap = 2 * todo->cap + 64;
		uint32_t *list = realloc(todo->list, cap * sizeof(*list));

		if (!list) {
			todo->failed = true;
			return;
		}
		todo->list = list;
		todo->cap = cap;
	}
	todo->list[todo->nr++] = piece;
}

/* Control comes from piece @from to @now, in the new text. */
static void arrive(struct vf *vf, struct todo *todo, uint32_t from, uint64_t now)
{
	const struct mp_map_piece *pieces = vf->map->pieces;
	const struct vf_fde *fde = vf_eh_find(&vf->old_eh, pieces[from].old_vaddr);
	uint8_t set = vf->early[from].behind;

	/* Empty pieces share their address with the next one. */
	for (uint32_t i = vf_first_piece(vf, now);
	     i < vf->map->nr_pieces && pieces[i].new_vaddr == now; i++) {
		struct vf_early *e = &vf->early[i];

		if ((e->kind != VF_EARLY_CODE &&
		     vf_eh_find(&vf->old_eh, pieces[i].old_vaddr) != fde) ||
		    (e->before | set) == e->before)
			continue;
		e->before |= set;
		if (e->kind == VF_EARLY_CODE)
			continue;
		e->behind |= set;
		push(todo, i);
	}
}

/* Follows the branches of a piece, and the way out at its end. */
static void follow(struct vf *vf, struct todo *todo, uint32_t i)
{
	const struct mp_map_piece *p = &vf->map->pieces[i];
	uint64_t at = p->new_vaddr, end = at + p->new_size;
	const uint8_t *b = mp_elf_bytes(vf->n, at, p->new_size);
	struct vf_insn insn = {0};

	for (; b && at < end; at += insn.len) {
		if (!vf_decode(b + (at - p->new_vaddr), end - at, at, &insn))
			return;
		if (insn.kind == VF_JCC || insn.kind == VF_JMP)
			arrive(vf, todo, i, insn.target);
		if (insn.kind != VF_JCC && insn.kind != VF_OTHER && insn.kind != VF_CALL &&
		    insn.kind != VF_ICALL)
			return;
	}
	arrive(vf, todo, i, vf_falls_to(vf, p));
}

int vf_find_early(struct vf *vf)
{
	uint32_t nr = vf->map->nr_pieces;
	struct todo todo = {0};
	struct vf_save_step step;

	vf->early = calloc((size_t)nr + 1, sizeof(*vf->early));
	if (!vf->early)
		return -ENOMEM;
	/* An output with stubs saves everything as the original does. */
	if (vf->counters || vf->path_section || vf->audit_section || vf->call_section)
		return 0;
	for (uint32_t i = 0; i < nr; i++) {
		struct vf_early *e = &vf->early[i];

		if (vf_read_step(vf, &vf->map->pieces[i], &step)) {
			e->kind = VF_EARLY_STEP;
			e->behind = step.saves;
			if (e->behind)
				push(&todo, i);
		} else if (is_code(vf, &vf->map->pieces[i])) {
			e->kind = VF_EARLY_CODE;
		}
	}
	while (todo.nr && !todo.failed)
		follow(vf, &todo, todo.list[--todo.nr]);
	free(todo.list);
	return todo.failed ? -ENOMEM : 0;
}

bool vf_early_leads_to(const struct vf *vf, const struct mp_map_piece *p, uint64_t old,
		       uint64_t now)
{
	const struct mp_map_piece *pieces = vf->map->pieces;
	const struct vf_fde *fde = vf_eh_find(&vf->old_eh, p->old_vaddr);
	uint8_t set = vf_early_of(vf, p)->behind;

	for (uint32_t i = vf_first_piece(vf, now);
	     i < vf->map->nr_pieces && pieces[i].new_vaddr == now; i++)
		if (pieces[i].old_vaddr == old && vf->early[i].before == set)
			return true;
	/* Out of the function: verify_unwind_saves.c proves that nothing is in the stack there. */
	if (!fde || vf_eh_find(&vf->old_eh, old) == fde || !vf_same_place(vf, old, now))
		return false;
	vf->early[p - pieces].leaves = true;
	return true;
}
