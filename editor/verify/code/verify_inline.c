// SPDX-License-Identifier: Apache-2.0
/*
 * verify_inline - proves that a function's instructions may stand in place of a call of it. Called by
 * verify_pieces, which compares these instructions, and verify_unwind.
 *
 * The rule: the original has a plain `call function` of 5 bytes, and control goes on behind it. The
 * function consists of an endbr64, if any, and blocks that end in branches to one another, in plain
 * returns or in jumps to other functions. Its instructions are calls of other functions, or come from a list of kinds
 * that have no effect but on registers, flags and the memory that they name. Then the copy has these blocks as its
 * parts, in any order; a jump to another function is a call of that function, from where control goes on as from a
 * return. verify_stack proves that the stack pointer stays right. What a call does besides is to write the return
 * address below the caller's stack pointer. No instruction of the caller's FDE names memory there. A file that may
 * walk its own stack keeps its calls of functions that call others.
 */
#include <errno.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/code/verify_inline.h"
#include "editor/verify/code/verify_stack.h"
#include "editor/verify/known/verify_known.h"
#include "editor/verify/read/verify_parts.h"

enum answer {
	NOT_ASKED,
	NOWHERE,
	SOMEWHERE,
};

int vf_make_answers(const struct vf *vf)
{
	vf->marks->below = calloc((size_t)vf->old.eh.nr_fdes + 1, 1);
	return vf->marks->below ? 0 : -ENOMEM;
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
	return z->mnemonic == ZYDIS_MNEMONIC_LEA || z->mnemonic == ZYDIS_MNEMONIC_PUSH ||
	       z->mnemonic == ZYDIS_MNEMONIC_POP;
}

static bool is_plain_return(const struct vf *vf, uint64_t at, const struct vf_insn *insn,
			    const struct vf_full *f)
{
	return f->z.mnemonic == ZYDIS_MNEMONIC_RET && f->z.opcode == 0xc3 &&
	       (insn->len == 1 || (insn->len == 2 && *mp_elf_bytes(vf->o, at, 1) == 0xf3));
}

/* Does @target lie in an FDE of the code that @p belongs to? */
static bool is_own(const struct vf *vf, const struct mp_map_piece *p, uint64_t target)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, target);

	for (uint32_t i = vf->index.inlined[p - vf->map->pieces].behind; fde && i;
	     i = vf->index.inlined[i].next)
		if (vf->map->pieces[i].old_vaddr - fde->start < fde->size)
			return true;
	return false;
}

