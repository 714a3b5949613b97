// SPDX-License-Identifier: Apache-2.0
/*
 * stubs - merges stubs into the order of a plan. instrument and number decide what stubs do,
 * and on which paths.
 */
#include "editor/instrument/stubs.h"

#include <errno.h>
#include <stdlib.h>

#include "editor/evidence/eligible.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

/* Compilers align functions like this at -O2. */
#define ENTRY_ALIGN_LOG2 4

struct putter {
	const struct mp_cfg *cfg;
	const uint8_t *movable;
	const struct me_stubs *stubs;
	struct me_plan out;
	struct me_stub *list; /* the stubs of @out */
	uint32_t nr_list;
	uint32_t cap_blocks, cap_list;
	uint32_t nr_inline;
};

/* Is the block of a function that stays as the plan has it? */
static bool is_other(const struct putter *p, uint32_t block)
{
	uint32_t func = p->cfg->blocks[block].func;

	return p->stubs->others_stay && (func == MP_NONE || !p->movable[func]);
}

bool me_stubs_add(struct me_stubs *stubs, struct me_stub_to stub)
{
	if (mp_grow(stubs->list, stubs->cap, stubs->nr + 1))
		return false;
	stubs->list[stubs->nr++] = stub;
	return true;
}

void me_stubs_fini(struct me_stubs *stubs)
{
	free(stubs->list);
	*stubs = (struct me_stubs){0};
}

static int compare_stubs(const void *a, const void *b)
{
	static const uint8_t order[] = {
		[ME_STUB_OUTSIDE] = 0, [ME_STUB_ALL] = 1, [ME_STUB_EDGE] = 2, [ME_STUB_POLL] = 3};
	const struct me_stub_to *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	/* Control from outside runs through that stub first. */
	if (x->what.arrivals != y->what.arrivals)
		return order[x->what.arrivals] < order[y->what.arrivals] ? -1 : 1;
	return x->what.from < y->what.from ? -1 : x->what.from > y->what.from;
}

static uint32_t first_stub(const struct putter *p, uint32_t block)
{
	return mp_search(i, 0, p->stubs->nr, p->stubs->list[i].block < block);
}

static bool put_stub(struct putter *p, const struct me_stub_to *stub, struct me_plan_block like)
{
	struct me_plan *out = &p->out;

	if (mp_grow(out->blocks, p->cap_blocks, out->nr_blocks + 1) ||
	    mp_grow(p->list, p->cap_list, p->nr_list + 1))
		return false;
	out->blocks[out->nr_blocks++] = (struct me_plan_block){.block = stub->block,
							       .zone = like.zone,
							       .why = ME_WHY_STUB,
							       .align_log2 = like.align_log2,
							       .stub = true};
	p->list[p->nr_list++] = stub->what;
	return true;
}

/* Put a block, behind the stubs on all paths to it. */
static bool put_block(struct putter *p, struct me_plan_block block)
{
	struct me_plan *out = &p->out;

	for (uint32_t i = first_stub(p, block.block);
	     i < p->stubs->nr && p->stubs->list[i].block == block.block; i++) {
		if (p->stubs->list[i].what.arrivals == ME_STUB_EDGE ||
		    p->stubs->list[i].what.arrivals == ME_STUB_POLL)
			continue;
		if (!put_stub(p, &p->stubs->list[i], block))
			return false;
		p->nr_inline++;
		block.align_log2 = 0;
	}
	if (mp_grow(out->blocks, p->cap_blocks, out->nr_blocks + 1))
		return false;
	if (!is_other(p, block.block))
		block.run = block.loop = block.pad = 0;
	out->blocks[out->nr_blocks++] = block;
	return true;
}

/* Stubs on edges are sorted by target in me_stubs, but put behind their source. */
struct between {
	uint32_t from, stub;
};

static int compare_between(const void *a, const void *b)
{
	const struct between *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->stub < y->stub ? -1 : x->stub > y->stub;
}

static uint32_t first_between(const struct between *all, uint32_t nr, uint32_t from)
{
	return mp_search(i, 0, nr, all[i].from < from);
}

struct run {
	const struct me_plan_block *blocks;
	uint32_t nr;
	const struct between *all;
	uint32_t nr_between;
};

/* Put the edge stubs behind block @i of the run: those that fall into the next block, or the
 * others. */
static bool put_between(struct putter *p, const struct run *run, uint32_t i, bool fall)
{
	uint32_t from = run->blocks[i].block;
	struct me_plan_block like = {.zone = run->blocks[i].zone};

	for (uint32_t k = first_between(run->all, run->nr_between, from);
	     k < run->nr_between && run->all[k].from == from; k++) {
		const struct me_stub_to *stub = &p->stubs->list[run->all[k].stub];
		bool next = i + 1 < run->nr && run->blocks[i + 1].block == stub->block;

		if (next != fall)
			continue;
		if (!put_stub(p, stub, like))
			return false;
		p->nr_inline += fall;
	}
	return true;
}

