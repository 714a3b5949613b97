// SPDX-License-Identifier: Apache-2.0
/*
 * verify_stack - proves that a called function uses the stack in a way that stays right in place of the call.
 * Called by verify_inline.
 *
 * A copy of such code begins and ends in one of two ways. Either the stack pointer is lowered by 8 in place of the
 * call, and raised by 8 in place of the return: then it has its original value at each instruction. Or it stays, and
 * is 8 higher at each instruction: then no instruction may depend on its value, only on what it points to.
 *
 * The proof walks all parts in the original with the distance from the stack pointer to its value at the entry. Each
 * instruction is reached with one distance, which the unwind row there confirms; each return with 0. The 8 bytes at
 * distance 0 hold the return address in the original, and in the copy anything: no instruction names them. (It is
 * assumed that an index, or a pointer to a variable, does not reach them either.)
 *
 * A function may leave values below the stack pointer to one that it jumps to. A call in place of the jump finds them
 * only if the stack pointer was lowered.
 */
#include <errno.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/code/verify_stack.h"
#include "editor/verify/read/verify_cfi.h"
#include "editor/verify/read/verify_parts.h"

enum {
	PARTS_MAX = 200,
	RSP = 7,	  /* in unwind rows */
	NEAR = 1 << 16,	  /* bytes; larger distances are refused */
	BELOW = 128,	  /* bytes that may be used below the stack pointer */
	FDES_MAX = 4,	  /* of a function: for its main part and for cold code */
	WAITS = INT32_MIN /* a distance that is not known yet */
};

/* One walk over the parts of a function. */
struct walk {
	const struct vf *vf;
	const struct vf_fde *fdes[FDES_MAX];
	struct vf_rows rows[FDES_MAX]; /* of each of them */
	uint32_t nr_fdes, fde;	       /* @fde: that of the current part */
	bool lowered;
	bool below,
		leaves; /* names memory below the stack pointer; ends in a jump to another function */
	uint32_t piece[PARTS_MAX];
	int32_t at[PARTS_MAX]; /* distance at the start of each part: not above 0 */
	uint32_t nr, todo[PARTS_MAX], nr_todo;
	uint64_t insn; /* address of the current instruction */
	int32_t now;   /* distance there */
};

static int no(const struct walk *w, const char *why)
{
	return vf_refuse(w->vf, w->insn, "%s", why);
}

/* The stack pointer moves by @by bytes. */
static int move(struct walk *w, int64_t by)
{
	if (by > NEAR || by < -NEAR || w->now + by > 0 || w->now + by < -NEAR)
		return no(w, "an inlined function moves the stack pointer above its frame");
	w->now += (int32_t)by;
	return 0;
}

/* An instruction's result depends on the stack pointer's value. */
static int depends(const struct walk *w)
{
	return w->lowered ? 0 : no(w, "an inlined function depends on the stack pointer's value");
}

/* @size bytes at @disp from the stack pointer are named. */
static int names(struct walk *w, int64_t disp, int64_t size)
{
	int64_t start = w->now + disp;

	w->below |= disp < 0;
	if (size < 1 || disp < -BELOW || disp > NEAR)
		return no(w, "an inlined function names memory far from the stack pointer");
	if (start + size > 0 && start < 8)
		return no(w, "an inlined function reads the stack pointer's return address");
	/* Arguments of the caller stay; vectors may have to be aligned. */
	return start >= 8 || size > 8 ? depends(w) : 0;
}

static bool is_part_of_rsp(ZydisRegister reg)
{
	return reg == ZYDIS_REGISTER_RSP || reg == ZYDIS_REGISTER_ESP || reg == ZYDIS_REGISTER_SP ||
	       reg == ZYDIS_REGISTER_SPL;
}

static bool is_rsp(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->reg.value == ZYDIS_REGISTER_RSP;
}

static bool is_whole(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && !is_rsp(op) &&
	       op->reg.value >= ZYDIS_REGISTER_RAX && op->reg.value <= ZYDIS_REGISTER_R15;
}

/* Memory by the stack pointer, with an address of 8 bytes */
static bool is_by_rsp(const struct vf_full *f, const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.base == ZYDIS_REGISTER_RSP &&
	       op->mem.segment == ZYDIS_REGISTER_SS && f->z.address_width == 64;
}

/* A register gets the address of a variable or of an argument. A frame pointer would claim a return address. */
static int takes_address(struct walk *w, const ZydisDecodedOperand *to, int64_t disp)
{
	int ret = depends(w);

	if (ret)
		return ret;
	if (!is_whole(to) || to->reg.value == ZYDIS_REGISTER_RBP)
		return no(w, "an inlined function copies the stack pointer");
	return names(w, disp, 1);
}

