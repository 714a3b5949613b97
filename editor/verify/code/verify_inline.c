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

#include "editor/verify/verify_private.h"

enum {
	LANDING = 4, /* bytes of endbr64 */
	PARTS_MAX = 200,
};

enum answer {
	NOT_ASKED,
	NOWHERE,
	SOMEWHERE,
};

enum {
	LOWERS = 0x50 /* push %rax */
};
static const uint8_t raises[VF_RAISE_SIZE] = {0x48, 0x8d, 0x64, 0x24, 0x08}; /* lea 8(%rsp), %rsp */

bool vf_lowers(const struct vf *vf, const struct mp_map_piece *p)
{
	const uint8_t *b;

	if (p->new_size + VF_CALL_SIZE != p->old_size + VF_LOWER_SIZE)
		return false;
	b = mp_elf_bytes(vf->n, p->new_vaddr + p->new_size - VF_LOWER_SIZE, VF_LOWER_SIZE);
	return b && *b == LOWERS;
}

bool vf_raises(const struct vf *vf, const struct mp_map_piece *p, uint64_t k)
{
	const uint8_t *b;

	if (k + VF_RAISE_SIZE > p->new_size)
		return false;
	b = mp_elf_bytes(vf->n, p->new_vaddr + k, VF_RAISE_SIZE);
	return b && !memcmp(b, raises, VF_RAISE_SIZE);
}

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

/* Bytes of the longest instruction. */
#define INSN_MAX 15
/* What find_parts() may look at, for each byte of the output and each piece. */
#define WORK_PER_BYTE 4

/*
 * Return: the offset of the last instruction of the original of @p, *@last; UINT64_MAX: undecodable, or more code than
 * a part can stand for, which lacks the last instruction at most.
 */
static uint64_t find_last(const struct vf *vf, const struct mp_map_piece *p, struct vf_insn *last)
{
	const uint8_t *b = p->old_size <= p->new_size + INSN_MAX
				   ? mp_elf_bytes(vf->o, p->old_vaddr, p->old_size)
				   : NULL;
	uint64_t k = 0;

	for (;; k += last->len) {
		if (!b || !vf_decode(b + k, p->old_size - k, p->old_vaddr + k, last))
			return UINT64_MAX;
		if (k + last->len == p->old_size)
			return k;
	}
}

/* The parts that stand for a function in place of a call, in the order in which they were found. */
struct parts {
	uint32_t piece[PARTS_MAX];
	uint32_t nr;
	uint64_t work; /* bytes and pieces that were looked at for all calls, also in vain */
};

/* Return: is there a part for the place @old, or is it @now, where a piece begins that stands for it? */
static bool add_part(const struct vf *vf, struct parts *parts, uint32_t first, uint64_t old,
		     uint64_t now)
{
	const struct mp_map_piece *pieces = vf->map->pieces;

	for (uint32_t k = 0; k < parts->nr; k++)
		if (pieces[parts->piece[k]].old_vaddr == old)
			return true;
	uint32_t i = vf_first_piece(vf, now);

	/* Code before, in place of other calls, may be empty. */
	if (i < first && pieces[first].new_vaddr == now)
		i = first;
	for (; i < vf->map->nr_pieces && pieces[i].new_vaddr == now; i++) {
		parts->work++;
		if (pieces[i].old_vaddr != old || !pieces[i].old_size || vf->inlined[i].behind)
			continue;
		if (parts->nr == PARTS_MAX)
			return false;
		parts->work += pieces[i].old_size;
		parts->piece[parts->nr++] = i;
		return true;
	}
	return false;
}

/* Return: the part that stands for @old in the code that @p belongs to; NULL: none does. */
static const struct mp_map_piece *part_for(const struct vf *vf, const struct mp_map_piece *p,
					   uint64_t old)
{
	for (uint32_t i = vf->inlined[p - vf->map->pieces].behind; i; i = vf->inlined[i].next)
		if (vf->map->pieces[i].old_vaddr == old)
			return &vf->map->pieces[i];
	return NULL;
}

bool vf_leaves_by(const struct vf *vf, const struct mp_map_piece *p, const struct vf_insn *last)
{
	return last->kind == VF_JMP && !part_for(vf, p, last->target);
}

