// SPDX-License-Identifier: Apache-2.0
/*
 * heat_after - follows the original's flow through an optimised file; see heat.h.
 *
 * Decides which copy of a block is the primary one and how the block's count is divided among
 * the copies. Uses only the file's bytes and its map, not the editor's plan.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/draw/heat_after_private.h"
#include "libprof/base/search.h"
#include "libprof/infer/counts_doubt.h"
#include "libprof/insn/insn.h"

/* ---- looking up ---------------------------------------------------------------------------- */

/* Return: index of the first copy at or after @vaddr. */
static uint32_t copy_from(const struct md_heat_after *a, uint64_t vaddr)
{
	return mp_search(i, 0, a->nr, a->copies[i].vaddr < vaddr);
}

/*
 * Copies of removed jumps are empty, so several copies can start at one address. The limit
 * protects against a malicious file with millions of them.
 */
#define MAX_AT_ONE_ADDRESS 64

static uint32_t copies_end(const struct md_heat_after *a, uint32_t from)
{
	return a->nr - from < MAX_AT_ONE_ADDRESS ? a->nr : from + MAX_AT_ONE_ADDRESS;
}

/* Return: the copy of @block that starts at @vaddr, or MP_NONE. */
static uint32_t copy_at(const struct md_heat_after *a, uint64_t vaddr, uint32_t block)
{
	uint32_t from = copy_from(a, vaddr), end = copies_end(a, from);

	for (uint32_t i = from; i < end && a->copies[i].vaddr == vaddr; i++)
		if (a->copies[i].block == block)
			return i;
	return MP_NONE;
}

/* ---- which copy is which ------------------------------------------------------------------- */

/* Return: where the jump at the old start of @block leads; 0: there is no such jump. */
static uint64_t patch_target(const struct md_heat_after *a, uint32_t b)
{
	const struct mp_block *block = &a->view.cfg.blocks[b];
	const uint8_t *bytes = mp_elf_bytes(a->elf, block->vaddr, block->size);
	struct mp_insn insn;
	uint64_t at = 0;

	if (!bytes || mp_insn_decode(bytes, block->size, block->vaddr, &insn))
		return 0;
	if (insn.endbr64) {
		at = insn.len;
		if (mp_insn_decode(bytes + at, block->size - at, block->vaddr + at, &insn))
			return 0;
	}
	return insn.kind == MP_INSN_JUMP ? insn.target : 0;
}

/* Return: how often @from is followed by @to, over all edges. */
static double way_count(const struct md_heat_after *a, uint32_t from, uint32_t to)
{
	const struct mp_block *block = &a->view.cfg.blocks[from];
	double sum = 0;

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		if (a->view.cfg.edges[e].to == to)
			sum += a->counts.edge[e];
	return sum;
}

/*
 * Return: the count that falls into copy @i from the copy before; -1: that copy does not fall
 * into it.
 */
static double falls_into(const struct md_heat_after *a, uint32_t i)
{
	const struct mp_block *before;

	if (!i || !a->copies[i - 1].end_of.falls)
		return -1;
	before = &a->view.cfg.blocks[a->copies[i - 1].block];
	for (uint32_t e = before->first_edge; e < before->first_edge + before->nr_edges; e++)
		if (a->view.cfg.edges[e].to == a->copies[i].block)
			return way_count(a, a->copies[i - 1].block, a->copies[i].block);
	return -1;
}

/*
 * The measure for choosing the primary copy, if no other evidence does: the count that falls into
 * copy @i.
 */
static double primary_score(const struct md_heat_after *a, uint32_t i)
{
	bool behind_primary = i && a->primary[a->copies[i - 1].block] == i - 1;

	return falls_into(a, i) * (behind_primary ? 1 : 0.5);
}

static void mark_target(const struct md_heat_after *a, uint64_t target, uint8_t *is_target)
{
	uint32_t from = copy_from(a, target), end = copies_end(a, from);

	for (uint32_t i = from; i < end && a->copies[i].vaddr == target; i++)
		is_target[i] = 1;
}

/* Code that was not moved also branches to the copies. */
static void mark_old_branches(const struct md_heat_after *a, uint8_t *is_target)
{
	for (uint32_t b = 0; b < a->view.cfg.nr_blocks; b++) {
		const struct mp_block *block = &a->view.cfg.blocks[b];
		uint64_t at = block->vaddr + block->size - block->term_len;
		const uint8_t *bytes = mp_elf_bytes(a->elf, at, block->term_len);
		struct mp_insn insn;

		if (!bytes || !block->term_len ||
		    mp_insn_decode(bytes, block->term_len, at, &insn) ||
		    insn.len != block->term_len)
			continue;
		/*
		 * The jump at the block's start may cover the branch: it has five bytes,
		 * perhaps after an endbr64.
		 */
		if (block->size < block->term_len + 9u && at != block->vaddr && patch_target(a, b))
			continue;
		if (insn.kind == MP_INSN_COND || insn.kind == MP_INSN_JUMP)
			mark_target(a, insn.target, is_target);
	}
}

