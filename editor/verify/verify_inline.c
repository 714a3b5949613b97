// SPDX-License-Identifier: Apache-2.0
/*
 * verify_inline - proves that a function's instructions may stand in place of a call of it. Called by
 * verify_pieces, which compares these instructions, and verify_unwind.
 *
 * The rule: the original has a plain `call function` of 5 bytes, and control goes on behind it. The
 * function is `[endbr64] instructions ret`, in one piece. Its instructions come from a list of kinds that
 * have no effect but on registers, flags and the memory that they name; none names the stack pointer.
 * Then the copy has these instructions alone, and the stack pointer is 8 higher in them. What a call does
 * besides is to write the return address below the caller's stack pointer. No instruction of the caller's
 * FDE names memory there.
 */
#include <errno.h>

#include "editor/verify/verify_private.h"

enum {
	LANDING = 4, /* bytes of endbr64 */
	RSP = 7,     /* in unwind rows */
};

enum answer {
	NOT_ASKED,
	NOWHERE,
	SOMEWHERE,
};

static uint64_t call_of(const struct mp_map_piece *p)
{
	return p->old_vaddr + p->old_size - VF_CALL_SIZE;
}

/* Return: where the call at the end of the original of @p leads; 0: there is none. */
static uint64_t callee_of(const struct vf *vf, const struct mp_map_piece *p)
{
	const uint8_t *b;
	uint64_t at;

	if (p->old_size < VF_CALL_SIZE || !vf_is_text(vf, p->old_vaddr) ||
	    p->old_size > vf->text_end - p->old_vaddr)
		return 0;
	at = call_of(p);
	b = mp_elf_bytes(vf->o, at, VF_CALL_SIZE);
	return b && b[0] == 0xe8 ? vf_displacement_target(b + 1, at + VF_CALL_SIZE) : 0;
}

/* Return: where the function at @vaddr goes on behind its endbr64. */
static uint64_t behind_landing(const struct vf *vf, uint64_t vaddr)
{
	const uint8_t *b = mp_elf_bytes(vf->o, vaddr, LANDING);

	return b && !memcmp(b, "\xf3\x0f\x1e\xfa", LANDING) ? vaddr + LANDING : vaddr;
}

int vf_find_inlined(struct vf *vf)
{
	const struct mp_map_piece *p = vf->map->pieces;

	vf->inlined = calloc((size_t)vf->map->nr_pieces + 1, 1);
	if (!vf->inlined)
		return -ENOMEM;
	/* An output with stubs of its own keeps all calls. */
	if (vf_has_stubs(vf) || vf->audit_section || vf->call_section)
		return 0;
	for (uint32_t i = 1; i < vf->map->nr_pieces; i++) {
		uint64_t callee;

		if (vf->inlined[i - 1] || p[i - 1].old_size < VF_CALL_SIZE ||
		    p[i - 1].new_size != p[i - 1].old_size - VF_CALL_SIZE)
			continue;
		callee = callee_of(vf, &p[i - 1]);
		vf->inlined[i] = callee && p[i].old_size &&
				 p[i].old_vaddr == behind_landing(vf, callee);
	}
	return 0;
}

int vf_make_answers(const struct vf *vf)
{
	vf->marks->below = calloc((size_t)vf->old_eh.nr_fdes + 1, 1);
	return vf->marks->below ? 0 : -ENOMEM;
}

bool vf_lacks_call(const struct vf *vf, const struct mp_map_piece *p, uint64_t k)
{
	return p + 1 < vf->map->pieces + vf->map->nr_pieces && vf_is_inlined(vf, p + 1) &&
	       k + VF_CALL_SIZE == p->old_size;
}

static bool is_rsp(ZydisRegister reg)
{
	switch (reg) {
	case ZYDIS_REGISTER_RSP:
	case ZYDIS_REGISTER_ESP:
	case ZYDIS_REGISTER_SP:
	case ZYDIS_REGISTER_SPL: return true;
	default: return false;
	}
}

/* May an instruction of this kind stand in an inlined function? */
static bool is_allowed(const ZydisDecodedInstruction *z)
{
	static const ZydisInstructionCategory allowed[] = {
		ZYDIS_CATEGORY_AVX,	  ZYDIS_CATEGORY_AVX2,	     ZYDIS_CATEGORY_BINARY,
		ZYDIS_CATEGORY_BITBYTE,	  ZYDIS_CATEGORY_BMI1,	     ZYDIS_CATEGORY_BMI2,
		ZYDIS_CATEGORY_CMOV,	  ZYDIS_CATEGORY_CONVERT,    ZYDIS_CATEGORY_DATAXFER,
		ZYDIS_CATEGORY_LOGICAL,	  ZYDIS_CATEGORY_LOGICAL_FP, ZYDIS_CATEGORY_LZCNT,
		ZYDIS_CATEGORY_NOP,	  ZYDIS_CATEGORY_PREFETCH,   ZYDIS_CATEGORY_ROTATE,
		ZYDIS_CATEGORY_SEMAPHORE, ZYDIS_CATEGORY_SETCC,	     ZYDIS_CATEGORY_SHIFT,
		ZYDIS_CATEGORY_SSE,	  ZYDIS_CATEGORY_STRINGOP,   ZYDIS_CATEGORY_WIDENOP,
		ZYDIS_CATEGORY_X87_ALU,
	};

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		if (z->meta.category == allowed[i])
			return true;
	return z->mnemonic == ZYDIS_MNEMONIC_LEA;
}

static bool names_rsp(const struct vf_full *f)
{
	for (int i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];

		if ((op->type == ZYDIS_OPERAND_TYPE_REGISTER && is_rsp(op->reg.value)) ||
		    (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		     (is_rsp(op->mem.base) || is_rsp(op->mem.index))))
			return true;
	}
	return false;
}

