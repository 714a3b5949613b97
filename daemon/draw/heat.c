// SPDX-License-Identifier: Apache-2.0
/*
 * heat - places and jumps of the original; see heat.h. heat_after.c handles the optimised
 * version.
 */
#include "daemon/draw/heat.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"

int md_heat_add_place(struct md_heat *heat, const struct md_heat_place *place)
{
	if (!(place->insns > 0) || !place->size)
		return 0;
	if (mp_push(heat->places, heat->nr_places, heat->max_places, *place))
		return -ENOMEM;
	heat->insns += place->insns;
	return 0;
}

int md_heat_add_jump(struct md_heat *heat, uint64_t from, uint64_t to, double count,
		     enum md_heat_kind kind)
{
	if (!(count > 0))
		return 0;
	if (mp_push(heat->jumps, heat->nr_jumps, heat->max_jumps,
		    (struct md_heat_jump){from, to, count, kind}))
		return -ENOMEM;
	if (kind == MD_HEAT_BRANCH)
		heat->taken += count;
	return 0;
}

static int compare_places(const void *a, const void *b)
{
	const struct md_heat_place *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

void md_heat_sort(struct md_heat *heat)
{
	if (heat->nr_places)
		qsort(heat->places, heat->nr_places, sizeof(*heat->places), compare_places);
}

void md_heat_fini(struct md_heat *heat)
{
	free(heat->places);
	free(heat->jumps);
	memset(heat, 0, sizeof(*heat));
}

int md_heat_add_loose(const struct md_heat_input *in, struct md_heat *heat)
{
	int r = 0;

	/* One sample stands for one executed instruction in these units. */
	for (size_t i = 0; i < in->nr_loose && !r; i++) {
		struct md_heat_place place = {
			.vaddr = in->loose[i].vaddr,
			.size = 1,
			.func = mp_cfg_func_at(in->cfg, in->loose[i].vaddr),
			.count = (double)in->loose[i].count,
			.insns = (double)in->loose[i].count,
		};

		r = md_heat_add_place(heat, &place);
	}
	return r;
}

double md_heat_leaving(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t b)
{
	const struct mp_block *block = &cfg->blocks[b];
	double inside = 0;

	if (block->term == MP_TERM_TAIL)
		return counts->block[b];
	if (block->term != MP_TERM_COND || block->nr_edges >= 2)
		return 0;
	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		inside += counts->edge[e];
	return fmax(counts->block[b] - inside, 0);
}

static int add_block(const struct md_heat_input *in, uint32_t b, struct md_heat *out)
{
	const struct mp_block *block = &in->cfg->blocks[b];
	const struct md_heat_place place = {
		.vaddr = block->vaddr,
		.size = block->size,
		.func = block->func,
		.count = in->counts->block[b],
		.insns = in->counts->block[b] * block->nr_insns,
	};
	uint64_t from = block->vaddr + block->size - block->term_len;
	int r = md_heat_add_place(out, &place);

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges && !r; e++) {
		const struct mp_edge *edge = &in->cfg->edges[e];

		if (edge->kind != MP_EDGE_FALL)
			r = md_heat_add_jump(
				out, from, in->cfg->blocks[edge->to].vaddr, in->counts->edge[e],
				edge->kind == MP_EDGE_TABLE ? MD_HEAT_TABLE : MD_HEAT_BRANCH);
	}
	/* A tail call counts as a call; a conditional one counts as a branch that may be taken. */
	if (!r)
		r = md_heat_add_jump(out, from, mp_block_target(block),
				     md_heat_leaving(in->cfg, in->counts, b),
				     block->term == MP_TERM_TAIL ? MD_HEAT_CALL : MD_HEAT_BRANCH);
	return r;
}

int md_heat_before(const struct md_heat_input *in, struct md_heat *out)
{
	int r = 0;

	*out = (struct md_heat){0};
	for (uint32_t b = 0; b < in->cfg->nr_blocks && !r; b++)
		if (in->counts->block[b] > 0)
			r = add_block(in, b, out);
	for (uint32_t i = 0; i < in->cfg->nr_calls && !r; i++) {
		const struct mp_call *call = &in->cfg->calls[i];

		if (!call->tail)
			r = md_heat_add_jump(out, mp_call_insn(in->cfg, call),
					     mp_call_target(in->cfg, call),
					     in->counts->block[call->block], MD_HEAT_CALL);
	}
	if (!r)
		r = md_heat_add_loose(in, out);
	md_heat_sort(out);
	return r;
}