/* One function's blocks in one zone. */
static bool put_run(struct putter *p, const struct run *run)
{
	for (uint32_t i = 0; i < run->nr; i++)
		if (!put_block(p, run->blocks[i]) || !put_between(p, run, i, true))
			return false;
	/* At the end, put stubs that control jumps to and back from. */
	for (uint32_t i = 0; i < run->nr; i++)
		if (!put_between(p, run, i, false))
			return false;
	return true;
}

static struct between *find_between(const struct putter *p, uint32_t *nr)
{
	struct between *all = malloc(((size_t)p->stubs->nr + 1) * sizeof(*all));

	*nr = 0;
	for (uint32_t i = 0; all && i < p->stubs->nr; i++)
		if (p->stubs->list[i].what.arrivals == ME_STUB_EDGE)
			all[(*nr)++] = (struct between){p->stubs->list[i].what.from, i};
	if (all && *nr)
		qsort(all, *nr, sizeof(*all), compare_between);
	return all;
}

static void drop_clones(const struct putter *p, struct me_plan *plan)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		if (!plan->blocks[i].clone || is_other(p, plan->blocks[i].block))
			plan->blocks[nr++] = plan->blocks[i];
	plan->nr_blocks = nr;
}

/* Append blocks that the plan lacks, in their original order. */
static bool add_missing(struct me_plan *plan, const struct mp_cfg *cfg, const uint8_t *movable)
{
	uint8_t *has = calloc((size_t)cfg->nr_blocks + 1, 1);
	struct me_plan_block *bigger =
		has ? reallocarray(plan->blocks, (size_t)plan->nr_blocks + cfg->nr_blocks + 1,
				   sizeof(*bigger))
		    : NULL;

	if (!bigger) {
		free(has);
		return false;
	}
	plan->blocks = bigger;
	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		has[plan->blocks[i].block] = 1;
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		if (has[b] || block->func == MP_NONE || !movable[block->func] ||
		    me_block_stays(block))
			continue;
		plan->blocks[plan->nr_blocks++] = (struct me_plan_block){
			.block = b,
			.zone = ME_ZONE_WARM,
			.why = ME_WHY_UNSAMPLED,
			.align_log2 = block->flags & MP_BLOCK_ENTRY ? ENTRY_ALIGN_LOG2 : 0,
		};
	}
	free(has);
	return true;
}

/* Put stubs that note at the end: they seldom run. */
static bool put_notes(struct putter *p)
{
	struct me_plan_block like = {.zone = ME_ZONE_WARM};

	for (uint32_t i = 0; i < p->stubs->nr; i++)
		if (p->stubs->list[i].what.arrivals == ME_STUB_POLL &&
		    !put_stub(p, &p->stubs->list[i], like))
			return false;
	return true;
}

static int put_stubs(struct putter *p, const struct me_plan *plan)
{
	const struct mp_cfg *cfg = p->cfg;
	uint32_t nr_between;
	struct between *all = find_between(p, &nr_between);
	int rc = all ? 0 : -ENOMEM;

	for (uint32_t first = 0, end; !rc && first < plan->nr_blocks; first = end) {
		const struct me_plan_block *at = &plan->blocks[first];

		for (end = first + 1; end < plan->nr_blocks; end++)
			if (plan->blocks[end].zone != at->zone ||
			    cfg->blocks[plan->blocks[end].block].func !=
				    cfg->blocks[at->block].func)
				break;
		if (!put_run(p, &(struct run){at, end - first, all, nr_between}))
			rc = -ENOMEM;
	}
	if (!rc && !put_notes(p))
		rc = -ENOMEM;
	free(all);
	return rc;
}

int me_stubs_put(const struct mp_cfg *cfg, const uint8_t *movable, struct me_stubs *stubs,
		 struct me_plan *plan, struct me_instrumentation *added, uint32_t *nr_inline)
{
	struct putter p = {.cfg = cfg, .movable = movable, .stubs = stubs};
	int rc;

	drop_clones(&p, plan);
	if (!add_missing(plan, cfg, movable))
		return -ENOMEM;
	if (stubs->nr)
		qsort(stubs->list, stubs->nr, sizeof(*stubs->list), compare_stubs);
	rc = put_stubs(&p, plan);
	if (rc) {
		me_plan_fini(&p.out);
		free(p.list);
		return rc;
	}
	free(plan->blocks);
	plan->blocks = p.out.blocks;
	plan->nr_blocks = p.out.nr_blocks;
	added->stubs = p.list;
	added->nr_stubs = p.nr_list;
	*nr_inline = p.nr_inline;
	return 0;
}
