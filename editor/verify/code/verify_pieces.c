// SPDX-License-Identifier: Apache-2.0
/*
 * verify_pieces - checks that each copy is the same code as its original, and that control
 * leaves it for the same places. verify calls it after the scan, before unwind and diff.
 */
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/code/verify_inline.h"
#include "editor/verify/code/verify_note.h"
#include "editor/verify/code/verify_pieces.h"
#include "editor/verify/code/verify_version_tables.h"
#include "editor/verify/known/verify_known.h"
#include "editor/verify/read/verify_parallel.h"
#include "editor/verify/read/verify_parts.h"
#include "editor/verify/read/verify_piece_index.h"
#include "editor/verify/read/verify_plt.h"
#include "editor/verify/stubs/verify_count.h"
#include "editor/verify/stubs/verify_unproved.h"
#include "editor/verify/stubs/verify_versions.h"

/* One block, its copy, and how far both were compared. */
struct pair {
	const struct vf *vf;
	const struct mp_map_piece *p;
	const uint8_t *old, *new;
	uint64_t k;  /* offset in both; behind a call through a slot, only in @new */
	bool inside; /* inlined code: control goes on to another part of it */
};

/* Target of the 4-byte field at @off of the new instruction, relative to the instruction's end. */
static uint64_t relative_to(const struct pair *x, const struct vf_insn *insn, uint8_t off)
{
	int32_t disp;

	memcpy(&disp, x->new + x->k + off, 4);
	return x->p->new_vaddr + x->k + insn->len + (uint64_t)(int64_t)disp;
}

/* Is @now a table of audited functions? vf_check_version_tables() checks what it stands for. */
static bool names_version_table(const struct pair *x, uint64_t now)
{
	return vf_is_in_version_tables(x->vf, now) && vf_version_at(x->vf, x->p->new_vaddr);
}

/* Are bytes [from, to) of both equal, except for function addresses by relocation? */
static bool same_bytes(struct pair *x, const struct vf_insn *insn, uint8_t from, uint8_t to)
{
	const uint8_t *a = x->old + x->k, *b = x->new + x->k;
	const uint8_t fields[] = {insn->abs_off, insn->imm_size >= 4 ? insn->imm_off : 0};
	uint8_t want[16];

	memcpy(want, a, insn->len);
	for (size_t i = 0; i < sizeof(fields); i++) {
		uint8_t f = fields[i];

		if (f && f >= from && f + 4 <= to &&
		    (vf_note_field(x->vf, x->p->old_vaddr + x->k + f, b + f) ||
		     (f == insn->abs_off &&
		      names_version_table(x, vf_displacement_target(b + f, 0)))))
			memcpy(want + f, b + f, 4);
	}
	return !memcmp(want + from, b + from, (size_t)(to - from));
}

static int compare_insn(struct pair *x, const struct vf_insn *insn)
{
	uint64_t at = x->p->old_vaddr + x->k, now;
	uint8_t off = insn->disp_off ? insn->disp_off : insn->rel_off;

	if (!same_bytes(x, insn, 0, off ? off : insn->len) ||
	    (off && !same_bytes(x, insn, off + 4, insn->len)))
		return vf_refuse(x->vf, x->p->new_vaddr + x->k,
				 "instruction differs from the one at %#llx",
				 (unsigned long long)at);
	if (!off)
		return 0;
	if (insn->eip_relative)
		return vf_refuse(x->vf, at, "32-bit rip-relative operand was moved");
	now = relative_to(x, insn, off);
	if (insn->disp_off && now != insn->target && names_version_table(x, now))
		return 0;
	if (insn->disp_off) {
		if (!vf_note_pointer(x->vf, insn->target, now) ||
		    (now != insn->target && !insn->lea))
			return vf_refuse(x->vf, x->p->new_vaddr + x->k,
					 "operand names %#llx instead of %#llx, unlike the "
					 "original at %#llx",
					 (unsigned long long)now, (unsigned long long)insn->target,
					 (unsigned long long)at);
		return 0;
	}
	if (insn->target == at + insn->len)
		return vf_refuse(x->vf, at, "a call of the next instruction was moved");
	if (!vf_same_place(x->vf, insn->target, now))
		return vf_refuse(x->vf, x->p->new_vaddr + x->k,
				 "calls %#llx instead of %#llx, unlike the original at %#llx",
				 (unsigned long long)now, (unsigned long long)insn->target,
				 (unsigned long long)at);
	return 0;
}

