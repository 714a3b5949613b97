// SPDX-License-Identifier: Apache-2.0
/*
 * layout_tail - tail duplication: if a hot block would jump to a short way out (a return, an
 * interpreter's dispatch), a copy of that way follows the block instead.
 *
 * Compilers merge such ends to save space, but only one predecessor can fall into them. Control
 * reaches a clone only by falling into it, so no known address changes. A clone saves a taken
 * branch and an instruction even if the profile is wrong; only its worth is an estimate.
 * Called by layout.c when the order is final.
 */
#include <errno.h>
#include <string.h>

#include "editor/layout/layout_private.h"
#include "editor/layout/predict.h"
#include "libprof/base/grow.h"

/* Compared with 24 and 6, these limits save 1 % more taken branches of the programs in
 * scripts/bench/bench-accuracy, for 3 % more hot bytes; no program gets worse. */
#define MAX_INSNS  40
#define MAX_BLOCKS 10
/* At least this share of the entries into a clone must reach its end. The other
 * entries leave it before, and save no jump there. */
#define MIN_REACH 0.5
/* A loop keeps the jump into its middle if this share of the executions of the block there fall into it: a clone
 * would save less than a jump in ten rounds. zstd was 1 % slower with such clones (lab/results.md). */
#define PEELED_FALLS 0.9
/* Clones may add this share of the bytes of the hot zone: a bound for files with many ways out.
 * test_layout_tail shows which clones get the bytes if there are too few. */
#define MAX_GROWTH 0.25

struct tail {
	uint32_t at; /* index in the plan: clones follow this block */
	uint32_t nr_blocks, bytes;
	uint32_t blocks[MAX_BLOCKS];
	double saved; /* taken branches, in units of counts */
};

struct tails {
	const struct mp_cfg *cfg;
	const struct mp_counts *counts;
	const struct me_plan *plan;
	uint32_t *at; /* per cfg block: its index in the plan's hot zone; MP_NONE: not copied there */
	struct tail *found;
	uint32_t nr, capacity;
};

/* The edges that leave @block by a branch or jump if block @next follows; one of them could fall
 * through instead. Return: how many. */
static uint32_t loose_edges(const struct tails *t, const struct mp_block *block, uint32_t next,
			    uint32_t out[2])
{
	uint32_t nr = 0;

	if (block->term != MP_TERM_JUMP && block->term != MP_TERM_FALL &&
	    block->term != MP_TERM_COND)
		return 0;
	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++) {
		if (t->cfg->edges[e].to == next || nr == 2)
			return 0;
		out[nr++] = e;
	}
	return nr;
}

/* The likelier successor of a block that does not end the function; MP_NONE: no evidence. */
static uint32_t likely_edge(const struct tails *t, const struct mp_block *block)
{
	uint32_t best = MP_NONE;

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++) {
		if (t->counts->edge[e] > 0 &&
		    (best == MP_NONE || t->counts->edge[e] > t->counts->edge[best]))
			best = e;
	}
	return best;
}

static bool is_cloneable(const struct tails *t, const struct tail *tail, uint32_t b)
{
	const struct mp_block *block = &t->cfg->blocks[b];
	uint16_t never = MP_BLOCK_ENTRY | MP_BLOCK_LANDING_PAD | MP_BLOCK_STAYS;

	for (uint32_t i = 0; i < tail->nr_blocks; i++) {
		if (tail->blocks[i] == b)
			return false;
	}
	return t->at[b] != MP_NONE && !(block->flags & never) && t->counts->block[b] > 0;
}

static bool ends_function(const struct mp_block *block)
{
	return block->term == MP_TERM_RET || block->term == MP_TERM_TABLE ||
	       block->term == MP_TERM_INDIRECT_TAIL || block->term == MP_TERM_TAIL;
}

/* The clone would be a part of the first round of a loop with many rounds: from @next, behind the clone, control
 * falls into the cloned blocks, and hardly anything else leads there. */
static bool peels_loop(const struct tails *t, const struct tail *tail, uint32_t next)
{
	uint32_t first = tail->blocks[0];

	return t->at[first] > t->at[next] &&
	       me_way_count(t->cfg, t->counts, t->plan->blocks[t->at[first] - 1].block, first) >=
		       PEELED_FALLS * t->counts->block[first];
}