/* Operands of an instruction that leaves the stack pointer as it is */
static int check_operands(struct walk *w, const struct vf_full *f)
{
	for (int i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];
		int ret;

		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER && is_part_of_rsp(op->reg.value))
			return no(w, "an inlined function uses the stack pointer as a number");
		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    !(is_part_of_rsp(op->mem.base) || is_part_of_rsp(op->mem.index)))
			continue;
		if (!is_by_rsp(f, op) || op->mem.type != ZYDIS_MEMOP_TYPE_MEM)
			return no(w, "an inlined function adds to the stack pointer");
		/* `bt %eax, (%rsp)` reads any bit from there on. */
		if (f->z.meta.category == ZYDIS_CATEGORY_BITBYTE && i == 0 &&
		    f->op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return no(w, "an inlined function names any bit from the stack pointer on");
		ret = op->mem.index != ZYDIS_REGISTER_NONE
			      ? depends(w)
			      : names(w, op->mem.disp.value, op->size / 8);
		if (ret)
			return ret;
	}
	return 0;
}

static int check_lea(struct walk *w, const struct vf_full *f)
{
	const ZydisDecodedOperand *from = &f->op[1];

	if (!is_part_of_rsp(from->mem.base) && !is_part_of_rsp(from->mem.index))
		return is_rsp(&f->op[0]) ? no(w, "an inlined function sets the stack pointer")
					 : check_operands(w, f);
	if (!is_by_rsp(f, from) ||
	    (from->mem.index != ZYDIS_REGISTER_NONE &&
	     (!is_whole(&f->op[0]) || f->op[0].reg.value == ZYDIS_REGISTER_RBP)))
		return no(w, "an inlined function adds to the stack pointer");
	if (from->mem.index != ZYDIS_REGISTER_NONE)
		return depends(w);
	return is_rsp(&f->op[0]) ? move(w, from->mem.disp.value)
				 : takes_address(w, &f->op[0], from->mem.disp.value);
}

/* `add` and `sub` of a constant, whose flags depend on the stack pointer */
static int check_sum(struct walk *w, const struct vf_full *f, bool adds)
{
	int ret = depends(w);
	int64_t by = f->op[1].imm.value.s;

	if (ret)
		return ret;
	if (f->op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || by > NEAR || by < -NEAR)
		return no(w, "an inlined function sets the stack pointer");
	return move(w, adds ? by : -by);
}

static int check_insn(struct walk *w, const struct vf_full *f)
{
	bool constant = f->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

	switch (f->z.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_POP:
		if (f->z.operand_width != 64 || (!is_whole(&f->op[0]) && !constant))
			return no(w, "an inlined function moves the stack pointer strangely");
		return move(w, f->z.mnemonic == ZYDIS_MNEMONIC_PUSH ? -8 : 8);
	case ZYDIS_MNEMONIC_LEA: return check_lea(w, f);
	case ZYDIS_MNEMONIC_MOV:
		if (is_rsp(&f->op[1]))
			return takes_address(w, &f->op[0], 0);
		return check_operands(w, f);
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (is_rsp(&f->op[0]))
			return check_sum(w, f, f->z.mnemonic == ZYDIS_MNEMONIC_ADD);
		return check_operands(w, f);
	default: return check_operands(w, f);
	}
}

/* Is the CFA where the distance says, 8 above the return address? */
static int check_row(const struct walk *w, uint64_t at)
{
	const struct vf_row *row = vf_rows_at(&w->rows[w->fde], at);

	if (!row || row->cfa.kind != VF_RULE_OFFSET || row->cfa_reg != RSP ||
	    row->cfa.off != 8 - (int64_t)w->now)
		return vf_refuse(w->vf, at,
				 "an inlined function's unwind row has another stack pointer");
	return 0;
}

/* Control goes on at @old with the current distance. */
static int arrive(struct walk *w, uint64_t old)
{
	for (uint32_t i = 0; i < w->nr; i++) {
		if (w->vf->map->pieces[w->piece[i]].old_vaddr != old)
			continue;
		if (w->at[i] == WAITS) {
			w->at[i] = w->now;
			w->todo[w->nr_todo++] = i;
		}
		return w->at[i] == w->now
			       ? 0
			       : vf_refuse(
					 w->vf, old,
					 "an inlined function has two values of the stack pointer");
	}
	return vf_refuse(w->vf, old, "an inlined function lacks a part");
}

/*
 * A called function expects the stack pointer as the original has it, a multiple of 16. What expects another one is no
 * compiler's function, and may look for its caller's return address, as what is called at entries for profiles does.
 */