static bool leads_to(const struct pair *x, uint64_t old, uint64_t now)
{
	if (now == VF_NOWHERE)
		return false;
	return x->inside ? vf_is_part(x->vf, x->p, old, now) : vf_same_place(x->vf, old, now);
}

/*
 * leads_to() for control that falls, or jumps, out of the copy. One that has no code, since its jump was dropped, must
 * lead to a later one: a circle of empty copies, as of a jump to itself, would let control out of a loop.
 */
static bool leads_on(const struct pair *x, uint64_t old, uint64_t now)
{
	if (!leads_to(x, old, now))
		return false;
	return x->p->new_size || (x->inside ? vf_is_part_behind(x->vf, x->p, old)
					    : vf_is_copy_behind(x->vf, x->p, old, now));
}

/* Code of the copy behind the common part: [jcc] [jmp]. */
struct tail {
	bool has_jcc;
	uint8_t cc;
	uint64_t taken, rest; /* @rest: where control goes if the jcc is not taken */
};

static int read_tail(struct pair *x, struct tail *tail)
{
	const uint64_t end = x->p->new_vaddr + x->p->new_size;
	uint64_t at = x->p->new_vaddr + x->k;
	const uint8_t *p = x->new + x->k;
	struct vf_insn insn;

	memset(tail, 0, sizeof(*tail));
	if (at < end && vf_decode(p, end - at, at, &insn) && insn.kind == VF_JCC) {
		tail->has_jcc = true;
		tail->cc = insn.cc;
		tail->taken = insn.target;
		at += insn.len;
		p += insn.len;
	}
	if (at == end) {
		tail->rest = vf_falls_to(x->vf, x->p);
		return 0;
	}
	if (!vf_decode(p, end - at, at, &insn) || insn.kind != VF_JMP || at + insn.len != end)
		return vf_refuse(x->vf, at, "the copy of %#llx does not end in a jump",
				 (unsigned long long)x->p->old_vaddr);
	tail->rest = insn.target;
	return 0;
}

static int check_cond(struct pair *x, const struct vf_insn *jcc, const struct tail *tail)
{
	uint64_t taken = jcc->target, fall = x->p->old_vaddr + x->p->old_size;
	uint64_t at = x->p->new_vaddr + x->k;

	if (!tail->has_jcc || (tail->cc | 1) != (jcc->cc | 1))
		return vf_refuse(x->vf, at, "the copy of %#llx does not test its condition",
				 (unsigned long long)x->p->old_vaddr);
	if (tail->cc != jcc->cc) {
		uint64_t swap = taken;

		taken = fall;
		fall = swap;
	}
	if (!leads_to(x, taken, tail->taken))
		return vf_refuse(x->vf, at, "branch leads to %#llx instead of %#llx",
				 (unsigned long long)tail->taken, (unsigned long long)taken);
	if (!leads_to(x, fall, tail->rest))
		return vf_refuse(x->vf, at, "branch not taken leads to %#llx instead of %#llx",
				 (unsigned long long)tail->rest, (unsigned long long)fall);
	return 0;
}

static int check_rest(struct pair *x, uint64_t old)
{
	struct tail tail;
	int ret = read_tail(x, &tail);

	if (ret)
		return ret;
	if (tail.has_jcc || !leads_on(x, old, tail.rest))
		return vf_refuse(x->vf, x->p->new_vaddr + x->k, "leads to %#llx instead of %#llx",
				 (unsigned long long)tail.rest, (unsigned long long)old);
	return 0;
}

/* A call at the end of a function never returns: compilers emit nothing behind it. */
static bool may_end_here(const struct pair *x, const struct vf_insn *last)
{
	uint64_t end = x->p->old_vaddr + x->p->old_size;
	const struct vf_fde *fde = vf_eh_find(&x->vf->old.eh, x->p->old_vaddr);

	return (last->kind == VF_CALL || last->kind == VF_ICALL) && fde &&
	       end == fde->start + fde->size;
}

