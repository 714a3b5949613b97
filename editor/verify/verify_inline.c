// SPDX-License-Identifier: Apache-2.0
/*
 * verify_inline - proves that a function's instructions may stand in place of a call of it. Called by
 * verify_pieces, which compares these instructions, and verify_unwind.
 *
 * The rule: the original has a plain `call function` of 5 bytes, and control goes on behind it. The
 * function consists of an endbr64, if any, and blocks that end in branches to one another or in plain
 * returns. Its instructions come from a list of kinds that have no effect but on registers, flags and the
 * memory that they name; none names the stack pointer. Then the copy has these blocks as its parts, in any
 * order, and the stack pointer is 8 higher in them. What a call does besides is to write the return address
 * below the caller's stack pointer. No instruction of the caller's FDE names memory there.
 */
#include <errno.h>

#include "editor/verify/verify_private.h"

enum {
	LANDING = 4, /* bytes of endbr64 */
	RSP = 7,     /* in unwind rows */
	PARTS_MAX = 32,
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

/* Return: the offset of the last instruction of the original of @p, *@last; UINT64_MAX: undecodable. */
static uint64_t find_last(const struct vf *vf, const struct mp_map_piece *p, struct vf_insn *last)
{
	const uint8_t *b = mp_elf_bytes(vf->o, p->old_vaddr, p->old_size);
	uint64_t k = 0;

	for (;; k += last->len) {
		if (!b || !vf_decode(b + k, p->old_size - k, p->old_vaddr + k, last))
			return UINT64_MAX;
		if (k + last->len == p->old_size)
			return k;
	}
}

/* Places of a function: those to which its blocks lead, and those that a part stands for. */
struct places {
	uint64_t vaddr[3 * PARTS_MAX + 1];
	bool wanted[3 * PARTS_MAX + 1], found[3 * PARTS_MAX + 1];
	uint32_t nr;
};

static uint32_t place_at(struct places *places, uint64_t vaddr)
{
	uint32_t i = 0;

	while (i < places->nr && places->vaddr[i] != vaddr)
		i++;
	if (i == places->nr) {
		places->vaddr[i] = vaddr;
		places->wanted[i] = places->found[i] = false;
		places->nr++;
	}
	return i;
}

/* Does a part stand for each place to which a block leads, and for no other? */
static bool are_complete(const struct places *places)
{
	for (uint32_t i = 0; i < places->nr; i++)
		if (places->wanted[i] != places->found[i])
			return false;
	return true;
}

/*
 * Return: how many pieces from @first on stand for the function that goes on at @entry: one for each
 * place that its blocks lead to; 0: they do not.
 */
static uint32_t count_parts(const struct vf *vf, uint32_t first, uint64_t entry)
{
	struct places places = {.nr = 0};

	places.wanted[place_at(&places, entry)] = true;
	for (uint32_t n = 0; n < PARTS_MAX && first + n < vf->map->nr_pieces; n++) {
		const struct mp_map_piece *p = &vf->map->pieces[first + n];
		uint32_t place = place_at(&places, p->old_vaddr);
		struct vf_insn last;

		if (!p->old_size || places.found[place] || find_last(vf, p, &last) == UINT64_MAX)
			return 0;
		places.found[place] = true;
		if (last.kind == VF_JCC || last.kind == VF_JMP)
			places.wanted[place_at(&places, last.target)] = true;
		if (last.kind != VF_STOP && last.kind != VF_JMP)
			places.wanted[place_at(&places, p->old_vaddr + p->old_size)] = true;
		if (are_complete(&places))
			return n + 1;
	}
	return 0;
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
		uint32_t nr = 0;
		uint64_t callee;

		if (vf->inlined[i - 1] || p[i - 1].old_size < VF_CALL_SIZE ||
		    p[i - 1].new_size != p[i - 1].old_size - VF_CALL_SIZE)
			continue;
		callee = callee_of(vf, &p[i - 1]);
		if (callee && p[i].old_vaddr == behind_landing(vf, callee))
			nr = count_parts(vf, i, p[i].old_vaddr);
		for (uint32_t n = 0; n < nr; n++)
			vf->inlined[i + n] = (uint8_t)(n + 1);
	}
	return 0;
}

/* Return: the last part of the code that @p belongs to. */
static const struct mp_map_piece *last_part(const struct vf *vf, const struct mp_map_piece *p)
{
	const struct mp_map_piece *end = vf->map->pieces + vf->map->nr_pieces;

	while (p + 1 < end &&
	       vf->inlined[p + 1 - vf->map->pieces] == vf->inlined[p - vf->map->pieces] + 1)
		p++;
	return p;
}