/* Follows the likely way from @b. Return: true if it ends within the limits. */
static bool follow(const struct tails *t, uint32_t b, uint32_t next, struct tail *tail)
{
	uint32_t nr_insns = 0;
	double reach = 1;

	while (tail->nr_blocks < MAX_BLOCKS && is_cloneable(t, tail, b)) {
		const struct mp_block *block = &t->cfg->blocks[b];
		uint32_t edge;

		nr_insns += block->nr_insns;
		if (nr_insns > MAX_INSNS)
			return false;
		tail->blocks[tail->nr_blocks++] = b;
		tail->bytes += block->size;
		if (ends_function(block))
			break;
		edge = block->term == MP_TERM_COND || block->term == MP_TERM_JUMP ||
				       block->term == MP_TERM_FALL
			       ? likely_edge(t, block)
			       : MP_NONE;
		if (edge == MP_NONE)
			return false;
		reach *= t->counts->edge[edge] / t->counts->block[b];
		b = t->cfg->edges[edge].to;
		if (reach < MIN_REACH)
			return false;
		if (b == next)
			break;
	}
	if (!tail->nr_blocks || (b != next && !ends_function(&t->cfg->blocks[b])))
		return false;
	/* The walk must have ended at its last block; a loop does not. */
	if (b != next && tail->blocks[tail->nr_blocks - 1] != b)
		return false;
	tail->saved *= reach;
	return b != next || !peels_loop(t, tail, next);
}

static int find(struct tails *t, uint32_t i)
{
	const struct me_plan_block *planned = &t->plan->blocks[i];
	uint32_t next = MP_NONE, edges[2], nr;
	struct tail tail = {.saved = 0};

	if (i + 1 < t->plan->nr_blocks && planned[1].zone == planned->zone)
		next = planned[1].block;
	nr = loose_edges(t, &t->cfg->blocks[planned->block], next, edges);
	for (uint32_t k = 0; k < nr; k++) {
		struct tail other = {.at = i, .saved = t->counts->edge[edges[k]]};

		if (other.saved > 0 && follow(t, t->cfg->edges[edges[k]].to, next, &other) &&
		    other.saved > tail.saved)
			tail = other;
	}
	if (!(tail.saved > 0))
		return 0;
	return mp_push(t->found, t->nr, t->capacity, tail);
}

static int compare_worth(const void *a, const void *b)
{
	const struct tail *x = a, *y = b;
	double wx = x->saved / x->bytes, wy = y->saved / y->bytes;

	if (wx != wy)
		return wx > wy ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int compare_place(const void *a, const void *b)
{
	const struct tail *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Keeps the clones with the highest worth per byte within the budget, in the order of the plan. */
static void choose(struct tails *t)
{
	uint64_t bytes = 0, budget;
	uint32_t kept = 0, nr_clones = 0;

	for (uint32_t i = 0; i < t->plan->nr_blocks; i++) {
		if (t->plan->blocks[i].zone == ME_ZONE_HOT)
			bytes += t->cfg->blocks[t->plan->blocks[i].block].size;
	}
	budget = (uint64_t)((double)bytes * MAX_GROWTH);
	if (t->nr)
		qsort(t->found, t->nr, sizeof(*t->found), compare_worth);
	for (uint32_t i = 0; i < t->nr; i++) {
		if (t->found[i].bytes > budget)
			continue;
		budget -= t->found[i].bytes;
		nr_clones += t->found[i].nr_blocks;
		t->found[kept++] = t->found[i];
	}
	t->nr = kept;
	if (kept)
		qsort(t->found, kept, sizeof(*t->found), compare_place);
	t->capacity = nr_clones;
}

static int insert(const struct tails *t, struct me_plan *plan)
{
	uint32_t nr = 0, next = 0;
	struct me_plan_block *blocks;

	blocks = malloc(((size_t)plan->nr_blocks + t->capacity + 1) * sizeof(*blocks));
	if (!blocks)
		return -ENOMEM;
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		blocks[nr++] = plan->blocks[i];
		if (next == t->nr || t->found[next].at != i)
			continue;
		for (uint32_t k = 0; k < t->found[next].nr_blocks; k++) {
			blocks[nr] = (struct me_plan_block){.block = t->found[next].blocks[k],
							    .zone = plan->blocks[i].zone,
							    .why = ME_WHY_TAIL,
							    .clone = true};
			nr++;
		}
		next++;
	}
	free(plan->blocks);
	plan->blocks = blocks;
	plan->nr_blocks = nr;
	return 0;
}

int me_tails_add(const struct mp_cfg *cfg, const struct mp_counts *counts, struct me_plan *plan)
{
	struct tails t = {.cfg = cfg, .counts = counts, .plan = plan};
	int ret = -ENOMEM;

	t.at = malloc(((size_t)cfg->nr_blocks + 1) * sizeof(*t.at));
	if (!t.at)
		goto out;
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		t.at[b] = MP_NONE;
	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		if (plan->blocks[i].zone == ME_ZONE_HOT)
			t.at[plan->blocks[i].block] = i;
	ret = 0;
	for (uint32_t i = 0; i < plan->nr_blocks && !ret; i++) {
		if (plan->blocks[i].zone == ME_ZONE_HOT)
			ret = find(&t, i);
	}
	if (ret)
		goto out;
	choose(&t);
	ret = insert(&t, plan);
out:
	free(t.at);
	free(t.found);
	return ret;
}