static int check_leave(struct pair *x, const struct vf_insn *last)
{
	uint64_t end = x->p->old_vaddr + x->p->old_size;
	struct tail tail;
	int ret;

	switch (last->kind) {
	case VF_JCC: ret = read_tail(x, &tail); return ret ? ret : check_cond(x, last, &tail);
	case VF_JMP: return check_rest(x, last->target);
	case VF_STOP:
	case VF_IJMP_REG:
	case VF_IJMP_MEM:
		if (x->k != x->p->new_size)
			return vf_refuse(x->vf, x->p->new_vaddr + x->k,
					 "the copy of %#llx has more code than the original",
					 (unsigned long long)x->p->old_vaddr);
		return 0;
	default:
		if (x->k == x->p->new_size && may_end_here(x, last))
			return 0;
		return check_rest(x, end);
	}
}

/* Why this instruction may not be moved, or not stand inside a block; NULL: it may. */
static const char *cannot_move(const struct pair *x, const struct vf_insn *insn, bool last)
{
	switch (insn->kind) {
	case VF_ODD: return "loop, jrcxz or xbegin was moved";
	case VF_CALL:
		return insn->rel_size == 4 ? NULL
					   : "a call without a 32-bit displacement was moved";
	case VF_OTHER:
	case VF_ICALL: return NULL;
	default:
		if (!last)
			return "a moved block has a branch in its middle";
		return x->p->old_size ? NULL : "a moved block is empty";
	}
}

/* Do all instructions of the original serve only code markers? The copy may lack them then. */
static bool may_be_left_out(const struct vf *vf, const struct mp_map_piece *p)
{
	uint64_t at = p->old_vaddr, end = p->old_vaddr + p->old_size;

	while (at < end && vf_bits_get(&vf->old.may_lack, at))
		at = vf_bits_next(&vf->old.grid, at + 1, end);
	return at == end;
}

/* The copy of a block that is left out has no code but perhaps a jump to what follows. */
static bool is_left_out(const struct pair *x)
{
	struct vf_insn insn;

	return may_be_left_out(x->vf, x->p) &&
	       (!x->p->new_size || (vf_decode(x->new, x->p->new_size, x->p->new_vaddr, &insn) &&
				    insn.kind == VF_JMP && insn.len == x->p->new_size));
}

static int check_piece(const struct vf *vf, const struct mp_map_piece *p)
{
	struct pair x = {.vf = vf, .p = p};
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, p->old_vaddr);
	struct vf_insn insn = {0};
	int ret;

	x.old = mp_elf_bytes(vf->o, p->old_vaddr, p->old_size);
	x.new = mp_elf_bytes(vf->n, p->new_vaddr, p->new_size);
	if (!x.old || !x.new)
		return vf_refuse(vf, p->old_vaddr, "the map names bytes outside the file");
	if (!fde || p->old_vaddr + p->old_size > fde->start + fde->size)
		return vf_refuse(vf, p->old_vaddr, "a moved block has no FDE");
	if (fde->flags & VF_FDE_BAD)
		return vf_refuse(vf, p->old_vaddr,
				 "a moved block belongs to a function that cannot be decoded");
	if (!mp_elf_is_readonly(vf->o, p->old_vaddr))
		return vf_refuse(vf, p->old_vaddr, "code in writable memory was moved");
	ret = vf_check_known(vf, fde, p->old_vaddr);
	if (ret)
		return ret;
	if (is_left_out(&x)) {
		vf->result->report.nr_left_out++;
		return check_rest(&x, p->old_vaddr + p->old_size);
	}
	while (x.k < p->old_size) {
		uint64_t at = p->old_vaddr + x.k;
		const char *why;

		if (!vf_bits_get(&vf->old.grid, at) ||
		    !vf_decode(x.old + x.k, p->old_size - x.k, at, &insn))
			return vf_refuse(vf, at, "a moved block is not made of whole instructions");
		why = cannot_move(&x, &insn, x.k + insn.len == p->old_size);
		if (why)
			return vf_refuse(vf, at, "%s", why);
		if (insn.kind == VF_JCC || insn.kind == VF_JMP ||
		    (insn.kind == VF_CALL &&
		     (vf_is_via_slot(vf, p, x.k) || vf_lacks_call(vf, p, x.k))))
			break;
		if (insn.len > p->new_size - x.k)
			return vf_refuse(vf, p->new_vaddr, "the copy of %#llx is too short",
					 (unsigned long long)p->old_vaddr);
		ret = compare_insn(&x, &insn);
		if (ret)
			return ret;
		vf->result->report.nr_insns++;
		x.k += insn.len;
	}
	vf->marks->common[p - vf->map->pieces] = (uint32_t)x.k;
	if (insn.kind == VF_CALL && vf_lacks_call(vf, p, x.k))
		return 0;
	if ((insn.kind == VF_CALL || insn.kind == VF_JMP) && vf_is_via_slot(vf, p, x.k)) {
		vf->result->report.nr_insns++;
		vf->result->report.nr_via_slot++;
		if (insn.kind == VF_JMP)
			return 0;
		x.k += VF_SLOT_BRANCH;
	}
	return check_leave(&x, &insn);
}

