// SPDX-License-Identifier: Apache-2.0
/*
 * verify_wants - finds the registers that functions want of one another, callees of their callers
 * and callers of their callees. Finds the registers that each function changes. Called by
 * verify_graph.
 */
#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/read/verify_effect.h"
#include "editor/verify/stubs/verify_block.h"
#include "editor/verify/stubs/verify_wants.h"

/* ---- wanted registers ---------------------------------------------------------------------- */

#define WANT_USES (VF_WANT(VF_ALL_REGS, VF_WANT_LOW) | VF_WANT(VF_ALL_REGS, VF_WANT_HIGH))

/* Registers wanted by the blocks at labels within the FDE of @b: an indirect jump may lead
 * there. */
static uint64_t labels_in(const struct vf *vf, const struct vf_block *b, bool wanted)
{
	const struct vf_graph *g = vf->stubs.graph;
	const struct vf_fde *fde = b->fde == VF_NONE ? NULL : &vf->old.eh.fdes[b->fde];
	uint64_t want = 0, end = fde ? fde->start + fde->size : 0;

	for (uint64_t at = fde ? vf_bits_next(&g->label, fde->start + 1, end) : end; at < end;
	     at = vf_bits_next(&g->label, at + 1, end)) {
		uint32_t to = vf_block_at(vf, at);

		if (to != VF_NONE)
			want |= wanted ? g->blocks[to].wanted : g->blocks[to].in;
	}
	return want;
}

/* Does @to start a function that @b does not belong to? */
static bool is_call(const struct vf *vf, const struct vf_block *b, const struct vf_block *to)
{
	const struct vf_graph *g = vf->stubs.graph;

	return to->filled_by_loader ||
	       (to->fde != VF_NONE && to->fde != b->fde && g->flags[to->fde] & VF_FUNC_CALLED &&
		vf->old.text_start + to->start == vf->old.eh.fdes[to->fde].start);
}

/*
 * Registers wanted at block @i, where @b continues. If @i starts another function, this is a
 * call and a return: registers that it saves are not wanted, the results of @b's function are.
 */
static uint64_t at_start(const struct vf *vf, const struct vf_block *b, uint32_t i, bool wanted)
{
	const struct vf_graph *g = vf->stubs.graph;

	if (i == VF_NONE)
		return 0;
	if (!wanted)
		return g->blocks[i].in;
	if (!is_call(vf, b, &g->blocks[i]))
		return g->blocks[i].wanted;
	return (vf_wanted_of_callers(g, i) & WANT_USES) |
	       (b->fde == VF_NONE ? 0 : g->results[b->fde]);
}

/* Registers wanted behind the last instruction of block @i. @wanted: include those of callers. */
static uint64_t wanted_after(const struct vf *vf, uint32_t i, bool wanted)
{
	const struct vf_graph *g = vf->stubs.graph;
	const struct vf_block *b = &g->blocks[i];
	uint64_t want = 0;

	switch (b->kind) {
	case VF_END_FALL: return at_start(vf, b, i + 1, wanted);
	case VF_END_JCC: return at_start(vf, b, i + 1, wanted) | at_start(vf, b, b->to, wanted);
	case VF_END_JMP: return at_start(vf, b, b->to, wanted);
	case VF_END_CALL:
		/* A callee does not want the registers that it saves. */
		if (b->to != VF_NONE)
			want = vf_wanted_of_callers(g, b->to) & (wanted ? WANT_USES : UINT64_MAX);
		/* fall through */
	case VF_END_ICALL:
		return want | (vf_continues_after_call(g, i) ? at_start(vf, b, i + 1, wanted) : 0);
	case VF_END_TABLE:
		for (const uint32_t *t = &g->targets[b->to]; *t != VF_NONE; t++)
			want |= at_start(vf, b, *t, wanted);
		return want;
	case VF_END_IJMP: want = b->filled_by_loader ? 0 : labels_in(vf, b, wanted); break;
	case VF_END_RET: break;
	case VF_END_STOP: return 0;
	default: return WANT_USES;
	}
	if (wanted && b->fde != VF_NONE)
		want |= g->results[b->fde];
	return want;
}

