// SPDX-License-Identifier: Apache-2.0
/*
 * verify_unwind_rows - compares unwind rows and call sites of a copy, its branches and the padding behind it with those
 * of the original. Called by verify_unwind and verify_unwind_inlined.
 */
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/read/verify_cfi.h"
#include "editor/verify/read/verify_lsda.h"
#include "editor/verify/read/verify_piece_index.h"
#include "editor/verify/stubs/verify_versions.h"
#include "editor/verify/code/verify_unwind_private.h"

/* Copies of a function lie in two or three places, so an honest output needs a tenth of this. */
#define VF_WORK_PER_BYTE 128
/* What an FDE costs besides, and a call site, in bytes. */
#define VF_FDE_WORK  16
#define VF_SITE_WORK 4

static int spend(const struct vf *vf, uint64_t work)
{
	work = __atomic_add_fetch(&vf->marks->unwind_work, work, __ATOMIC_RELAXED);
	return work <= VF_WORK_PER_BYTE * vf->old.eh.size + vf->o->size
		       ? 0
		       : vf_refuse(vf, 0,
				   "checking the unwind rows of the copies would take too long");
}

int vf_spend_rows(const struct vf *vf, const struct vf_fde *fde)
{
	return spend(vf, VF_FDE_WORK + fde->insns_len);
}

int vf_spend_sites(const struct vf *vf, const struct vf_lsda *lsda)
{
	return spend(vf, VF_SITE_WORK * (uint64_t)lsda->nr);
}

uint64_t vf_end_of_row(const struct vf_rows *rows, const struct vf_row *row)
{
	if (!row)
		return rows->nr ? rows->row[0].loc : UINT64_MAX;
	return row == &rows->row[rows->nr - 1] ? UINT64_MAX : row[1].loc;
}

/* All bytes of the row at @new must have the rules of that at @old. *@len, unless NULL: bytes that both rows cover. */
static int compare_row(struct vf_unwinding *x, uint64_t old, uint64_t new, uint64_t *len)
{
	const struct vf_row *a = vf_rows_at(&x->old_rows, old);
	const struct vf_row *b = vf_rows_at(&x->new_rows, new);

	x->vf->result->report.nr_unwind_rows++;
	if (!a || !b || !vf_row_equal(a, b))
		return vf_refuse(x->vf, new, "unwind row differs from the one at %#llx",
				 (unsigned long long)old);
	if (x->old_rows.expressions && vf_row_reads_pc(a))
		return vf_refuse(x->vf, old, "unwind row depends on the program counter");
	if (len) {
		uint64_t left = vf_end_of_row(&x->old_rows, a) - old;

		*len = vf_end_of_row(&x->new_rows, b) - new;
		*len = left < *len ? left : *len;
	}
	return 0;
}

uint64_t vf_row_end(const struct vf_rows *rows, uint64_t vaddr)
{
	return vf_end_of_row(rows, vf_rows_at(rows, vaddr));
}

static int compare_site(struct vf_unwinding *x, uint64_t old, uint64_t new)
{
	const struct vf_call_site *a = vf_lsda_at(&x->old_lsda, old);
	const struct vf_call_site *b = vf_lsda_at(&x->new_lsda, new);
	uint64_t pad_a = a ? a->pad : 0, pad_b = b ? b->pad : 0;

	/* Not listed: the program terminates. Listed without a pad, or no table: unwinding
	 * continues. */
	if ((!a && x->old_lsda.present) != (!b && x->new_lsda.present))
		return vf_refuse(x->vf, new, "call site %s, unlike the one at %#llx",
				 b || !x->new_lsda.present ? "listed" : "not listed",
				 (unsigned long long)old);
	if (!pad_a != !pad_b || (pad_a && !vf_same_place(x->vf, pad_a, pad_b)))
		return vf_refuse(x->vf, new, "landing pad %#llx, but that of %#llx is %#llx",
				 (unsigned long long)pad_b, (unsigned long long)old,
				 (unsigned long long)pad_a);
	if (pad_b && vf_is_other_version(x->vf, new, pad_b))
		return vf_refuse(x->vf, new, "landing pad %#llx belongs to the other version",
				 (unsigned long long)pad_b);
	x->vf->result->report.nr_landing_pads += pad_a != 0;
	/* The new table has the bytes of the old actions, so their numbers are the same. */
	if (a && b &&
	    (a->action != b->action ||
	     !vf_lsda_same_actions(&x->old_lsda, a->action, &x->new_lsda, b->action)))
		return vf_refuse(x->vf, new, "catches other types than %#llx",
				 (unsigned long long)old);
	return 0;
}

