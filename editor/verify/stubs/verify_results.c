// SPDX-License-Identifier: Apache-2.0
/*
 * verify_results - finds caller-saved registers that a function may leave as results, and
 * registers that may pass arguments to it. Called by verify_graph.
 *
 * Compilers read no other caller-saved register behind a call. Some code seems to, but on paths
 * that never run, which the analysis cannot know. So only a register that was set on all paths
 * to some return, by the function or by all of its callers, counts as a result. At first every
 * register counts; passes over all code remove those that were not set. Arguments are found in
 * the same way. A function whose address is known gets only the arguments of the ABI.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/read/verify_effect.h"
#include "editor/verify/stubs/verify_block.h"
#include "editor/verify/stubs/verify_results.h"

struct result_search {
	const struct vf_graph *g;
	uint16_t *set_on_all_paths;  /* per block: set on all paths to its start */
	uint16_t *result_candidates; /* per FDE: set at some return, in the round before */
	uint16_t *now;		     /* the same of this round */
	bool changed;
};

static void arrive(struct result_search *s, uint32_t to, uint16_t set)
{
	if (to == VF_NONE || to >= s->g->nr_blocks || !(s->set_on_all_paths[to] & ~set))
		return;
	s->set_on_all_paths[to] &= set;
	s->changed = true;
}

/* Registers that are set behind the call that ends the block. */
static uint16_t set_after_call(const struct result_search *s, const struct vf_block *b,
			       uint16_t set)
{
	uint32_t fde = b->kind == VF_END_CALL && b->to != VF_NONE ? s->g->blocks[b->to].fde
								  : VF_NONE;

	if (fde == VF_NONE)
		return set & ~VF_CALLER_SAVED;
	return (set & ~(s->g->changes[fde] & VF_CALLER_SAVED)) | s->result_candidates[fde];
}

static void note_result(struct result_search *s, const struct vf_block *b, uint16_t set)
{
	if (b->fde != VF_NONE)
		s->now[b->fde] |= set;
}

static void follow(struct result_search *s, uint32_t i)
{
	const struct vf_block *b = &s->g->blocks[i];
	uint16_t set = s->set_on_all_paths[i] | b->sets;

	switch (b->kind) {
	case VF_END_JCC:
		arrive(s, b->to, set);
		/* fall through */
	case VF_END_FALL: arrive(s, i + 1, set); break;
	case VF_END_JMP: arrive(s, b->to, set); break;
	case VF_END_CALL:
		arrive(s, b->to, set);
		/* fall through */
	case VF_END_ICALL:
		if (vf_continues_after_call(s->g, i))
			arrive(s, i + 1, set_after_call(s, b, set));
		break;
	case VF_END_TABLE:
		for (const uint32_t *t = &s->g->targets[b->to]; *t != VF_NONE; t++)
			arrive(s, *t, set);
		break;
	case VF_END_STOP: break;
	case VF_END_IJMP:
		/* The jump leads to a function whose address was stored, which follows the ABI. */
		note_result(s, b, b->through_memory ? set & ~VF_CALLER_SAVED : set);
		break;
	default: note_result(s, b, set);
	}
}

/* Control continues from @fde to block @to. If that is another function's, @fde has its
 * results, too. */
static bool pass_on(struct result_search *s, uint32_t fde, uint32_t to)
{
	uint32_t other = to < s->g->nr_blocks ? s->g->blocks[to].fde : VF_NONE;

	if (other == VF_NONE || other == fde || !(s->now[other] & ~s->now[fde]))
		return false;
	s->now[fde] |= s->now[other];
	return true;
}

/* A function that jumps to another function, or to a part of its own, has the results of the
 * target. */
static void follow_jumps(struct result_search *s)
{
	const struct vf_graph *g = s->g;
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < g->nr_blocks; i++) {
			const struct vf_block *b = &g->blocks[i];

			if (b->fde == VF_NONE)
				continue;
			if (b->kind == VF_END_JMP || b->kind == VF_END_JCC)
				changed |= pass_on(s, b->fde, b->to);
			if (b->kind == VF_END_FALL || b->kind == VF_END_JCC)
				changed |= pass_on(s, b->fde, i + 1);
			for (uint32_t t = b->kind == VF_END_TABLE ? b->to : VF_NONE;
			     t != VF_NONE && g->targets[t] != VF_NONE; t++)
				changed |= pass_on(s, b->fde, g->targets[t]);
		}
	}
}

/* Registers that are set, by the ABI, when a known function is entered. */
#define ABI_SETS (VF_ARGUMENT_REGS | VF_CALLEE_SAVED)

static void start_known(struct result_search *s, const struct vf *vf)
{
	for (uint32_t i = 0; i < vf->old.eh.nr_fdes; i++) {
		uint32_t b = vf_block_at(vf, vf->old.eh.fdes[i].start);

		if (b != VF_NONE && s->g->flags[i] & VF_FUNC_KNOWN)
			s->set_on_all_paths[b] = ABI_SETS;
	}
}

static void note_passed(const struct result_search *s, const struct vf *vf)
{
	struct vf_graph *g = vf->stubs.graph;

	for (uint32_t i = 0; i < g->nr_blocks; i++)
		g->blocks[i].passed = VF_ALL_REGS;
	for (uint32_t i = 0; i < vf->old.eh.nr_fdes; i++) {
		uint32_t b = vf_block_at(vf, vf->old.eh.fdes[i].start);

		if (b != VF_NONE)
			g->blocks[b].passed = s->set_on_all_paths[b] | ABI_SETS;
	}
}

int vf_find_result_candidates(const struct vf *vf, uint16_t *result_candidates)
{
	struct result_search s = {.g = vf->stubs.graph, .result_candidates = result_candidates};
	size_t size = ((size_t)vf->old.eh.nr_fdes + 1) * sizeof(*result_candidates);
	int ret = 0;

	s.set_on_all_paths = malloc(((size_t)s.g->nr_blocks + 1) * sizeof(*s.set_on_all_paths));
	s.now = malloc(size);
	if (!s.set_on_all_paths || !s.now) {
		ret = -ENOMEM;
		goto out;
	}
	memset(s.set_on_all_paths, 0xff, s.g->nr_blocks * sizeof(*s.set_on_all_paths));
	memset(result_candidates, 0xff, size);
	start_known(&s, vf);
	do {
		s.changed = false;
		memset(s.now, 0, size);
		for (uint32_t i = 0; i < s.g->nr_blocks; i++)
			follow(&s, i);
		follow_jumps(&s);
		s.changed |= memcmp(s.now, result_candidates, size) != 0;
		memcpy(result_candidates, s.now, size);
	} while (s.changed);
	note_passed(&s, vf);
out:
	free(s.set_on_all_paths);
	free(s.now);
	return ret;
}
