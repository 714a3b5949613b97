// SPDX-License-Identifier: Apache-2.0
/*
 * heat_inlined - the flow through code in place of calls, and around stubs that calls pass by. Called by
 * heat_after.c.
 *
 * Counts are those of blocks, whoever called them. So each place gets the part of the called function's
 * counts that it has of the calls.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/draw/heat_after_private.h"

/* ---- shares -------------------------------------------------------------------------------- */

/* Code in place of calls has calls whose own functions have such code: so deep it is followed. */
#define ROUNDS 8

/* How often the copy runs, as far as the rest of its function's counts is known. */
static double flow_of(const struct md_heat_after *a, const struct md_heat_copy *copy)
{
	return a->counts.block[copy->block] * copy->share * a->rest[copy->block];
}

static uint32_t callee(const struct md_heat_after *a, const struct md_heat_copy *site)
{
	return a->view.cfg.blocks[a->inlined[site->first_inlined].block].func;
}

/* Return: how often @func was called. */
static double entered(const struct md_heat_after *a, uint32_t func)
{
	uint32_t b = md_heat_block_starting(a, a->in->cfg->funcs[func].vaddr);

	return b == MP_NONE ? 0 : a->counts.block[b];
}

/* @flow: of each copy. @lost: per function: how often code in its place runs. */
static void share_functions(struct md_heat_after *a, const double *flow, const double *lost)
{
	for (uint32_t i = 0; i < a->nr; i++) {
		const struct md_heat_copy *site = &a->copies[i];
		double all, share;
		uint32_t func;

		if (!site->nr_inlined)
			continue;
		func = callee(a, site);
		/* Inferred calls may be more than the function's count. */
		all = fmax(entered(a, func), lost[func]);
		share = all > 0 && entered(a, func) > 0 ? flow[i] / all : 0;
		for (uint32_t k = 0; k < site->nr_inlined; k++)
			a->inlined[site->first_inlined + k].share = share;
	}
	for (uint32_t f = 0; f < a->in->cfg->nr_funcs; f++) {
		const struct mp_func *func = &a->in->cfg->funcs[f];
		double all = lost[f] > 0 ? entered(a, f) : 0;

		if (!(all > 0))
			continue;
		for (uint32_t b = a->view.first[func->first_block];
		     b < a->view.first[func->first_block + func->nr_blocks]; b++)
			a->rest[b] = fmax(0, 1 - lost[f] / all);
	}
}

/* Divides anew, by the rests of functions that the round before found. */
static void share_round(struct md_heat_after *a, double *flow, double *lost)
{
	for (uint32_t f = 0; f < a->in->cfg->nr_funcs; f++)
		lost[f] = 0;
	for (uint32_t i = 0; i < a->nr; i++) {
		flow[i] = flow_of(a, &a->copies[i]);
		if (a->copies[i].nr_inlined)
			lost[callee(a, &a->copies[i])] += flow[i];
	}
	for (uint32_t b = 0; b < a->view.cfg.nr_blocks; b++)
		a->rest[b] = 1;
	share_functions(a, flow, lost);
}

int md_heat_inlined_share(struct md_heat_after *a)
{
	double *lost = malloc(((size_t)a->in->cfg->nr_funcs + 1) * sizeof(*lost));
	double *flow = malloc(((size_t)a->nr + 1) * sizeof(*flow));

	a->rest = malloc(((size_t)a->view.cfg.nr_blocks + 1) * sizeof(*a->rest));
	if (!lost || !flow || !a->rest) {
		free(lost);
		free(flow);
		return -ENOMEM;
	}
	for (uint32_t b = 0; b < a->view.cfg.nr_blocks; b++)
		a->rest[b] = 1;
	for (int round = 0; round < ROUNDS; round++)
		share_round(a, flow, lost);
	for (uint32_t i = 0; i < a->nr; i++) {
		uint32_t stub = a->copies[i].stub;

		if (stub != MP_NONE && a->counts.block[stub] > 0)
			a->rest[stub] = fmax(0, a->rest[stub] - flow[i] / a->counts.block[stub]);
	}
	free(lost);
	free(flow);
	return 0;
}

/* ---- places and jumps ---------------------------------------------------------------------- */

/* Does a copy of @block in place of @site's call start at @vaddr? */
static bool starts(const struct md_heat_after *a, const struct md_heat_copy *site, uint64_t vaddr,
		   uint32_t block)
{
	const struct md_heat_inlined *in = &a->inlined[site->first_inlined];

	for (uint32_t k = 0; k < site->nr_inlined; k++)
		if (in[k].vaddr == vaddr && in[k].first_block == block)
			return true;
	return false;
}

/* Adds an edge of a called function; falling through adds no jump. */
static int add_edge(struct md_heat_after *a, const struct md_heat_copy *site,
		    const struct md_heat_end *end, uint32_t to, double count)
{
	if (end->cond_at && starts(a, site, end->cond_to, to))
		return md_heat_add_jump(a->out, end->cond_at, end->cond_to, count, MD_HEAT_BRANCH);
	if (end->jump_at && starts(a, site, end->jump_to, to))
		return md_heat_add_jump(a->out, end->jump_at, end->jump_to, count, MD_HEAT_BRANCH);
	return 0;
}

static int add_one(struct md_heat_after *a, const struct md_heat_copy *site,
		   const struct md_heat_inlined *in)
{
	const struct mp_cfg *cfg = &a->view.cfg;
	const struct mp_block *block = &cfg->blocks[in->block];
	double count = a->counts.block[in->block] * in->share;
	const struct md_heat_place place = {
		.vaddr = in->vaddr,
		.size = (uint32_t)(in->end - in->vaddr),
		.func = block->func,
		.count = count,
		.insns = count * in->nr_insns,
	};
	int r = md_heat_add_place(a->out, &place);

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges && !r; e++)
		r = add_edge(a, site, &in->end_of, cfg->edges[e].to, a->counts.edge[e] * in->share);
	/* A return that is not last has become a jump. */
	if (!r && block->term == MP_TERM_RET && in->end_of.jump_at)
		r = md_heat_add_jump(a->out, in->end_of.jump_at, in->end_of.jump_to, count,
				     MD_HEAT_BRANCH);
	return r;
}

int md_heat_inlined_add(struct md_heat_after *a)
{
	int r = 0;

	for (uint32_t i = 0; i < a->nr; i++) {
		const struct md_heat_copy *site = &a->copies[i];

		for (uint32_t k = 0; k < site->nr_inlined && !r; k++)
			r = add_one(a, site, &a->inlined[site->first_inlined + k]);
	}
	return r;
}