/*
 * The function returns, or by the jump @last it leaves for another one. If the stack pointer was lowered, it is raised
 * here. In place of the jump there is a call. Control goes where the replaced call would have returned to; or, from
 * another part than the last one, to the end of the last one, which is checked in the same way.
 */
static int check_inlined_return(struct pair *x, const struct vf_insn *last)
{
	const struct mp_map_piece *caller = vf_inlined_caller(x->vf, x->p);
	uint64_t back = caller->old_vaddr + caller->old_size, jump = x->p->old_vaddr + x->k;
	bool before = vf_lowers(x->vf, caller); /* the stack pointer is to be raised */
	struct tail tail;
	int ret;

	if (before && vf_raises(x->vf, x->p, x->k)) {
		x->k += VF_RAISE_SIZE;
		before = false;
	}
	if (before && (last->kind == VF_JMP || vf_is_last_part(x->vf, x->p)))
		return vf_refuse(x->vf, x->p->new_vaddr + x->k,
				 "the stack pointer is not raised behind inlined code");
	if (last->kind == VF_JMP) {
		uint8_t size = vf_calls_instead(x->vf, x->p, x->k, jump);

		if (!size)
			return vf_refuse(
				x->vf, x->p->new_vaddr + x->k,
				"no call of %#llx in place of a jump of an inlined function",
				(unsigned long long)last->target);
		x->k += size;
	}
	ret = read_tail(x, &tail);
	if (ret)
		return ret;
	x->inside = false;
	if (tail.has_jcc || !((!before && leads_on(x, back, tail.rest)) ||
			      vf_joins_last_part(x->vf, x->p, !before, tail.rest)))
		return vf_refuse(x->vf, x->p->new_vaddr + x->k,
				 "leads to %#llx instead of %#llx, behind the replaced call",
				 (unsigned long long)tail.rest, (unsigned long long)back);
	return 0;
}

/* @p has instructions of a function in place of the call of it, at the end of a piece before. */
static int check_inlined(const struct vf *vf, const struct mp_map_piece *p)
{
	struct pair x = {.vf = vf,
			 .p = p,
			 .old = mp_elf_bytes(vf->o, p->old_vaddr, p->old_size),
			 .new = mp_elf_bytes(vf->n, p->new_vaddr, p->new_size),
			 .inside = true};
	struct vf_insn insn = {0};
	int ret = vf_check_callee(vf, p);

	while (!ret && x.k < p->old_size) {
		uint64_t at = p->old_vaddr + x.k;

		if (!x.old || !x.new || !vf_decode(x.old + x.k, p->old_size - x.k, at, &insn))
			return vf_refuse(vf, at, "an inlined function is undecodable");
		/* vf_check_callee() has checked that these end the part, and which return this is. */
		if (insn.kind == VF_STOP || insn.kind == VF_JCC || insn.kind == VF_JMP ||
		    (insn.kind == VF_CALL && vf_is_via_slot(vf, p, x.k)))
			break;
		if (insn.len > p->new_size - x.k)
			return vf_refuse(vf, p->new_vaddr, "the copy of %#llx is too short",
					 (unsigned long long)p->old_vaddr);
		ret = compare_insn(&x, &insn);
		vf->result->report.nr_insns++;
		x.k += insn.len;
	}
	vf->marks->common[p - vf->map->pieces] = (uint32_t)x.k;
	vf->result->report.nr_inlined += vf_inlined_caller(vf, p) + 1 == p;
	if (ret)
		return ret;
	if (insn.kind == VF_STOP || vf_leaves_by(vf, p, &insn))
		return check_inlined_return(&x, &insn);
	if (insn.kind == VF_CALL && x.k < p->old_size) {
		vf->result->report.nr_insns++;
		vf->result->report.nr_via_slot++;
		x.k += VF_SLOT_BRANCH;
	}
	return check_leave(&x, &insn);
}