static uint64_t min3(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t m = a < b ? a : b;

	return m < c ? m : c;
}

int vf_compare_same(struct vf_unwinding *x, uint64_t old, uint64_t new, uint64_t len, bool sites)
{
	uint64_t k, to, same;
	int ret;

	for (k = 0; k < len; k += same) {
		ret = compare_row(x, old + k, new + k, &same);
		if (ret)
			return ret;
		if (same > len - k)
			break;
	}
	for (k = 0; sites && k < len; k = to) {
		ret = compare_site(x, old + k, new + k);
		if (ret)
			return ret;
		to = min3(vf_lsda_site_end(&x->old_lsda, old + k) - old,
			  vf_lsda_site_end(&x->new_lsda, new + k) - new, len);
	}
	return 0;
}

int vf_compare_sites(struct vf_unwinding *x, uint64_t old, uint64_t new, uint64_t len)
{
	int ret = 0;

	for (uint64_t k = 0; !ret && k < len; k++)
		ret = compare_site(x, old, new + k);
	return ret;
}

int vf_compare_branches(struct vf_unwinding *x, const struct mp_map_piece *p, uint64_t common)
{
	uint64_t at = p->new_vaddr + common, end = p->new_vaddr + p->new_size;
	uint64_t old = p->old_vaddr + common, site = old;

	/* A branch has its original's call site; an added one, that of the instruction before
	 * it. */
	if (common && common == p->old_size)
		site--;
	while (at < end) {
		struct vf_insn insn;
		int ret;

		if (!vf_decode(mp_elf_bytes(x->vf->n, at, end - at), end - at, at, &insn))
			return vf_refuse(x->vf, at, "undecodable");
		if (old >= x->old->start + x->old->size)
			old = x->old->start + x->old->size - 1;
		ret = compare_row(x, old, at, NULL);
		if (!ret && vf_row_end(&x->new_rows, at) < at + insn.len)
			ret = vf_refuse(x->vf, at, "unwind row changes inside a branch");
		if (!ret && (x->old_lsda.present || x->new_lsda.present) &&
		    vf_compare_sites(x, site, at, insn.len))
			ret = vf_refuse(x->vf, at, "a branch in another call site than %#llx",
					(unsigned long long)site);
		if (ret)
			return ret;
		if (insn.kind == VF_ICALL) {
			old = p->old_vaddr + p->old_size;
			site = old - 1;
		}
		at += insn.len;
	}
	return 0;
}

uint64_t vf_padding_end(const struct vf *vf, const struct mp_map_piece *p)
{
	uint64_t at = p->new_vaddr + p->new_size;
	const uint8_t *b;

	if (p + 1 == vf->map->pieces + vf->map->nr_pieces || at == p[1].new_vaddr)
		return at;
	b = mp_elf_bytes(vf->n, at, 1);
	return b && *b != 0xcc ? p[1].new_vaddr : at;
}

int vf_check_unreached(struct vf_unwinding *x, const struct mp_map_piece *p)
{
	uint64_t end = vf_padding_end(x->vf, p), next = end;

	if (p + 1 < x->vf->map->pieces + x->vf->map->nr_pieces)
		next = p[1].new_vaddr;
	if (next < x->new->start + x->new->size && vf_row_end(&x->new_rows, end - 1) < next)
		return vf_refuse(x->vf, end, "unwind row changes in padding");
	return 0;
}

int vf_compare_padding(struct vf_unwinding *x, const struct mp_map_piece *p, uint64_t common)
{
	uint64_t old = p->old_vaddr + common, at = p->new_vaddr + p->new_size;
	uint64_t end = vf_padding_end(x->vf, p);
	int ret = vf_check_unreached(x, p);

	if (ret)
		return ret;
	if (old >= x->old->start + x->old->size)
		old = x->old->start + x->old->size - 1;
	for (; at < end; at++) {
		int ret = compare_row(x, old, at, NULL);

		if (ret)
			return ret;
	}
	return 0;
}

int vf_compare_range(struct vf_unwinding *x, uint64_t old, uint64_t at, uint64_t end)
{
	int ret = 0;

	for (; !ret && at < end; at = vf_row_end(&x->new_rows, at))
		ret = compare_row(x, old, at, NULL);
	return ret;
}
