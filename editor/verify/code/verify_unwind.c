// SPDX-License-Identifier: Apache-2.0
/*
 * verify_unwind - checks that the unwinder finds the same at each copied instruction as at the
 * original, and the same as before in old code. verify calls it after the pieces are checked.
 */
#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/code/verify_lsda_whole.h"
#include "editor/verify/code/verify_unwind.h"
#include "editor/verify/read/verify_cfi.h"
#include "editor/verify/read/verify_eh.h"
#include "editor/verify/read/verify_eh_startup.h"
#include "editor/verify/read/verify_lsda.h"
#include "editor/verify/read/verify_parallel.h"
#include "editor/verify/read/verify_personality.h"
#include "editor/verify/read/verify_plt.h"
#include "editor/verify/stubs/verify_audit.h"
#include "editor/verify/stubs/verify_points.h"
#include "editor/base/enclosing_code.h"
#include "editor/base/runtime.h"
#include "editor/verify/code/verify_unwind_private.h"
#include "libprof/base/parallel.h"

static bool same_personality(const struct vf_cie *a, const struct vf_cie *b)
{
	return a->personality == b->personality &&
	       (!a->personality ||
		!((a->personality_enc ^ b->personality_enc) & DW_EH_PE_indirect));
}

/* Is the output's program @b the original's, with as many no-ops behind it as its entry needs? */
static bool same_program(const uint8_t *a, uint32_t la, const uint8_t *b, uint32_t lb)
{
	uint32_t size = vf_program_size(a, la);

	if (lb < size || lb - size >= 4 || memcmp(a, b, size))
		return false;
	for (; size < lb; size++)
		if (b[size] != DW_CFA_nop)
			return false;
	return true;
}

static bool same_cie(const struct vf_cie *a, const struct vf_cie *b)
{
	return a->code_align == b->code_align && a->data_align == b->data_align && a->ra == b->ra &&
	       a->signal == b->signal && a->has_lsda == b->has_lsda && same_personality(a, b) &&
	       same_program(a->insns, a->insns_len, b->insns, b->insns_len);
}

/*
 * The output's CIEs are the original's, in the same order, and then Morph's own. So FDEs have the same CIE if the
 * numbers of their CIEs are equal.
 */
static int check_cies(const struct vf *vf)
{
	uint32_t nr = vf->old.eh.nr_cies - (vf->old.eh.nr_symbol_only != 0);
	uint64_t end = vf->now.eh.vaddr + vf->now.eh.size - 4;

	if (vf->stubs.runtime)
		end -= me_runtime_frames_size;
	if (vf->now.answers)
		end -= ME_ENCLOSING_FRAMES_SIZE;
	for (uint32_t i = 0; i < vf->now.eh.nr_cies; i++) {
		const struct vf_cie *cie = &vf->now.eh.cies[i];

		if (i < nr ? !same_cie(&vf->old.eh.cies[i], cie) : cie->vaddr < end)
			return vf_refuse(vf, cie->vaddr, "this CIE is not the original's");
	}
	if (vf->now.eh.nr_cies < nr)
		return vf_refuse(vf, vf->now.eh.vaddr, "%u CIEs instead of %u", vf->now.eh.nr_cies,
				 nr);
	return 0;
}

/* Old code must still have the same FDE, at the same position. */
static int check_old_fdes(const struct vf *vf)
{
	const struct vf_fde *b = vf->now.eh.fdes;
	uint32_t nr = 0;

	while (nr < vf->now.eh.nr_fdes && vf->now.eh.fdes[nr].start < vf->now.text->vaddr)
		nr++;
	if (nr != vf->old.eh.nr_fdes - vf->old.eh.nr_symbol_only)
		return vf_refuse(vf, vf->now.eh.vaddr, "%u FDEs for old code instead of %u", nr,
				 vf->old.eh.nr_fdes - vf->old.eh.nr_symbol_only);
	for (uint32_t i = 0; i < vf->old.eh.nr_fdes; i++) {
		const struct vf_fde *a = &vf->old.eh.fdes[i];

		if (a->flags & VF_FDE_SYMBOL_ONLY)
			continue;
		if (b->start != a->start || b->size != a->size)
			return vf_refuse(vf, a->start, "the FDE of old code is missing");
		if (a->cie != b->cie || a->nr != b->nr || a->lsda != b->lsda ||
		    !same_program(a->insns, a->insns_len, b->insns, b->insns_len))
			return vf_refuse(vf, a->start, "the FDE of old code changed");
		b++;
	}
	return 0;
}