bool vf_inlined_code_at(const struct vf *vf, uint32_t i, struct vf_inlined_code *code)
{
	const struct mp_map_piece *p = &vf->map->pieces[i], *caller, *last;

	if (vf->inlined[i] != 1)
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

bool vf_inlined_code(const struct vf *vf, uint64_t now, struct vf_inlined_code *code)
{
	uint32_t i = vf_first_piece(vf, now);

	/* What is before a call may be empty. */
	while (i < vf->map->nr_pieces && vf->map->pieces[i].new_vaddr == now)
		if (vf_inlined_code_at(vf, i++, code))
			return true;
	return false;
}

bool vf_is_part(const struct vf *vf, const struct mp_map_piece *p, uint64_t old, uint64_t now)
{
	const struct mp_map_piece *last = last_part(vf, p);

	for (const struct mp_map_piece *q = vf_inlined_caller(vf, p) + 1; q <= last; q++)
		if (q->old_vaddr == old)
			return q->new_vaddr == now;
	return false;
}

bool vf_is_last_return(const struct vf *vf, const struct mp_map_piece *p, uint64_t now)
{
	const struct mp_map_piece *last = last_part(vf, p);
	struct vf_insn insn;
	uint64_t k = find_last(vf, last, &insn);

	return p != last && k != UINT64_MAX && insn.kind == VF_STOP && now == last->new_vaddr + k;
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

static bool is_plain_return(const struct vf *vf, uint64_t at, const struct vf_insn *insn,
			    const struct vf_full *f)
{
	return f->z.mnemonic == ZYDIS_MNEMONIC_RET && f->z.opcode == 0xc3 &&
	       (insn->len == 1 || (insn->len == 2 && *mp_elf_bytes(vf->o, at, 1) == 0xf3));
}

/* May the instruction at @at stand in an inlined function? @last: it ends its block. NULL: it may. */
static const char *why_not(const struct vf *vf, const struct vf_fde *fde, uint64_t at,
			   const struct vf_insn *insn, const struct vf_full *f, bool last)
{
	if (!vf_piece_holding(vf, at))
		return "an inlined function has no copy of its own";
	if (insn->kind == VF_STOP)
		return last && is_plain_return(vf, at, insn, f)
			       ? NULL
			       : "an inlined function does not end in a plain return";
	if (last && (insn->kind == VF_JCC || insn->kind == VF_JMP))
		return NULL;
	if (insn->kind != VF_OTHER || insn->int3 || !is_allowed(&f->z))
		return "an inlined function has an instruction of another kind";
	if (names_rsp(f))
		return "an inlined function uses the stack pointer";
	if (insn->disp_off && (insn->eip_relative || insn->target - fde->start < fde->size))
		return "an inlined function names a place of its own";
	return NULL;
}

/* Return: 0, or a refusal. Does [@at, @end) consist of allowed instructions? */
static int check_insns(const struct vf *vf, const struct vf_fde *fde, uint64_t at, uint64_t end)
{
	struct vf_insn insn;
	struct vf_full f;

	for (; at < end; at += insn.len) {
		const uint8_t *b = mp_elf_bytes(vf->o, at, 1);
		const char *why;

		if (!vf_bits_get(&vf->grid, at) || !vf_decode_full(vf, at, end, &f) ||
		    !vf_decode(b, end - at, at, &insn) || insn.len != f.z.length)
			return vf_refuse(vf, at, "an inlined function is undecodable");
		why = why_not(vf, fde, at, &insn, &f, at + insn.len == end);
		if (why)
			return vf_refuse(vf, at, "%s", why);
	}
	return 0;
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
	const struct mp_map_piece *caller = vf_inlined_caller(vf, p);
	uint64_t callee = callee_of(vf, caller);
	const struct vf_fde *fde = vf_eh_find(&vf->old_eh, callee);
	int ret = 0;

	if (p[-1].new_vaddr + p[-1].new_size != p->new_vaddr)
		return vf_refuse(vf, p->new_vaddr, "inlined code does not follow its caller");
	if (!fde || fde->start != callee || p->old_vaddr < callee ||
	    p->old_vaddr + p->old_size > fde->start + fde->size ||
	    !mp_elf_is_readonly(vf->o, callee))
		return vf_refuse(vf, call_of(caller), "the replaced call leads to no function");
	if (caller + 1 == p) {
		ret = check_caller(vf, caller);
		if (!ret)
			ret = check_frame(vf, fde);
	}
	return ret ? ret : check_insns(vf, fde, p->old_vaddr, p->old_vaddr + p->old_size);
}