/* Evidence that a copy is the block's primary one, weakest first. 0: there is none. */
enum rank {
	BEHIND_ANOTHER =
		1, /* the one with the most flow falling into it: the layout puts such copies in line */
	BEGINS_A_RUN, /* nothing falls into it */
	TARGET_OF_BRANCH,
	TARGET_OF_PATCH, /* the old start jumps to it */
};

/* Chooses each block's primary copy by rank; a clone is an extra. */
static int find_primaries(struct md_heat_after *a)
{
	uint32_t nr_blocks = a->view.cfg.nr_blocks;
	uint8_t *is_target = calloc((size_t)a->nr + 1, 1);
	uint8_t *rank = calloc((size_t)nr_blocks + 1, 1);

	a->primary = malloc(((size_t)nr_blocks + 1) * sizeof(*a->primary));
	if (!is_target || !rank || !a->primary) {
		free(is_target);
		free(rank);
		return -ENOMEM;
	}
	for (uint32_t b = 0; b < nr_blocks; b++)
		a->primary[b] = MP_NONE;
	for (uint32_t i = 0; i < a->nr; i++) {
		if (a->copies[i].end_of.cond_at)
			mark_target(a, a->copies[i].end_of.cond_to, is_target);
		if (a->copies[i].end_of.jump_at)
			mark_target(a, a->copies[i].end_of.jump_to, is_target);
	}
	mark_old_branches(a, is_target);
	for (uint32_t i = 0; i < a->nr; i++) {
		uint32_t b = a->copies[i].block;
		uint8_t now = BEHIND_ANOTHER;

		if (patch_target(a, b) == a->copies[i].vaddr)
			now = TARGET_OF_PATCH;
		else if (is_target[i])
			now = TARGET_OF_BRANCH;
		else if (falls_into(a, i) < 0)
			now = BEGINS_A_RUN;
		if (now > rank[b]) {
			rank[b] = now;
			a->primary[b] = i;
		}
	}
	/* Scores depend on the primary of the copy before, so repeat. */
	for (int round = 0; round < 4; round++)
		for (uint32_t i = 0; i < a->nr; i++) {
			uint32_t b = a->copies[i].block;

			if (rank[b] == BEHIND_ANOTHER &&
			    primary_score(a, i) > primary_score(a, a->primary[b]))
				a->primary[b] = i;
		}
	for (uint32_t i = 0; i < a->nr; i++) {
		a->copies[i].clone = a->primary[a->copies[i].block] != i;
		a->copies[i].share = !a->copies[i].clone;
	}
	free(is_target);
	free(rank);
	return 0;
}

/* ---- flow ---------------------------------------------------------------------------------- */

/*
 * A block that loses flow to clones also sends less into the clones behind its copies. These
 * rounds solve the equations, except for long chains of clones.
 */
#define ROUNDS 16

static void share_flow(struct md_heat_after *a)
{
	const double *counts = a->counts.block;

	for (int round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < a->nr; i++) {
			struct md_heat_copy *copy = &a->copies[i];
			double now = 0, *rest;

			if (!copy->clone)
				continue;
			if (i && a->copies[i - 1].end_of.falls && counts[copy->block] > 0)
				now = fmax(a->copies[i - 1].share, 0) *
				      way_count(a, a->copies[i - 1].block, copy->block) /
				      counts[copy->block];
			rest = &a->copies[a->primary[copy->block]].share;
			*rest += copy->share - now;
			copy->share = now;
		}
	}
	for (uint32_t i = 0; i < a->nr; i++)
		a->copies[i].share = fmax(a->copies[i].share, 0);
}

/* Return: address where a branch to @block leads now. */
static uint64_t address_of(const struct md_heat_after *a, uint32_t block)
{
	if (a->primary[block] != MP_NONE)
		return a->copies[a->primary[block]].vaddr;
	return a->view.cfg.blocks[block].vaddr;
}

/* Return: new address of the original's @target. */
static uint64_t address_now(const struct md_heat_after *a, uint64_t target)
{
	uint32_t b = md_heat_block_starting(a, target);

	return b == MP_NONE ? target : address_of(a, b);
}