/* Between copies are either int3, or as few nops as possible, of which the last may be shorter. */
static int check_padding(const struct vf *vf, uint64_t at, uint64_t end)
{
	const uint8_t *p = at < end ? mp_elf_bytes(vf->n, at, end - at) : NULL;
	bool trap = p && *p == 0xcc;

	while (at < end) {
		size_t want = trap ? 1 : end - at < VF_NOP_MAX ? end - at : VF_NOP_MAX;

		if (!p || (trap ? *p != 0xcc : vf_nop_len(p, end - at) != want))
			return vf_refuse(vf, at, "code that is neither a copy nor a stub");
		at += want;
		p += want;
	}
	return 0;
}

/* The loader must not relocate code that was copied. */
static int check_text_relocs(const struct vf *vf)
{
	for (uint32_t i = 0; i < vf->o->nr_dyn_relocs; i++) {
		uint64_t at = vf->o->dyn_relocs[i].vaddr;

		for (uint64_t k = at; k < at + 8; k++)
			if (vf_is_text(vf, k) &&
			    (vf_piece_holding(vf, k) || vf_inlined_holds(vf, k)))
				return vf_refuse(vf, at, "the loader relocates moved code");
	}
	return 0;
}

/* Number of pieces that a thread checks at once. */
#define VF_GRAIN 1024
/* Number of pieces after which pages are given back. Their blocks may lie anywhere in the text. */
#define VF_DROP_PAGES (64 * VF_GRAIN)

static int check_some(const struct vf *vf, void *ctx, uint32_t first, uint32_t end)
{
	const struct mp_map_piece *pieces = vf->map->pieces;
	int ret = 0;

	(void)ctx;
	if (first % VF_DROP_PAGES == 0)
		vf_drop_pages(vf);
	for (uint32_t i = first; !ret && i < end; i++) {
		uint64_t at = i ? pieces[i - 1].new_vaddr + pieces[i - 1].new_size
				: vf->now.text->vaddr;

		ret = check_padding(vf, at, pieces[i].new_vaddr);
		if (!ret)
			ret = vf->index.inlined[i].behind ? check_inlined(vf, &pieces[i])
			      : pieces[i].old_size	  ? check_piece(vf, &pieces[i])
							  : vf_check_stub(vf, &pieces[i]);
		ret = vf_go_on(vf, ret);
	}
	return ret;
}

/* Every byte of the section was checked as part of a piece, or as padding before one or behind the last. */
static void own_pieces(const struct vf *vf)
{
	const struct mp_map_piece *p = vf->map->pieces, *last = p + vf->map->nr_pieces;
	uint64_t off = vf->now.text->off, at = vf->now.text->vaddr;

	for (; p < last; p++) {
		vf_own(vf, off + (at - vf->now.text->vaddr), p->new_vaddr - at, ME_OWNER_PADDING);
		vf_own(vf, off + (p->new_vaddr - vf->now.text->vaddr), p->new_size,
		       p->old_size ? ME_OWNER_COPY : ME_OWNER_STUB);
		at = p->new_vaddr + p->new_size;
	}
	at -= vf->now.text->vaddr;
	vf_own(vf, off + at, vf->now.text->size - at, ME_OWNER_PADDING);
}

int vf_check_pieces(const struct vf *vf)
{
	const struct mp_map_piece *last = &vf->map->pieces[vf->map->nr_pieces - 1];
	int ret = check_text_relocs(vf);

	if (!ret)
		ret = vf_parallel(vf, vf->map->nr_pieces, VF_GRAIN, check_some, NULL);
	if (!ret)
		ret = check_padding(vf, last->new_vaddr + last->new_size,
				    vf->now.text->vaddr + vf->now.text->size);
	if (!ret)
		own_pieces(vf);
	if (!ret && vf_counts_edges(vf) && !vf_all_are_counted(vf))
		ret = vf_refuse(vf, vf->stubs.counters->vaddr, "a counter that no stub increments");
	if (!ret)
		ret = vf_check_unproved(vf);
	if (!ret)
		ret = vf_check_versions(vf);
	if (!ret && vf->stubs.audit_section)
		ret = vf_check_version_tables(vf);
	vf->result->report.nr_pieces = vf->map->nr_pieces;
	return ret;
}
