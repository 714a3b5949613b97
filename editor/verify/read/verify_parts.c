// SPDX-License-Identifier: Apache-2.0
/*
 * verify_parts - which pieces of the map stand in place of a call, and where control goes on behind them. verify_inline
 * proves that they may.
 */
#include <errno.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/read/verify_parts.h"
#include "editor/verify/read/verify_piece_index.h"
#include "editor/verify/read/verify_plt.h"

enum {
	LANDING = 4, /* bytes of endbr64 */
	PARTS_MAX = 200,
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

uint64_t vf_call_of(const struct mp_map_piece *p)
{
	return p->old_vaddr + p->old_size - VF_CALL_SIZE;
}

uint64_t vf_callee_of(const struct vf *vf, const struct mp_map_piece *p)
{
	const uint8_t *b;
	uint64_t at;

	if (p->old_size < VF_CALL_SIZE || !vf_is_text(vf, p->old_vaddr) ||
	    p->old_size > vf->old.text_end - p->old_vaddr)
		return 0;
	at = vf_call_of(p);
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
		if (pieces[i].old_vaddr != old || !pieces[i].old_size ||
		    vf->index.inlined[i].behind)
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
	for (uint32_t i = vf->index.inlined[p - vf->map->pieces].behind; i;
	     i = vf->index.inlined[i].next)
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
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, old);

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

/*
 * A file without names may walk its stack. So may one whose unwinder has no names, which asks the loader for tables, and one
 * with the runtime of Fortran, Ada or D: it prints the stack when the program fails.
 */
static bool walks_stack(const struct mp_elf *elf)
{
	static const struct {
		const char *name;
		bool begins; /* any name that begins so */
	} names[] = {
		{"backtrace", false},
		{"_Unwind_Backtrace", false},
		{"_Unwind_FindEnclosingFunction", false},
		{"_Unwind_ForcedUnwind", false},
		{"unw_step", false},
		{"unw_backtrace", false},
		{"_ULx86_64_step", false},
		{"_Ux86_64_step", false},
		{"dl_iterate_phdr", false},
		{"_dl_find_object", false},
		{"_gfortran_", true},
		{"__gnat_", true},
		{"_d_throw", true},
	};

	bool stripped = true;

	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];
		const char *name = sym->name;

		/* A stripped file that imports nothing contains its libraries, and perhaps an unwinder without a name. */
		if (!sym->dynamic || (sym->bind == STB_GLOBAL && sym->shndx == SHN_UNDEF))
			stripped = false;
		for (size_t k = 0; name && k < sizeof(names) / sizeof(names[0]); k++)
			if (names[k].begins ? !strncmp(name, names[k].name, strlen(names[k].name))
					    : !strcmp(name, names[k].name))
				return true;
	}
	return stripped;
}

int vf_find_inlined(struct vf *vf)
{
	const struct mp_map_piece *p = vf->map->pieces;
	struct parts parts = {.work = 0};

	vf->old.walks_stack = walks_stack(vf->o);

	vf->index.inlined = calloc((size_t)vf->map->nr_pieces + 1, sizeof(*vf->index.inlined));
	if (!vf->index.inlined)
		return -ENOMEM;
	/* An output with stubs of its own keeps all calls. */
	if (vf_has_stubs(vf) || vf->stubs.audit_section || vf->stubs.call_section)
		return 0;
	for (uint32_t i = 1; i < vf->map->nr_pieces; i++) {
		uint64_t callee;

		if (vf->index.inlined[i - 1].behind || vf->index.inlined[i].behind ||
		    p[i - 1].old_size < VF_CALL_SIZE ||
		    (p[i - 1].new_size != p[i - 1].old_size - VF_CALL_SIZE &&
		     !vf_lowers(vf, &p[i - 1])))
			continue;
		callee = vf_callee_of(vf, &p[i - 1]);
		if (!callee || p[i].old_vaddr != behind_landing(vf, callee) ||
		    !find_parts(vf, i, &parts))
			parts.nr = 0;
		for (uint32_t n = 0; n < parts.nr; n++)
			vf->index.inlined[parts.piece[n]] = (struct vf_inlined){
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
	uint32_t behind = vf->index.inlined[p - vf->map->pieces].behind;

	p = vf->map->pieces + behind;
	while (p + 1 < end && vf->index.inlined[p + 1 - vf->map->pieces].behind == behind &&
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

	if (!i || vf->index.inlined[i].behind != i)
		return false;
	caller = vf_inlined_caller(vf, p);
	last = last_part(vf, p);
	*code = (struct vf_inlined_code){
		.piece = i,
		.call = vf_call_of(caller),
		.callee = vf_callee_of(vf, caller),
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
		if (vf->index.inlined[i].behind &&
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

bool vf_lacks_call(const struct vf *vf, const struct mp_map_piece *p, uint64_t k)
{
	uint32_t i = (uint32_t)(p - vf->map->pieces) + 1;

	return i < vf->map->nr_pieces && vf->index.inlined[i].behind == i &&
	       k + VF_CALL_SIZE == p->old_size;
}
