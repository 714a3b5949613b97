// SPDX-License-Identifier: Apache-2.0
/*
 * verify_block - lookups in the blocks of verify_graph.
 */
#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/stubs/verify_block.h"

uint32_t vf_block_at(const struct vf *vf, uint64_t vaddr)
{
	const struct vf_graph *g = vf->stubs.graph;
	uint64_t i = vaddr - g->head.base;

	if (!vf_bits_get(&g->head, vaddr))
		return VF_NONE;
	return g->rank[i / 64] +
	       (uint32_t)__builtin_popcountll(g->head.word[i / 64] & ((1ULL << (i % 64)) - 1));
}

bool vf_continues_after_call(const struct vf_graph *g, uint32_t i)
{
	const struct vf_block *b = &g->blocks[i];

	return b->returns && i + 1 < g->nr_blocks && g->blocks[i + 1].start == b->end &&
	       (b->fde == VF_NONE || g->blocks[i + 1].fde == b->fde);
}