/* Return: 0, or a refusal. Does [@at, @end) consist of allowed instructions and one return? */
static int check_insns(const struct vf *vf, const struct vf_fde *fde, uint64_t at, uint64_t end)
{
	const char *why = NULL;
	struct vf_insn insn;
	struct vf_full f;

	for (; !why; at += insn.len) {
		const uint8_t *b = mp_elf_bytes(vf->o, at, 1);

		if (!vf_bits_get(&vf->grid, at) || !vf_decode_full(vf, at, end, &f) ||
		    !vf_decode(b, end - at, at, &insn) || insn.len != f.z.length)
			return vf_refuse(vf, at, "an inlined function is undecodable");
		if (!vf_piece_holding(vf, at))
			why = "an inlined function has no copy of its own";
		else if (insn.kind == VF_STOP)
			break;
		else if (insn.kind != VF_OTHER || insn.int3 || !is_allowed(&f.z))
			why = "an inlined function has an instruction of another kind";
		else if (names_rsp(&f))
			why = "an inlined function uses the stack pointer";
		else if (insn.disp_off &&
			 (insn.eip_relative || insn.target - fde->start < fde->size))
			why = "an inlined function names a place of its own";
	}
	if (!why && (f.z.mnemonic != ZYDIS_MNEMONIC_RET || f.z.opcode != 0xc3 ||
		     (insn.len != 1 && !(insn.len == 2 && *mp_elf_bytes(vf->o, at, 1) == 0xf3)) ||
		     at + insn.len != end))
		why = "an inlined function does not end in a plain return";
	return why ? vf_refuse(vf, at, "%s", why) : 0;
}

/* Is the row of @fde that of a function's entry throughout? Return: 0, -ENOMEM, or a refusal. */
static int check_frame(const struct vf *vf, const struct vf_fde *fde)
{
	const struct vf_cie *cie = &vf->old_eh.cies[fde->cie];
	struct vf_rows rows = {0};
	const struct vf_row *row;
	bool plain = false;
	int ret;

	if (fde->flags & (VF_FDE_BAD | VF_FDE_SYMBOL_ONLY) || fde->lsda || cie->signal)
		return vf_refuse(vf, fde->start, "an inlined function has unwind data of its own");
	ret = vf_rows_build(&vf->old_eh, fde, &rows);
	if (!ret && rows.nr == 1) {
		row = &rows.row[0];
		plain = row->cfa.kind == VF_RULE_OFFSET && row->cfa_reg == RSP && row->cfa.off == 8;
	}
	free(rows.row);
	if (ret == -ENOMEM)
		return ret;
	return plain ? 0 : vf_refuse(vf, fde->start, "an inlined function has a frame");
}

/* Does an instruction of @fde name memory below the stack pointer, or may it? push and call do not count. */
static bool names_below(const struct vf *vf, const struct vf_fde *fde)
{
	uint64_t end = fde->start + fde->size;
	struct vf_full f;

	for (uint64_t at = fde->start; at < end; at += f.z.length) {
		if (!vf_decode_full(vf, at, end, &f))
			return true;
		for (int i = 0; i < f.z.operand_count; i++) {
			const ZydisDecodedOperand *op = &f.op[i];

			if (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
			    op->visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
			    is_rsp(op->mem.base) &&
			    (op->mem.index != ZYDIS_REGISTER_NONE || op->mem.disp.value < 0))
				return true;
		}
	}
	return false;
}

/* Several threads may ask at once: all find the same answer. */
static bool uses_below(const struct vf *vf, const struct vf_fde *fde)
{
	uint8_t *known = &vf->marks->below[fde - vf->old_eh.fdes];
	uint8_t answer = __atomic_load_n(known, __ATOMIC_RELAXED);

	if (answer == NOT_ASKED) {
		answer = names_below(vf, fde) ? SOMEWHERE : NOWHERE;
		__atomic_store_n(known, answer, __ATOMIC_RELAXED);
	}
	return answer == SOMEWHERE;
}

/* May calls in the original of @p be replaced, and does control go on behind its last one? */
static int check_caller(const struct vf *vf, const struct mp_map_piece *p)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old_eh, call_of(p));

	if (!fde || fde->flags & (VF_FDE_BAD | VF_FDE_SYMBOL_ONLY) ||
	    call_of(p) + VF_CALL_SIZE >= fde->start + fde->size)
		return vf_refuse(vf, call_of(p), "a call that may not return was replaced");
	if (!vf_bits_get(&vf->grid, call_of(p) + VF_CALL_SIZE))
		return vf_refuse(vf, call_of(p),
				 "a call with no instruction behind it was replaced");
	if (uses_below(vf, fde))
		return vf_refuse(
			vf, call_of(p),
			"a call was replaced in a function that uses memory below its stack "
			"pointer");
	return 0;
}

int vf_check_callee(const struct vf *vf, const struct mp_map_piece *p)
{
	uint64_t callee = callee_of(vf, p - 1);
	const struct vf_fde *fde = vf_eh_find(&vf->old_eh, callee);
	int ret;

	if (p[-1].new_vaddr + p[-1].new_size != p->new_vaddr)
		return vf_refuse(vf, p->new_vaddr, "inlined code does not follow its caller");
	if (!fde || fde->start != callee || p->old_vaddr + p->old_size > fde->start + fde->size ||
	    !mp_elf_is_readonly(vf->o, callee))
		return vf_refuse(vf, call_of(p - 1), "the replaced call leads to no function");
	ret = check_caller(vf, p - 1);
	if (!ret)
		ret = check_frame(vf, fde);
	return ret ? ret : check_insns(vf, fde, p->old_vaddr, p->old_vaddr + p->old_size);
}