static int load_old(struct vf_unwinding *x, const struct vf_fde *fde)
{
	const struct vf *vf = x->vf;
	int ret;

	if (x->old == fde)
		return 0;
	x->old = NULL;
	ret = vf_spend_rows(vf, fde);
	if (ret)
		return ret;
	ret = vf_rows_build(&vf->old.eh, fde, &x->old_rows);
	if (!ret && x->old_rows.ambiguous)
		return vf_refuse(vf, fde->start, "unwinders read its unwind rows differently");
	if (!ret) {
		ret = vf_lsda_read(vf->o, fde->lsda, fde->start, &x->old_lsda);
		if (vf_spend_sites(vf, &x->old_lsda))
			return -EBADMSG;
	}
	if (ret == -EBADMSG)
		return vf_refuse(vf, fde->start,
				 "unwind information of the original is unreadable");
	if (!ret)
		x->old = fde;
	return ret;
}

static int load_new(struct vf_unwinding *x, const struct vf_fde *fde)
{
	const struct vf *vf = x->vf;
	int ret;

	if (x->new == fde)
		return 0;
	x->new = NULL;
	ret = vf_spend_rows(vf, fde);
	if (ret)
		return ret;
	ret = vf_rows_build(&vf->now.eh, fde, &x->new_rows);
	if (!ret && x->new_rows.ambiguous)
		return vf_refuse(vf, fde->start, "unwinders read a copy's unwind rows differently");
	if (!ret) {
		ret = vf_lsda_read(vf->n, fde->lsda, fde->start, &x->new_lsda);
		if (vf_spend_sites(vf, &x->new_lsda))
			return -EBADMSG;
	}
	if (ret == -EBADMSG)
		return vf_refuse(vf, fde->start, "unwind information of a copy is unreadable");
	if (!ret)
		x->new = fde;
	return ret;
}

/* An audit's call of the runtime: the stack pointer is lower there, nowhere else in the stub. */
static int compare_call(struct vf_unwinding *x, uint64_t old, uint64_t call)
{
	const struct vf_row *a = vf_rows_at(&x->old_rows, old);
	const struct vf_row *b = vf_rows_at(&x->new_rows, call);

	if (!a || !b || vf_row_end(&x->new_rows, call) < vf_point_call_end(call) ||
	    !vf_row_is_lower(a, b))
		return vf_refuse(x->vf, call,
				 "unwind row is not that of a call below the red zone");
	return 0;
}

/* A stub throws nothing, and has the same row as the block behind it. */
static int compare_stub(struct vf_unwinding *x, const struct mp_map_piece *p)
{
	uint64_t end = vf_padding_end(x->vf, p), call = vf_lower_call(x->vf, p);
	int ret = vf_compare_range(x, p->old_vaddr, p->new_vaddr, call ? call : end);

	if (!ret && call)
		ret = compare_call(x, p->old_vaddr, call);
	if (!ret && call)
		ret = vf_compare_range(x, p->old_vaddr, vf_point_call_end(call), end);
	if (!ret)
		ret = vf_check_unreached(x, p);
	if (ret || !x->new_lsda.present)
		return ret;
	if (vf_lsda_at(&x->new_lsda, p->new_vaddr) ||
	    vf_lsda_site_end(&x->new_lsda, p->new_vaddr) < p->new_vaddr + p->new_size)
		return vf_refuse(x->vf, p->new_vaddr, "a stub lies in a call site");
	return 0;
}

/*
 * Rust's std of 1.63 reads a pc-relative base differently from later versions. All versions
 * read the distance from the FDE's start alike, but LLVM's C++ routine does not read such a
 * distance, and LLVM's C routine skips any base. A position-independent file has no absolute base, since
 * nothing relocates it.
 */
static bool base_is_readable(const struct vf_lsda *lsda, uint8_t language)
{
	if (lsda->base_enc == DW_EH_PE_omit)
		return true;
	switch (language) {
	case VF_CXX: return lsda->base_enc == (DW_EH_PE_pcrel | DW_EH_PE_sdata4);
	case VF_RUST: return lsda->base_enc == (DW_EH_PE_funcrel | DW_EH_PE_sdata4);
	default: return false;
	}
}

static int check_bases(struct vf_unwinding *x, const struct vf_cie *cie)
{
	if (cie->language != VF_CXX && x->old_lsda.base_enc != DW_EH_PE_omit)
		return vf_refuse(x->vf, x->old->start,
				 "a table of C or Rust has a landing pad base");
	if (!base_is_readable(&x->new_lsda, cie->language))
		return vf_refuse(x->vf, x->new->start,
				 "the landing pad base has a form that its language cannot read");
	return 0;
}

/* Where the piece behind @p begins; at most @end. */
static uint64_t next_piece(const struct vf *vf, const struct mp_map_piece *p, uint64_t end)
{
	if (p + 1 == vf->map->pieces + vf->map->nr_pieces || p[1].new_vaddr > end)
		return end;
	return p[1].new_vaddr;
}

