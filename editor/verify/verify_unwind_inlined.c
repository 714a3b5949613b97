// SPDX-License-Identifier: Apache-2.0
/*
 * verify_unwind_inlined - checks that the unwinder finds the caller of the calling function from each instruction that
 * stands in place of a call. Called by verify_unwind.
 */
#include <errno.h>

#include "editor/verify/verify_unwind_private.h"

static int load_callee(struct vf_unwinding *x, const struct vf_fde *fde)
{
	int ret;

	if (!fde)
		return vf_refuse(x->vf, 0, "an inlined function has no FDE");
	if (x->callee == fde)
		return 0;
	x->callee = NULL;
	ret = vf_rows_build(&x->vf->old_eh, fde, &x->callee_rows);
	if (ret == -EBADMSG)
		return vf_refuse(x->vf, fde->start,
				 "unwind information of an inlined function is unreadable");
	if (!ret)
		x->callee = fde;
	return ret;
}

/* One part of code that replaces a call, and what is compared for it. */
struct inlined {
	const struct vf_row *call; /* the row of the call in the original */
	int64_t raised; /* bytes by which the stack pointer is higher than in the called function */
	bool differs;	/* an instruction has another row than the call */
};

/* Bytes [@at, @end) of the copy have the row of a called function's instruction at @old, continued by the call's. */
static int compare_composed(struct vf_unwinding *x, struct inlined *in, uint64_t old, uint64_t at,
			    uint64_t end)
{
	const struct vf_row *row = vf_rows_at(&x->callee_rows, old), *now;
	struct vf_row want;

	if (at >= end)
		return 0;
	if (!row || !vf_row_compose(in->call, row, in->raised, &want))
		return vf_refuse(x->vf, at, "no unwind row in place of the call is that of %#llx",
				 (unsigned long long)old);
	in->differs |= !vf_row_equal(&want, in->call);
	for (; at < end; at = vf_end_of_row(&x->new_rows, now)) {
		now = vf_rows_at(&x->new_rows, at);
		x->vf->result->report.nr_unwind_rows++;
		if (!now || !vf_row_equal(&want, now))
			return vf_refuse(x->vf, at,
					 "unwind row in place of a call differs from that of %#llx",
					 (unsigned long long)old);
	}
	return 0;
}

static int compare_part(struct vf_unwinding *x, struct inlined *in, const struct mp_map_piece *p)
{
	uint64_t common = x->vf->marks->common[p - x->vf->map->pieces], step;
	int ret = 0;

	for (uint64_t k = 0; k < common && !ret; k = step) {
		step = vf_row_end(&x->callee_rows, p->old_vaddr + k) - p->old_vaddr;
		if (step > common)
			step = common;
		ret = compare_composed(x, in, p->old_vaddr + k, p->new_vaddr + k,
				       p->new_vaddr + step);
	}
	return ret;
}

/*
 * Inlined instructions have rows that lead an unwinder from them by the called function's row to the call, and from
 * there on by the call's row. Branches, and calls through slots, have the rows of those in the original. Where the
 * function's frame has ended, the call's row holds: behind the instruction that raises the stack pointer, at a call in
 * place of a jump to another function, and behind the last part beside the call. All have the call site of the call.
 * A landing pad expects the call's stack pointer and registers, so there is none where a row differs from the call's.
 */
int vf_compare_inlined(struct vf_unwinding *x, const struct mp_map_piece *p)
{
	const struct mp_map_piece *caller = vf_inlined_caller(x->vf, p);
	uint64_t call = caller->old_vaddr + caller->old_size - VF_CALL_SIZE;
	uint64_t common = x->vf->marks->common[p - x->vf->map->pieces];
	uint64_t at = p->new_vaddr + common, end = vf_padding_end(x->vf, p);
	bool lowered = vf_lowers(x->vf, caller);
	bool ended = (vf_is_last_part(x->vf, p) && !lowered) || vf_leaves(x->vf, p);
	struct inlined in = {.call = vf_rows_at(&x->old_rows, call), .raised = lowered ? 0 : 8};
	const struct vf_call_site *site;
	int ret = load_callee(x, vf_eh_find(&x->vf->old_eh, p->old_vaddr));

	if (!ret && !in.call)
		ret = vf_refuse(x->vf, call, "a replaced call has no unwind row");
	if (!ret)
		ret = compare_part(x, &in, p);
	if (ret)
		return ret;
	if (lowered && vf_raises(x->vf, p, common)) {
		ret = compare_composed(x, &in, p->old_vaddr + common, at, at + VF_RAISE_SIZE);
		at += VF_RAISE_SIZE;
		ended = true;
	}
	if (ret)
		return ret;
	ret = ended ? vf_compare_range(x, call, at, end)
		    : compare_composed(x, &in, p->old_vaddr + common, at, end);
	site = vf_lsda_at(&x->old_lsda, call);
	if (!ret && in.differs && site && site->pad)
		ret = vf_refuse(x->vf, p->new_vaddr, "inlined code with a frame has a landing pad");
	if (!ret && (x->old_lsda.present || x->new_lsda.present))
		ret = vf_compare_sites(x, call, p->new_vaddr, p->new_size);
	return ret ? ret : vf_check_unreached(x, p);
}