/* Adds an edge out of @copy, by the branch that leads there; falling through adds no jump. */
static int add_edge(struct md_heat_after *a, const struct md_heat_copy *copy,
		    const struct mp_edge *edge, double count)
{
	const struct md_heat_end *end = &copy->end_of;
	uint64_t to = address_of(a, edge->to);

	if (edge->kind == MP_EDGE_TABLE)
		return md_heat_add_jump(a->out, copy->end, to, count, MD_HEAT_TABLE);
	if (end->cond_at && (end->cond_to == to || copy_at(a, end->cond_to, edge->to) != MP_NONE))
		return md_heat_add_jump(a->out, end->cond_at, end->cond_to, count, MD_HEAT_BRANCH);
	if (end->jump_at && (end->jump_to == to || copy_at(a, end->jump_to, edge->to) != MP_NONE))
		return md_heat_add_jump(a->out, end->jump_at, end->jump_to, count, MD_HEAT_BRANCH);
	if (end->falls && copy + 1 < a->copies + a->nr && copy[1].block == edge->to)
		return 0;
	/* The branch leads to the old start of a copied block, which jumps on. */
	return md_heat_add_jump(a->out, end->cond_at ? end->cond_at : end->jump_at, to, count,
				MD_HEAT_BRANCH);
}

/*
 * Adds the calls of a block, which is at @vaddr now. A call keeps its offset in the block.
 * @lacks_last: the call at the block's end is not there.
 */
static int add_calls(struct md_heat_after *a, uint32_t b, uint64_t vaddr, bool lacks_last,
		     double share)
{
	const struct mp_cfg *cfg = &a->view.cfg;
	uint32_t c = mp_cfg_call_from(cfg, 0, cfg->nr_calls, b);
	int r = 0;

	for (; c < cfg->nr_calls && cfg->calls[c].block == b && !r; c++) {
		const struct mp_call *call = &cfg->calls[c];
		bool is_last = c + 1 == cfg->nr_calls || call[1].block != b;

		if (!call->tail && !(lacks_last && is_last))
			r = md_heat_add_jump(a->out, vaddr + call->offset,
					     address_now(a, mp_call_target(cfg, call)),
					     a->counts.block[b] * share, MD_HEAT_CALL);
	}
	return r;
}

static int add_copy(struct md_heat_after *a, const struct md_heat_copy *copy)
{
	const struct mp_cfg *cfg = &a->view.cfg;
	const struct mp_block *block = &cfg->blocks[copy->block];
	double share = copy->share * a->rest[copy->block];
	double count = a->counts.block[copy->block] * share;
	const struct md_heat_place place = {
		.vaddr = copy->vaddr,
		.size = (uint32_t)(copy->end - copy->vaddr),
		.func = block->func,
		.count = count,
		.insns = count * (block->nr_insns - (copy->nr_inlined ? 1 : 0)),
	};
	int r = md_heat_add_place(a->out, &place);

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges && !r; e++)
		r = add_edge(a, copy, &cfg->edges[e], a->counts.edge[e] * share);
	/* A jump through a slot leaves the file. */
	if (!r && !copy->lacks_call)
		r = md_heat_add_jump(a->out, copy->end, address_now(a, mp_block_target(block)),
				     md_heat_leaving(cfg, &a->counts, copy->block) * share,
				     block->term == MP_TERM_TAIL ? MD_HEAT_CALL : MD_HEAT_BRANCH);
	return r ? r : add_calls(a, copy->block, copy->vaddr, copy->lacks_call, share);
}

/*
 * A block that was not moved. Its branches lead to the copies; instead of falling through, it
 * jumps.
 */
static int add_stayed(struct md_heat_after *a, uint32_t b)
{
	const struct mp_cfg *cfg = &a->view.cfg;
	const struct mp_block *block = &cfg->blocks[b];
	double share = a->rest[b], count = a->counts.block[b] * share;
	const struct md_heat_place place = {
		.vaddr = block->vaddr,
		.size = block->size,
		.func = block->func,
		.count = count,
		.insns = count * block->nr_insns,
	};
	uint64_t end = block->vaddr + block->size;
	int r = md_heat_add_place(a->out, &place);

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges && !r; e++) {
		const struct mp_edge *edge = &cfg->edges[e];
		uint64_t to = address_of(a, edge->to);

		if (edge->kind == MP_EDGE_FALL && a->primary[edge->to] != MP_NONE)
			r = md_heat_add_jump(a->out, end, to, a->counts.edge[e] * share,
					     MD_HEAT_BRANCH);
		else if (edge->kind != MP_EDGE_FALL)
			r = md_heat_add_jump(
				a->out, end - block->term_len, to, a->counts.edge[e] * share,
				edge->kind == MP_EDGE_TABLE ? MD_HEAT_TABLE : MD_HEAT_BRANCH);
	}
	if (!r)
		r = md_heat_add_jump(a->out, end - block->term_len,
				     address_now(a, mp_block_target(block)),
				     md_heat_leaving(cfg, &a->counts, b) * share,
				     block->term == MP_TERM_TAIL ? MD_HEAT_CALL : MD_HEAT_BRANCH);
	return r ? r : add_calls(a, b, block->vaddr, false, share);
}