static int check_call(const struct walk *w, const struct vf_insn *insn, const struct vf_full *f)
{
	int ret = depends(w);

	if (ret)
		return ret;
	if ((w->now - 8) % 16)
		return no(w, "an inlined function calls with another stack pointer");
	if (insn->kind == VF_ICALL && f->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	    (is_part_of_rsp(f->op[0].mem.base) || is_part_of_rsp(f->op[0].mem.index)))
		return no(w, "an inlined function calls what the stack names");
	if (insn->kind == VF_ICALL && f->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    is_part_of_rsp(f->op[0].reg.value))
		return no(w, "an inlined function calls the stack");
	return 0;
}

/* Follows control to the parts that may execute behind this one, or checks the return that ends it. */
static int leave(struct walk *w, const struct mp_map_piece *p, const struct vf_insn *last,
		 uint64_t end)
{
	const struct vf_fde *fde = vf_eh_find(&w->vf->old.eh, p->old_vaddr);
	int ret;

	switch (last->kind) {
	case VF_STOP:
		return w->now ? no(w, "an inlined function returns with another stack pointer") : 0;
	case VF_JMP:
		if (vf_leaves_by(w->vf, p, last)) {
			w->leaves = true;
			return w->now ? no(w, "an inlined function leaves with another stack "
					      "pointer")
				      : 0;
		}
		return arrive(w, last->target);
	case VF_CALL:
	case VF_ICALL:
		/* It does not return: nothing follows. */
		return fde && end == fde->start + fde->size ? 0 : arrive(w, end);
	case VF_JCC: ret = arrive(w, last->target); return ret ? ret : arrive(w, end);
	default: return arrive(w, end);
	}
}

/* Finds the rows of the code at @old. Return: 0, -ENOMEM, or a refusal. */
static int find_rows(struct walk *w, uint64_t old)
{
	const struct vf_fde *fde = vf_eh_find(&w->vf->old.eh, old);
	int ret;

	for (w->fde = 0; w->fde < w->nr_fdes; w->fde++)
		if (w->fdes[w->fde] == fde)
			return 0;
	if (!fde || w->nr_fdes == FDES_MAX)
		return vf_refuse(w->vf, old, "an inlined function has no FDE, or too many");
	w->fdes[w->nr_fdes++] = fde;
	ret = vf_rows_build(&w->vf->old.eh, fde, &w->rows[w->fde]);
	if (ret == -EBADMSG)
		return vf_refuse(w->vf, fde->start,
				 "an inlined function's unwind rows are unreadable");
	return ret;
}

static int walk_part(struct walk *w, uint32_t part)
{
	const struct mp_map_piece *p = &w->vf->map->pieces[w->piece[part]];
	uint64_t end = p->old_vaddr + p->old_size;
	struct vf_insn insn = {.kind = VF_OTHER};
	struct vf_full f;
	int ret = find_rows(w, p->old_vaddr);

	w->now = w->at[part];
	for (w->insn = p->old_vaddr; w->insn < end && !ret; w->insn += insn.len) {
		const uint8_t *b = mp_elf_bytes(w->vf->o, w->insn, end - w->insn);

		if (!b || !vf_decode(b, end - w->insn, w->insn, &insn) ||
		    !vf_decode_full(w->vf, w->insn, end, &f))
			return no(w, "an inlined function is undecodable");
		ret = check_row(w, w->insn);
		if (!ret && insn.kind == VF_OTHER)
			ret = check_insn(w, &f);
		else if (!ret && (insn.kind == VF_CALL || insn.kind == VF_ICALL))
			ret = check_call(w, &insn, &f);
	}
	return ret ? ret : leave(w, p, &insn, end);
}

/* Return: 0, -ENOMEM, or a refusal. */
int vf_check_stack(const struct vf *vf, uint32_t first, bool lowered)
{
	uint64_t entry = vf->map->pieces[first].old_vaddr;
	struct walk w = {.vf = vf, .lowered = lowered};
	int ret = 0;

	for (uint32_t i = first; i && !ret; i = vf->index.inlined[i].next) {
		if (w.nr == PARTS_MAX) {
			ret = vf_refuse(vf, entry, "an inlined function has too many parts");
			break;
		}
		w.at[w.nr] = WAITS;
		w.piece[w.nr++] = i;
	}
	if (!ret)
		ret = arrive(&w, entry);
	while (!ret && w.nr_todo)
		ret = walk_part(&w, w.todo[--w.nr_todo]);
	if (!ret && w.below && w.leaves && !lowered)
		ret = vf_refuse(
			vf, entry,
			"an inlined function leaves values below its stack pointer to another");
	for (uint32_t i = 0; i < w.nr_fdes; i++)
		free(w.rows[i].row);
	return ret;
}