bool vf_leaves(const struct vf *vf, const struct mp_map_piece *p)
{
	struct vf_insn last;

	return find_last(vf, p, &last) != UINT64_MAX && vf_leaves_by(vf, p, &last);
}

/* Has @p a call at @k, or an instruction that raises the stack pointer and then a call, in place of a jump? */
static bool has_call(const struct vf *vf, const struct mp_map_piece *p, uint64_t k)
{
	const uint8_t *b;

	if (vf_raises(vf, p, k))
		k += VF_RAISE_SIZE;
	b = k + VF_CALL_SIZE <= p->new_size ? mp_elf_bytes(vf->n, p->new_vaddr + k, 2) : NULL;
	return b && (b[0] == 0xe8 || (b[0] == 0xff && b[1] == 0x15));
}

/* Does a function, or a part of one, begin at @old? A call right before does not return. */
static bool begins_function(const struct vf *vf, uint64_t old)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old_eh, old);

	return fde && fde->start == old;
}

/* Follows the branches at the end of @p, in the original and now, to further parts. Return: false: no parts. */
static bool follow(const struct vf *vf, struct parts *parts, const struct mp_map_piece *p)
{
	uint64_t end = p->new_vaddr + p->new_size, fall = p->old_vaddr + p->old_size, at, rest;
	const uint8_t *b = mp_elf_bytes(vf->n, p->new_vaddr, p->new_size);
	struct vf_insn last = {0}, now = {0};
	uint64_t k = find_last(vf, p, &last);
	bool branches = last.kind == VF_JCC, swapped = false;

	if (k == UINT64_MAX || (!b && p->new_size))
		return false;
	if (last.kind == VF_STOP || (last.kind == VF_JMP && has_call(vf, p, k)))
		return true;
	if (last.kind == VF_JMP)
		fall = last.target;
	else if (last.kind == VF_CALL && vf_is_via_slot(vf, p, k))
		k += VF_SLOT_BRANCH;
	else if (!branches)
		k = p->old_size;
	if (k > p->new_size)
		return false;
	at = p->new_vaddr + k;
	/* The next copy may be that of the next function by chance, in place of another call. */
	if ((last.kind == VF_CALL || last.kind == VF_ICALL) && at == end &&
	    begins_function(vf, fall))
		return true;
	if (branches) {
		if (!vf_decode(b + k, end - at, at, &now) || now.kind != VF_JCC)
			return false;
		swapped = now.cc != last.cc;
		if (!add_part(vf, parts, parts->piece[0], swapped ? fall : last.target, now.target))
			return false;
		at += now.len;
	}
	if (at == end)
		rest = vf_falls_to(vf, p);
	else if (vf_decode(b + (at - p->new_vaddr), end - at, at, &now) && now.kind == VF_JMP)
		rest = now.target;
	else
		return false;
	if (add_part(vf, parts, parts->piece[0], swapped ? last.target : fall, rest))
		return true;
	/* A call at the end of the function does not return. Which functions end there is not known yet. */
	return at == end && (last.kind == VF_CALL || last.kind == VF_ICALL);
}

/* Do pieces stand for the function that goes on at the original of piece @first: all to which branches lead? */
static bool find_parts(const struct vf *vf, uint32_t first, struct parts *parts)
{
	parts->nr = 0;
	if (!add_part(vf, parts, first, vf->map->pieces[first].old_vaddr,
		      vf->map->pieces[first].new_vaddr) ||
	    parts->piece[0] != first)
		return false;
	for (uint32_t i = 0; i < parts->nr; i++)
		if (!follow(vf, parts, &vf->map->pieces[parts->piece[i]]))
			return false;
	return true;
}

/* A file without names may walk its stack. */
static bool walks_stack(const struct mp_elf *elf)
{
	static const char *const names[] = {
		"backtrace",	"_Unwind_Backtrace", "_Unwind_FindEnclosingFunction",
		"unw_step",	"unw_backtrace",     "_ULx86_64_step",
		"_Ux86_64_step"};

	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			if (elf->symbols[i].name && !strcmp(elf->symbols[i].name, names[k]))
				return true;
	return !elf->nr_symbols;
}

