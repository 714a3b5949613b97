// SPDX-License-Identifier: Apache-2.0
/*
 * verify_given - what of the registers that callees may change a function leaves as a result.
 *
 * Behind a call compilers never read such a register, but code that looks so there is: which of two
 * ways control takes the reader of the code does not know. A result has been set on all ways to
 * some return, by the function or before it by everybody who calls it. Everything is taken for
 * one at first, and forwards over all code less and less. Called by verify_graph.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify_registers.h"

struct givers {
	const struct vf_graph *g;
	uint16_t *given;  /* per block: set on all ways to its start */
	uint16_t *leaves; /* per FDE: at some return; of the round before */
	uint16_t *now;	  /* of this round */
	bool changed;
};

static void arrive(struct givers *s, uint32_t to, uint16_t given)
{
	if (to == VF_NONE || to >= s->g->nr_blocks || !(s->given[to] & ~given))
		return;
	s->given[to] &= given;
	s->changed = true;
}

/* Behind the call that ends the block. */
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

/* A jump to another function ends in its returns. */
static void jump(struct givers *s, const struct vf_block *b, uint32_t to, uint16_t given)
{
	uint32_t fde = to == VF_NONE ? VF_NONE : s->g->blocks[to].fde;

	arrive(s, to, given);
	if (fde != VF_NONE && fde != b->fde)
		leave(s, b, s->leaves[fde]);
}

static void follow(struct givers *s, uint32_t i)
{
	const struct vf_block *b = &s->g->blocks[i];
	uint16_t given = s->given[i] | b->sets;

	switch (b->kind) {
	case VF_END_JCC:
		jump(s, b, b->to, given);
		/* fall through */
	case VF_END_FALL: jump(s, b, i + 1 < s->g->nr_blocks ? i + 1 : VF_NONE, given); break;
	case VF_END_JMP: jump(s, b, b->to, given); break;
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
	default: leave(s, b, given);
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
	do {
		s.changed = false;
		memset(s.now, 0, size);
		for (uint32_t i = 0; i < s.g->nr_blocks; i++)
			follow(&s, i);
		s.changed |= memcmp(s.now, leaves, size) != 0;
		memcpy(leaves, s.now, size);
	} while (s.changed);
out:
	free(s.given);
	free(s.now);
	return ret;
}