static int check_piece(struct vf_unwinding *x, const struct mp_map_piece *p)
{
	const struct vf *vf = x->vf;
	/* Inlined instructions belong to the function with the call, whose piece lies before them. */
	const struct mp_map_piece *of = vf_is_inlined(vf, p) ? vf_inlined_caller(vf, p) : p;
	const struct vf_fde *old = vf_eh_find(&vf->old.eh, of->old_vaddr);
	const struct vf_fde *new = vf_eh_find(&vf->now.eh, p->new_vaddr);
	const struct vf_cie *ca;
	uint64_t common;
	int ret;

	if (!old || of->old_vaddr + of->old_size > old->start + old->size)
		return vf_refuse(vf, p->old_vaddr, "a moved block has no FDE");
	if (vf_padding_end(vf, p) == p->new_vaddr) /* a dropped jump: no code, no rows */
		return new && p->new_vaddr < next_piece(vf, p, new->start + new->size)
			       ? vf_refuse(vf, p->new_vaddr,
					   "padding behind an empty copy has rows")
			       : 0;
	if (old->flags & VF_FDE_SYMBOL_ONLY)
		return new ? vf_refuse(vf, p->new_vaddr,
				       "the copy has an FDE, but the original has none")
			   : 0;
	if (!new || vf_padding_end(vf, p) > new->start + new->size)
		return vf_refuse(vf, p->new_vaddr, "the copy of %#llx has no FDE",
				 (unsigned long long)p->old_vaddr);
	ca = &vf->old.eh.cies[old->cie];
	if (old->cie != new->cie)
		return vf_refuse(vf, p->new_vaddr, "the copy has another CIE");
	if (!old->lsda != !new->lsda)
		return vf_refuse(vf, p->new_vaddr, "only one of copy and original has a table");
	if (ca->signal)
		return vf_refuse(vf, p->old_vaddr, "a signal frame was moved");
	/* Without a table, only a known routine does nothing. */
	if ((old->lsda || ca->personality) && !ca->known_personality)
		return vf_refuse(vf, p->old_vaddr, "unknown personality routine");
	ret = load_old(x, old);
	if (!ret)
		ret = load_new(x, new);
	if (!ret)
		ret = check_bases(x, ca);
	if (ret)
		return ret;
	if (!p->old_size)
		return compare_stub(x, p);
	if (of != p)
		return vf_compare_inlined(x, p);
	common = vf->marks->common[p - vf->map->pieces];
	ret = vf_compare_same(x, p->old_vaddr, p->new_vaddr, common,
			      x->old_lsda.present || x->new_lsda.present);
	if (!ret && common < p->new_size)
		ret = vf_compare_branches(x, p, common);
	if (vf_is_slot_call(vf, p, common))
		common = p->old_size;
	return ret ? ret : vf_compare_padding(x, p, common);
}

/* An FDE of copies must begin where a copy begins, and end where a copy or the nops behind it
 * end. These FDEs follow those of old code in the order of their code. */
static int check_new_bounds(const struct vf *vf)
{
	const struct mp_map_piece *piece = vf->map->pieces;
	const struct mp_map_piece *last = piece + vf->map->nr_pieces;
	uint32_t nr = vf->old.eh.nr_fdes - vf->old.eh.nr_symbol_only;

	for (uint32_t i = 0; i < vf->now.eh.nr_fdes; i++) {
		const struct vf_fde *fde = &vf->now.eh.fdes[i];
		uint64_t end = fde->start + fde->size;

		if (fde->start < vf->now.text->vaddr ||
		    (vf->stubs.runtime &&
		     fde->start - vf->stubs.runtime->vaddr < me_runtime_blob_size) ||
		    (vf->now.answers &&
		     fde->start - vf->now.answers->vaddr < ME_ENCLOSING_CODE_SIZE))
			continue;
		while (piece < last && piece->new_vaddr < fde->start)
			piece++;
		if (piece == last || piece->new_vaddr != fde->start)
			return vf_refuse(vf, fde->start, "an FDE begins where no copy does");
		if (fde->nr != nr++)
			return vf_refuse(vf, fde->start, "an FDE is not in its place");
		while (piece < last && vf_padding_end(vf, piece) < end)
			piece++;
		if (piece == last ||
		    (piece->new_vaddr + piece->new_size != end && vf_padding_end(vf, piece) != end))
			return vf_refuse(vf, end, "an FDE ends where no copy does");
	}
	return 0;
}