int vf_find_inlined(struct vf *vf)
{
	const struct mp_map_piece *p = vf->map->pieces;
	struct parts parts = {.work = 0};

	vf->walks_stack = walks_stack(vf->o);

	vf->inlined = calloc((size_t)vf->map->nr_pieces + 1, sizeof(*vf->inlined));
	if (!vf->inlined)
		return -ENOMEM;
	/* An output with stubs of its own keeps all calls. */
	if (vf_has_stubs(vf) || vf->audit_section || vf->call_section)
		return 0;
	for (uint32_t i = 1; i < vf->map->nr_pieces; i++) {
		uint64_t callee;

		if (vf->inlined[i - 1].behind || vf->inlined[i].behind ||
		    p[i - 1].old_size < VF_CALL_SIZE ||
		    (p[i - 1].new_size != p[i - 1].old_size - VF_CALL_SIZE &&
		     !vf_lowers(vf, &p[i - 1])))
			continue;
		callee = callee_of(vf, &p[i - 1]);
		if (!callee || p[i].old_vaddr != behind_landing(vf, callee) ||
		    !find_parts(vf, i, &parts))
			parts.nr = 0;
		for (uint32_t n = 0; n < parts.nr; n++)
			vf->inlined[parts.piece[n]] = (struct vf_inlined){
				.behind = i, .next = n + 1 < parts.nr ? parts.piece[n + 1] : 0};
		/* Each byte belongs to one call only; those that are found in vain are few. */
		if (parts.work > WORK_PER_BYTE * (vf->n->size + vf->map->nr_pieces))
			return vf_refuse(vf, p[i].new_vaddr,
					 "the map seems to replace the same calls again and again");
	}
	return 0;
}

/* Return: the last part that stands in place of the call that @p replaces. */
static const struct mp_map_piece *last_part(const struct vf *vf, const struct mp_map_piece *p)
{
	const struct mp_map_piece *end = vf->map->pieces + vf->map->nr_pieces;
	uint32_t behind = vf->inlined[p - vf->map->pieces].behind;

	p = vf->map->pieces + behind;
	while (p + 1 < end && vf->inlined[p + 1 - vf->map->pieces].behind == behind &&
	       p[1].new_vaddr == p->new_vaddr + p->new_size)
		p++;
	return p;
}

bool vf_is_last_part(const struct vf *vf, const struct mp_map_piece *p)
{
	return p == last_part(vf, p);
}

bool vf_inlined_code_at(const struct vf *vf, uint32_t i, struct vf_inlined_code *code)
{
	const struct mp_map_piece *p = &vf->map->pieces[i], *caller, *last;

	if (!i || vf->inlined[i].behind != i)
		return false;
	caller = vf_inlined_caller(vf, p);
	last = last_part(vf, p);
	*code = (struct vf_inlined_code){
		.piece = i,
		.call = call_of(caller),
		.callee = callee_of(vf, caller),
		.start = p->new_vaddr,
		.end = last->new_vaddr + last->new_size,
	};
	return true;
}

bool vf_lies_apart(const struct vf *vf, const struct mp_map_piece *p)
{
	return vf_is_inlined(vf, p) && (p > last_part(vf, p) || p <= vf_inlined_caller(vf, p));
}

bool vf_inlined_code(const struct vf *vf, uint64_t now, struct vf_inlined_code *code)
{
	uint32_t i = vf_first_piece(vf, now);

	/* Several pieces may begin at @now: a block that was only a call is empty, and so is the code of a function that
	 * does nothing. */
	while (i < vf->map->nr_pieces && vf->map->pieces[i].new_vaddr == now)
		if (vf_inlined_code_at(vf, i++, code) && code->end > code->start)
			return true;
	return false;
}

bool vf_inlined_holds(const struct vf *vf, uint64_t old)
{
	for (uint32_t i = 0; i < vf->map->nr_pieces; i++)
		if (vf->inlined[i].behind &&
		    old - vf->map->pieces[i].old_vaddr < vf->map->pieces[i].old_size)
			return true;
	return false;
}

