// SPDX-License-Identifier: Apache-2.0
/*
 * verify_given - finds caller-saved registers that a function may leave as results, and
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

#include "editor/verify/verify_free_registers.h"

struct givers {
	const struct vf_graph *g;
	uint16_t *given;  /* per block: set on all paths to its start */
	uint16_t *leaves; /* per FDE: set at some return, in the round before */
	uint16_t *now;	  /* the same of this round */
	bool changed;
};

static void arrive(struct givers *s, uint32_t to, uint16_t given)
{
	if (to == VF_NONE || to >= s->g->nr_blocks || !(s->given[to] & ~given))
		return;
	s->given[to] &= given;
	s->changed = true;
}

/* Registers that are set behind the call that ends the block. */
static uint16_t behind_call(const struct givers *s, const struct vf_block *b, uint16_t given)
{
	uint32_t fde = b->kind == VF_END_CALL && b->to != VF_NONE ? s->g->blocks[b->to].fde
								  : VF_NONE;

	if (fde == VF_NONE)
		return given & ~VF_CALLER_SAVED;
	return (given & ~(s->g->changes[fde] & VF_CALLER_SAVED)) | s->leaves[fde];
}

static void leave(struct givers *s, const struct vf_block *b, uint16_t given)
{
	if (b->fde != VF_NONE)
		s->now[b->fde] |= given;
}

static void follow(struct givers *s, uint32_t i)
{
	const struct vf_block *b = &s->g->blocks[i];
	uint16_t given = s->given[i] | b->sets;

	switch (b->kind) {
	case VF_END_JCC:
		arrive(s, b->to, given);
		/* fall through */
	case VF_END_FALL: arrive(s, i + 1, given); break;
	case VF_END_JMP: arrive(s, b->to, given); break;
	case VF_END_CALL:
		arrive(s, b->to, given);
		/* fall through */
	case VF_END_ICALL:
		if (vf_comes_behind(s->g, i))
			arrive(s, i + 1, behind_call(s, b, given));
		break;
	case VF_END_TABLE:
		for (const uint32_t *t = &s->g->targets[b->to]; *t != VF_NONE; t++)
			arrive(s, *t, given);
		break;
	case VF_END_STOP: break;
	case VF_END_IJMP:
		/* It leads to a function whose address was stored, which follows the ABI. */
		leave(s, b, b->cell ? given & ~VF_CALLER_SAVED : given);
		break;
	default: leave(s, b, given);
	}
}

/* Control continues from @fde to block @to. If that is another function's, @fde has its
 * results, too. */
static bool pass_on(struct givers *s, uint32_t fde, uint32_t to)
{
	uint32_t other = to < s->g->nr_blocks ? s->g->blocks[to].fde : VF_NONE;

	if (other == VF_NONE || other == fde || !(s->now[other] & ~s->now[fde]))
		return false;
	s->now[fde] |= s->now[other];
	return true;
}

/* A function that jumps to another function, or to a part of its own, has the results of the
 * target. */
static void follow_jumps(struct givers *s)
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
#define ABI_GIVES (VF_ARGUMENT_REGS | VF_CALLEE_SAVED)

static void start_known(struct givers *s, const struct vf *vf)
{
	for (uint32_t i = 0; i < vf->old_eh.nr_fdes; i++) {
		uint32_t b = vf_block_at(vf, vf->old_eh.fdes[i].start);

		if (b != VF_NONE && s->g->flags[i] & VF_FUNC_KNOWN)
			s->given[b] = ABI_GIVES;
	}
}

static void note_passed(const struct givers *s, struct vf *vf)
{
	struct vf_graph *g = vf->graph;

	for (uint32_t i = 0; i < g->nr_blocks; i++)
		g->blocks[i].passed = VF_ALL_REGS;
	for (uint32_t i = 0; i < vf->old_eh.nr_fdes; i++) {
		uint32_t b = vf_block_at(vf, vf->old_eh.fdes[i].start);

		if (b != VF_NONE)
			g->blocks[b].passed = s->given[b] | ABI_GIVES;
	}
}

int vf_find_leaves(struct vf *vf, uint16_t *leaves)
{
	struct givers s = {.g = vf->graph, .leaves = leaves};
	size_t size = ((size_t)vf->old_eh.nr_fdes + 1) * sizeof(*leaves);
	int ret = 0;

	s.given = malloc(((size_t)s.g->nr_blocks + 1) * sizeof(*s.given));
	s.now = malloc(size);
	if (!s.given || !s.now) {
		ret = -ENOMEM;
		goto out;
	}
	memset(s.given, 0xff, s.g->nr_blocks * sizeof(*s.given));
	memset(leaves, 0xff, size);
	start_known(&s, vf);
	do {
		s.changed = false;
		memset(s.now, 0, size);
		for (uint32_t i = 0; i < s.g->nr_blocks; i++)
			follow(&s, i);
		follow_jumps(&s);
		s.changed |= memcmp(s.now, leaves, size) != 0;
		memcpy(leaves, s.now, size);
	} while (s.changed);
	note_passed(&s, vf);
out:
	free(s.given);
	free(s.now);
	return ret;
}
