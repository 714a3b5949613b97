// SPDX-License-Identifier: Apache-2.0
/*
 * verify_unwind_inlined - checks that the unwinder finds the caller of the calling function from each instruction that
 * stands in place of a call. Called by verify_unwind.
 */
#include <errno.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/read/verify_cfi.h"
#include "editor/verify/read/verify_lsda.h"
#include "editor/verify/read/verify_parts.h"
#include "editor/verify/code/verify_unwind_private.h"

static int load_callee(struct vf_unwinding *x, const struct vf_fde *fde)
{
	int ret;

	if (!fde)
		return vf_refuse(x->vf, 0, "an inlined function has no FDE");
	if (x->callee == fde)
		return 0;
	x->callee = NULL;
	ret = vf_spend_rows(x->vf, fde);
	if (ret)
		return ret;
	ret = vf_rows_build(&x->vf->old.eh, fde, &x->callee_rows);
	if (ret == -EBADMSG)
		return vf_refuse(x->vf, fde->start,
				 "unwind information of an inlined function is unreadable");
	if (!ret && x->callee_rows.ambiguous)
		return vf_refuse(x->vf, fde->start, "unwinders read its unwind rows differently");
	if (!ret)
		x->callee = fde;
	return ret;
}

/*
 * The rule of one register in the calling function's terms. *@below: from the CFA to the called function's; NULL: it is
 * not known.
 */
static bool compose_rule(const struct vf_rule *call, const struct vf_rule *row,
			 const int64_t *below, struct vf_rule *want)
{
	*want = *call;
	if (call->kind == VF_RULE_OFFSET || call->kind == VF_RULE_UNDEFINED)
		return true;
	if (!vf_rule_keeps(call))
		return false;
	if (vf_rule_keeps(row))
		return true;
	if (row->kind != VF_RULE_OFFSET || !below)
		return false;
	*want = (struct vf_rule){.kind = VF_RULE_OFFSET, .off = row->off - *below};
	return true;
}

/* Is @row that of a function's entry: nothing is saved, and the stack pointer is at the return address? */
static bool is_entry_row(const struct vf_row *row, uint64_t rsp, int ra)
{
	if (row->cfa.kind != VF_RULE_OFFSET || row->cfa_reg != rsp || row->cfa.off != 8 ||
	    row->args_size || row->reg[ra].kind != VF_RULE_OFFSET || row->reg[ra].off != -8)
		return false;
	for (int i = 0; i < VF_NR_REGS; i++)
		if (i != ra && !vf_rule_keeps(&row->reg[i]))
			return false;
	return true;
}

/*
 * *@want: the row that leads from an instruction of a called function, in place of the call, to the caller of the
 * calling function. @call: the row of the call; @row: the instruction's in the called function; @raised: bytes by which
 * the stack pointer is higher than there. Return: false: no row says so.
 */
static bool compose_row(const struct vf_row *call, const struct vf_row *row, int64_t raised,
			struct vf_row *want)
{
	enum {
		RSP = 7,
		RA = 16
	};
	bool by_stack = call->cfa_reg == RSP;
	/* The called function's CFA is the stack pointer at the call, in the original. */
	int64_t below = call->cfa.off - raised;

	*want = *call;
	/* All registers are as before the call, so the call's row holds, whatever its rules are. */
	if (raised == 8 && is_entry_row(row, RSP, RA))
		return true;
	if (call->cfa.kind != VF_RULE_OFFSET || row->cfa.kind != VF_RULE_OFFSET ||
	    row->cfa_reg != RSP || row->args_size || call->reg[RSP].kind != VF_RULE_DEFAULT ||
	    row->reg[RSP].kind != VF_RULE_DEFAULT || row->reg[RA].kind != VF_RULE_OFFSET ||
	    row->reg[RA].off != -8)
		return false;
	if (by_stack)
		want->cfa.off = row->cfa.off + below;
	else if (call->cfa_reg >= VF_NR_REGS || !vf_rule_keeps(&row->reg[call->cfa_reg]))
		return false;
	for (int i = 0; i < VF_NR_REGS; i++)
		if (i != RA && !compose_rule(&call->reg[i], &row->reg[i], by_stack ? &below : NULL,
					     &want->reg[i]))
			return false;
	return true;
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
	if (!row || !compose_row(in->call, row, in->raised, &want))
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
	const struct vf_fde *callee = vf_eh_find(&x->vf->old.eh, p->old_vaddr);
	int ret = load_callee(x, callee);

	if (!ret && x->vf->old.eh.cies[callee->cie].personality &&
	    !x->vf->old.eh.cies[callee->cie].known_personality)
		ret = vf_refuse(x->vf, callee->start, "unknown personality routine");
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