bool vf_is_part(const struct vf *vf, const struct mp_map_piece *p, uint64_t old, uint64_t now)
{
	const struct mp_map_piece *part = part_for(vf, p, old);

	return part && part->new_vaddr == now;
}

bool vf_is_part_behind(const struct vf *vf, const struct mp_map_piece *p, uint64_t old)
{
	return part_for(vf, p, old) > p;
}

bool vf_joins_last_part(const struct vf *vf, const struct mp_map_piece *p, bool raised,
			uint64_t now)
{
	const struct mp_map_piece *last = last_part(vf, p);
	bool lowered = vf_lowers(vf, vf_inlined_caller(vf, p));
	struct vf_insn insn;
	uint64_t k = find_last(vf, last, &insn), jump = last->old_vaddr + k;

	if (p == last || k == UINT64_MAX)
		return false;
	if (lowered && raised)
		k += VF_RAISE_SIZE;
	/* In place of a jump to another function, the last part raises the stack pointer and calls that function. */
	if (vf_leaves_by(vf, last, &insn))
		k += vf_calls_instead(vf, last, k, jump);
	else if (insn.kind != VF_STOP)
		return false;
	return (!lowered || raised || insn.kind == VF_STOP) && now == last->new_vaddr + k;
}

int vf_make_answers(const struct vf *vf)
{
	vf->marks->below = calloc((size_t)vf->old_eh.nr_fdes + 1, 1);
	return vf->marks->below ? 0 : -ENOMEM;
}

bool vf_lacks_call(const struct vf *vf, const struct mp_map_piece *p, uint64_t k)
{
	uint32_t i = (uint32_t)(p - vf->map->pieces) + 1;

	return i < vf->map->nr_pieces && vf->inlined[i].behind == i &&
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
	const struct vf_fde *fde = vf_eh_find(&vf->old_eh, target);

	for (uint32_t i = vf->inlined[p - vf->map->pieces].behind; fde && i;
	     i = vf->inlined[i].next)
		if (vf->map->pieces[i].old_vaddr - fde->start < fde->size)
			return true;
	return false;
}

static const char *why_no_call(const struct vf *vf, const struct mp_map_piece *p,
			       const struct vf_insn *insn, const struct vf_full *f)
{
	if (vf->walks_stack)
		return "a file that walks its own stack lost a call of a function that calls "
		       "others";
	if (f->z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return "an inlined function has a far call";
	return insn->kind == VF_CALL && insn->target == callee_of(vf, vf_inlined_caller(vf, p))
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

		if (!vf_bits_get(&vf->grid, at) || !vf_decode_full(vf, at, end, &f) ||
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
	    vf->old_eh.cies[fde->cie].signal)
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
	if (!vf_bits_get(&vf->grid, call_of(p)) ||
	    !vf_bits_get(&vf->grid, call_of(p) + VF_CALL_SIZE))
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
	const struct mp_map_piece *caller = vf_inlined_caller(vf, p);
	uint64_t callee = callee_of(vf, caller);
	const struct vf_fde *fde = vf_eh_find(&vf->old_eh, callee);
	/* A function has another FDE for its part for cold code, if there is one. */
	const struct vf_fde *own = vf_eh_find(&vf->old_eh, p->old_vaddr);
	int ret;

	if (caller + 1 == p && caller->new_vaddr + caller->new_size != p->new_vaddr)
		return vf_refuse(vf, p->new_vaddr, "inlined code does not follow its caller");
	if (!fde || fde->start != callee || !own ||
	    p->old_size > own->start + own->size - p->old_vaddr ||
	    !mp_elf_is_readonly(vf->o, p->old_vaddr))
		return vf_refuse(vf, call_of(caller), "the replaced call leads to no function");
	ret = check_tables(vf, own);
	if (!ret)
		ret = vf_check_known(vf, own, p->old_vaddr);
	if (!ret && caller + 1 == p)
		ret = check_caller(vf, caller);
	if (!ret && caller + 1 == p)
		ret = vf_check_stack(vf, (uint32_t)(p - vf->map->pieces), vf_lowers(vf, caller));
	return ret ? ret : check_insns(vf, p);
}