/* The FDEs of the runtime must be Morph's to the byte; only that of the code that answers follows. */
static int check_runtime_fdes(const struct vf *vf)
{
	uint32_t off = 0, frame, nr = 0, nr_seen = 0;
	uint64_t start, size,
		at = vf->now.eh.vaddr + vf->now.eh.size - 4 - me_runtime_frames_size -
		     (vf->now.answers ? ME_ENCLOSING_FRAMES_SIZE : 0);
	const uint8_t *now = mp_elf_bytes(vf->n, at, me_runtime_frames_size);
	uint8_t *want;
	bool same;

	if (!vf->stubs.runtime)
		return 0;
	want = malloc(me_runtime_frames_size);
	if (!want)
		return -ENOMEM;
	me_runtime_frames_write(vf->stubs.runtime->vaddr, at, want);
	same = now && !memcmp(now, want, me_runtime_frames_size);
	free(want);
	while (me_runtime_frames_next(&off, &frame, &start, &size))
		nr++;
	for (uint32_t i = 0; i < vf->now.eh.nr_fdes; i++)
		nr_seen += vf->now.eh.fdes[i].start - vf->stubs.runtime->vaddr <
			   me_runtime_blob_size;
	if (!same || nr != nr_seen)
		return vf_refuse(vf, vf->stubs.runtime->vaddr,
				 "the runtime's FDEs are not Morph's");
	return 0;
}

/* More routines than any program has. Asking for one reads the symbols, or all tables. */
#define VF_ROUTINES_MAX 64

/* An answer for a CIE with the same routine. */
static const struct vf_cie *answer_of(const struct vf_cie *const *answers, uint32_t nr,
				      const struct vf_cie *cie)
{
	for (uint32_t i = 0; i < nr; i++)
		if (same_personality(answers[i], cie))
			return answers[i];
	return NULL;
}

static int find_personalities(const struct vf *vf)
{
	uint8_t *asked = calloc((size_t)vf->old.eh.nr_cies + 1, 1);
	const struct vf_cie *answers[VF_ROUTINES_MAX], *answer;
	uint32_t nr = 0;
	int known = 0;

	if (!asked)
		return -ENOMEM;
	for (uint32_t i = 0; i < vf->old.eh.nr_fdes && known >= 0; i++) {
		struct vf_cie *cie = &vf->old.eh.cies[vf->old.eh.fdes[i].cie];

		if ((!vf->old.eh.fdes[i].lsda && !cie->personality) ||
		    asked[vf->old.eh.fdes[i].cie])
			continue;
		asked[vf->old.eh.fdes[i].cie] = 1;
		answer = answer_of(answers, nr, cie);
		if (answer) {
			cie->known_personality = answer->known_personality;
			cie->language = answer->language;
		} else if (nr < VF_ROUTINES_MAX) {
			known = vf_known_personality(vf, cie, &cie->language);
			cie->known_personality = known > 0;
			answers[nr++] = cie;
		}
	}
	free(asked);
	return known < 0 ? known : 0;
}

static int check_some(const struct vf *vf, void *ctx, uint32_t first, uint32_t end)
{
	struct vf_unwinding *x = (struct vf_unwinding *)ctx + vf->worker;
	int ret = 0;

	x->vf = vf;
	for (uint32_t i = first; !ret && i < end; i++)
		ret = vf_go_on(vf, check_piece(x, &vf->map->pieces[i]));
	return ret;
}

/* Number of pieces that a thread checks at once. */
#define VF_GRAIN 1024

static int check_pieces(const struct vf *vf)
{
	struct vf_unwinding *all = calloc(MP_PARALLEL_MAX, sizeof(*all));
	int ret = all ? vf_parallel(vf, vf->map->nr_pieces, VF_GRAIN, check_some, all) : -ENOMEM;

	for (unsigned int i = 0; all && i < MP_PARALLEL_MAX; i++) {
		free(all[i].old_rows.row);
		free(all[i].new_rows.row);
		free(all[i].callee_rows.row);
		vf_lsda_fini(&all[i].old_lsda);
		vf_lsda_fini(&all[i].new_lsda);
	}
	free(all);
	return ret;
}

int vf_read_unwind(struct vf *vf)
{
	int ret = vf_eh_read(vf, vf->n, true, &vf->now.eh);

	if (!ret && !vf->now.eh_frame && !vf->o->relinkable)
		vf_find_eh_fields(vf);
	return ret ? ret : find_personalities(vf);
}

int vf_check_unwind(const struct vf *vf)
{
	int ret = check_cies(vf);

	if (!ret)
		ret = check_old_fdes(vf);
	if (!ret)
		ret = check_new_bounds(vf);
	if (!ret)
		ret = check_runtime_fdes(vf);
	if (!ret)
		ret = vf_check_lsdas(vf);
	if (!ret)
		ret = check_pieces(vf);
	return ret;
}