/* ---- what to expect ------------------------------------------------------------------------ */

/* Taken branches of block @b if a copy of block @follows comes directly after. */
static double taken_of(const struct md_heat_input *in, uint32_t b, uint32_t follows)
{
	const struct mp_block *block = &in->cfg->blocks[b];
	double sum = 0;

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		if (in->cfg->edges[e].kind != MP_EDGE_TABLE && in->cfg->edges[e].to != follows)
			sum += in->counts->edge[e];
	if (block->term == MP_TERM_COND)
		sum += md_heat_leaving(in->cfg, in->counts, b);
	return sum;
}

static void count_moved(struct md_heat_after *a)
{
	const struct mp_cfg *cfg = a->in->cfg;

	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const struct mp_func *func = &cfg->funcs[f];
		bool runs = false;

		for (uint32_t b = a->view.first[func->first_block];
		     b < a->view.first[func->first_block + func->nr_blocks]; b++)
			runs |= a->primary[b] != MP_NONE && a->counts.block[b] > 0;
		a->out->nr_moved += runs;
	}
}

static int add_all(struct md_heat_after *a)
{
	int r = 0;

	for (uint32_t i = 0; i < a->nr && !r; i++)
		if (a->counts.block[a->copies[i].block] > 0)
			r = add_copy(a, &a->copies[i]);
	if (!r)
		r = md_heat_inlined_add(a);
	for (uint32_t b = 0; b < a->view.cfg.nr_blocks && !r; b++)
		if (a->counts.block[b] > 0 && a->primary[b] == MP_NONE)
			r = add_stayed(a, b);
	return r ? r : md_heat_add_loose(a->in, a->out);
}

static int flow_follow(const struct md_heat_input *in, const struct mp_map *map,
		       const struct mp_elf *elf, struct md_heat *out)
{
	struct md_heat_after a = {.in = in, .elf = elf, .out = out};
	int r;

	*out = (struct md_heat){0};
	r = md_heat_pieces_read(&a, map);
	if (!r)
		r = find_primaries(&a);
	if (!r) {
		share_flow(&a);
		r = md_heat_inlined_share(&a);
	}
	if (!r)
		r = add_all(&a);
	if (!r)
		count_moved(&a);
	mp_cfg_view_fini(&a.view);
	free(a.counts.block);
	free(a.counts.edge);
	free(a.copies);
	free(a.inlined);
	free(a.primary);
	free(a.rest);
	return r;
}

/* Predicts the taken branches: follows the flow once more, by counts with doubt. */
static int expect(const struct md_heat_input *in, const struct mp_map *map,
		  const struct mp_elf *elf, struct md_heat *out)
{
	double before = 0, doubted_before = 0;
	struct md_heat_input doubted_in = *in;
	struct mp_counts doubted_counts;
	struct md_heat doubted;
	int r = mp_counts_add_doubt(in->cfg, in->counts, MP_DOUBT_FITTED, &doubted_counts);

	if (r)
		return r;
	doubted_in.counts = &doubted_counts;
	r = flow_follow(&doubted_in, map, elf, &doubted);
	for (uint32_t b = 0; b < in->cfg->nr_blocks && !r; b++) {
		before += taken_of(in, b, mp_cfg_falls_to(in->cfg, b));
		doubted_before += taken_of(&doubted_in, b, mp_cfg_falls_to(in->cfg, b));
	}
	out->expected_ratio = doubted_before > 0 ? doubted.taken / doubted_before : 1;
	out->expected_taken = before * out->expected_ratio;
	free(doubted_counts.edge);
	md_heat_fini(&doubted);
	return r;
}

int md_heat_after(const struct md_heat_input *in, const struct mp_map *map,
		  const struct mp_elf *elf, struct md_heat *out)
{
	int r = flow_follow(in, map, elf, out);

	if (!r)
		r = expect(in, map, elf, out);
	md_heat_sort(out);
	return r;
}