void vf_find_wants(const struct vf *vf)
{
	struct vf_graph *g = vf->stubs.graph;
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = g->nr_blocks; i-- > 0;) {
			struct vf_block *b = &g->blocks[i];
			uint64_t in = b->want |
				      vf_want_without(wanted_after(vf, i, false), b->kill);

			changed |= in != b->in;
			b->in = in;
		}
	}
	for (uint32_t i = 0; i < g->nr_blocks; i++)
		g->blocks[i].wanted = g->blocks[i].in & WANT_USES;
}

/* @want is wanted where control returns from block @to. */
static bool add_results(struct vf_graph *g, uint32_t to, uint64_t want)
{
	uint32_t fde = to == VF_NONE ? VF_NONE : g->blocks[to].fde;
	uint64_t may = 0;

	if (fde == VF_NONE)
		return false;
	for (unsigned int part = 0; part < 64; part += 16)
		may |= (uint64_t)(uint16_t)(g->result_candidates[fde] | ~VF_CALLER_SAVED) << part;
	want &= may;
	if (!(want & ~g->results[fde]))
		return false;
	g->results[fde] |= want;
	return true;
}

/* A call passes on what is wanted behind it; a jump, what its own callers want. */
static bool pass_results(struct vf_graph *g, uint32_t i)
{
	const struct vf_block *b = &g->blocks[i];
	bool changed = false;

	if (b->kind == VF_END_CALL)
		return vf_continues_after_call(g, i) &&
		       add_results(g, b->to, g->blocks[i + 1].wanted);
	if (b->fde == VF_NONE)
		return false;
	if (b->kind == VF_END_JMP || b->kind == VF_END_JCC)
		changed = add_results(g, b->to, g->results[b->fde]);
	if (b->kind == VF_END_FALL || b->kind == VF_END_JCC)
		changed |= add_results(g, i + 1, g->results[b->fde]);
	return changed;
}

void vf_find_results(const struct vf *vf)
{
	struct vf_graph *g = vf->stubs.graph;
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = g->nr_blocks; i-- > 0;) {
			struct vf_block *b = &g->blocks[i];
			uint64_t now = b->want |
				       vf_want_without(wanted_after(vf, i, true), b->kill);

			changed |= now != b->wanted;
			b->wanted = now;
			changed |= pass_results(g, i);
		}
	}
}

/* ---- changed registers --------------------------------------------------------------------- */

void vf_find_changes(const struct vf *vf)
{
	struct vf_graph *g = vf->stubs.graph;
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < g->nr_blocks; i++) {
			const struct vf_block *b = &g->blocks[i];
			uint16_t more = 0;
			uint32_t fde;

			if (b->fde == VF_NONE || b->to == VF_NONE || b->kind == VF_END_TABLE)
				continue;
			fde = g->blocks[b->to].fde;
			if (fde != VF_NONE)
				more = g->changes[fde];
			else if (b->kind == VF_END_CALL || g->blocks[b->to].filled_by_loader)
				more = VF_CALLER_SAVED;
			changed |= (more & ~g->changes[b->fde]) != 0;
			g->changes[b->fde] |= more;
		}
	}
}

void vf_find_not_preserved(const struct vf *vf)
{
	struct vf_graph *g = vf->stubs.graph;
	bool changed = true;

	for (uint32_t i = 0; i < vf->old.eh.nr_fdes; i++) {
		bool part = g->flags[i] == VF_FUNC_JUMPED;

		g->not_preserved[i] = part ? VF_ALL_REGS : g->changes[i];
	}
	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < g->nr_blocks; i++) {
			const struct vf_block *b = &g->blocks[i];
			uint32_t fde;

			if (b->fde == VF_NONE || b->to == VF_NONE ||
			    (b->kind != VF_END_JMP && b->kind != VF_END_JCC))
				continue;
			fde = g->blocks[b->to].fde;
			if (fde == VF_NONE || g->flags[fde] != VF_FUNC_JUMPED ||
			    !(g->not_preserved[fde] & ~g->not_preserved[b->fde]))
				continue;
			g->not_preserved[fde] &= g->not_preserved[b->fde];
			changed = true;
		}
	}
}