static const char *why_no_call(const struct vf *vf, const struct mp_map_piece *p,
			       const struct vf_insn *insn, const struct vf_full *f)
{
	if (vf->old.walks_stack)
		return "a file that walks its own stack lost a call of a function that calls "
		       "others";
	if (f->z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return "an inlined function has a far call";
	return insn->kind == VF_CALL && insn->target == vf_callee_of(vf, vf_inlined_caller(vf, p))
		       ? "an inlined function calls itself"
		       : NULL;
}

/* May the instruction at @at, of @p, stand in an inlined function? @last: it ends its block. NULL: it may. */
static const char *why_not(const struct vf *vf, const struct mp_map_piece *p, uint64_t at,
			   const struct vf_insn *insn, const struct vf_full *f, bool last)
{
	if (insn->kind == VF_STOP)
		return last && is_plain_return(vf, at, insn, f)
			       ? NULL
			       : "an inlined function does not end in a plain return";
	if (last && (insn->kind == VF_JCC || insn->kind == VF_JMP))
		return vf_leaves_by(vf, p, insn) ? why_no_call(vf, p, insn, f) : NULL;
	if (insn->kind == VF_CALL || insn->kind == VF_ICALL)
		return why_no_call(vf, p, insn, f);
	if (insn->kind != VF_OTHER || insn->int3 || !is_allowed(&f->z))
		return "an inlined function has an instruction of another kind";
	if (insn->disp_off && (insn->eip_relative || is_own(vf, p, insn->target)))
		return "an inlined function names a place of its own";
	return NULL;
}

/* Return: 0, or a refusal. Does the original of @p consist of allowed instructions? */
static int check_insns(const struct vf *vf, const struct mp_map_piece *p)
{
	uint64_t end = p->old_vaddr + p->old_size;
	struct vf_insn insn;
	struct vf_full f;

	for (uint64_t at = p->old_vaddr; at < end; at += insn.len) {
		const uint8_t *b = mp_elf_bytes(vf->o, at, 1);
		const char *why;

		if (!vf_bits_get(&vf->old.grid, at) || !vf_decode_full(vf, at, end, &f) ||
		    !vf_decode(b, end - at, at, &insn) || insn.len != f.z.length)
			return vf_refuse(vf, at, "an inlined function is undecodable");
		why = why_not(vf, p, at, &insn, &f, at + insn.len == end);
		if (why)
			return vf_refuse(vf, at, "%s", why);
	}
	return 0;
}

/* May code of @fde have the exception table and the personality routine of a caller? */
static int check_tables(const struct vf *vf, const struct vf_fde *fde)
{
	if (fde->flags & (VF_FDE_BAD | VF_FDE_SYMBOL_ONLY) || fde->lsda ||
	    vf->old.eh.cies[fde->cie].signal)
		return vf_refuse(vf, fde->start, "an inlined function has unwind data of its own");
	return 0;
}

/* Does an instruction of @fde name memory below the stack pointer, or may it? push and call do not count. */
static bool names_below(const struct vf *vf, const struct vf_fde *fde)
{
	uint64_t end = fde->start + fde->size;
	const uint8_t *b = mp_elf_bytes(vf->o, fde->start, fde->size);
	struct vf_insn insn;
	struct vf_full f;

	for (uint64_t at = fde->start; at < end; b += insn.len, at += insn.len) {
		if (!b || !vf_decode(b, end - at, at, &insn))
			return true;
		/* Few may: those whose base is %rsp or %r12. Zydis tells all operands of these alone. */
		if ((insn.base & ~VF_INDEX) != (VF_BASE | 4) ||
		    (!(insn.base & VF_INDEX) && vf_base_disp(&insn, b) >= 0))
			continue;
		if (!vf_decode_full(vf, at, end, &f) || f.z.length != insn.len)
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
	uint8_t *known = &vf->marks->below[fde - vf->old.eh.fdes];
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
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, vf_call_of(p));

	if (!fde || fde->flags & (VF_FDE_BAD | VF_FDE_SYMBOL_ONLY) ||
	    vf_call_of(p) + VF_CALL_SIZE >= fde->start + fde->size)
		return vf_refuse(vf, vf_call_of(p), "a call that may not return was replaced");
	if (!vf_bits_get(&vf->old.grid, vf_call_of(p)) ||
	    !vf_bits_get(&vf->old.grid, vf_call_of(p) + VF_CALL_SIZE))
		return vf_refuse(vf, vf_call_of(p),
				 "a call with no instruction behind it was replaced");
	if (uses_below(vf, fde))
		return vf_refuse(
			vf, vf_call_of(p),
			"a call was replaced in a function that uses memory below its stack "
			"pointer");
	return 0;
}

int vf_check_callee(const struct vf *vf, const struct mp_map_piece *p)
{
	const struct mp_map_piece *caller = vf_inlined_caller(vf, p);
	uint64_t callee = vf_callee_of(vf, caller);
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, callee);
	/* A function has another FDE for its part for cold code, if there is one. */
	const struct vf_fde *own = vf_eh_find(&vf->old.eh, p->old_vaddr);
	int ret;

	if (caller + 1 == p && caller->new_vaddr + caller->new_size != p->new_vaddr)
		return vf_refuse(vf, p->new_vaddr, "inlined code does not follow its caller");
	if (!fde || fde->start != callee || !own ||
	    p->old_size > own->start + own->size - p->old_vaddr ||
	    !mp_elf_is_readonly(vf->o, p->old_vaddr))
		return vf_refuse(vf, vf_call_of(caller), "the replaced call leads to no function");
	ret = check_tables(vf, own);
	if (!ret)
		ret = vf_check_known(vf, own, p->old_vaddr);
	if (!ret && caller + 1 == p)
		ret = check_caller(vf, caller);
	if (!ret && caller + 1 == p)
		ret = vf_check_stack(vf, (uint32_t)(p - vf->map->pieces), vf_lowers(vf, caller));
	return ret ? ret : check_insns(vf, p);
}
