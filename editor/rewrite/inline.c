// SPDX-License-Identifier: Apache-2.0
/* inline - decides by counts: code in place of a call makes the hot code larger. */
#include "editor/rewrite/inline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/mix.h"
#include "editor/rewrite/leaf.h"
#include "editor/rewrite/stack_walk.h"
#include "editor/unwind/unwind.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

/* Small code: some 16 instructions. */
#define SMALL 64
/*
 * Small code replaces calls that are at least this part of all calls; rarer ones save less than their code costs
 * in the hot zone (results.md, "Times of slots and inlining"). Jikes RVM's limit for functions without counts was
 * 23 instructions, and 17 in Lee et al. (TACO 2015, section 5.2).
 */
#define SHARE_OF_CALLS 0.001
/* For larger code, as in the inliner that they began with (Arnold et al. 2000). */
#define SHARE_OF_CALLS_LARGE 0.01
/*
 * Larger code that calls functions itself must be executed mostly from the call that it replaces: else the hot code grows
 * by it (results.md, "Functions that call others").
 */
#define SHARE_OF_CALLEE 0.8

enum answer {
	UNKNOWN,
	YES,
	NO,
};

/* 1 + an index is below. */
#define NO_LEAF UINT16_MAX

struct finder {
	struct me_rewriting *r;
	const struct mp_cfg *cfg;
	const uint8_t *copied; /* per block: does the plan copy it? */
	uint8_t *hot;	       /* per block: into the hot zone? */
	uint32_t *planned_at;  /* per block: where the plan copies it; UINT32_MAX: nowhere */
	uint8_t *callers;      /* per function: enum answer to me_leaf_caller() */
	uint16_t *leaf_of;     /* per function: 1 + index in @leaves, or NO_LEAF; 0: not asked */
	uint8_t *last_of; /* per function: the part that arrange() chose as the last one; 0: none */
	double nr_calls;  /* executed; 0: not known */
	bool may_call;	  /* functions that call others replace calls */
	struct me_leaf *leaves;
	uint32_t nr_leaves;
	uint32_t cap_leaves;
	bool failed; /* out of memory */
};

static bool finder_init(struct finder *f, struct me_rewriting *r, const uint8_t *copied)
{
	const struct mp_cfg *cfg = r->cfg;

	*f = (struct finder){
		.r = r,
		.cfg = cfg,
		.copied = copied,
		.hot = calloc((size_t)cfg->nr_blocks + 1, 1),
		.planned_at = calloc((size_t)cfg->nr_blocks + 1, sizeof(*f->planned_at)),
		.callers = calloc((size_t)cfg->nr_funcs + 1, 1),
		.leaf_of = calloc((size_t)cfg->nr_funcs + 1, sizeof(*f->leaf_of)),
		.last_of = calloc((size_t)cfg->nr_funcs + 1, 1),
		/* Without a profile, all of these calls would have to pay. */
		.may_call = r->arranges && !me_walks_stack(cfg->elf),
	};
	r->replaced = malloc(((size_t)cfg->nr_calls + 1) * sizeof(*r->replaced));
	if (!f->hot || !f->planned_at || !f->callers || !f->leaf_of || !f->last_of || !r->replaced)
		return false;
	memset(f->planned_at, 0xff, cfg->nr_blocks * sizeof(*f->planned_at));
	for (uint32_t i = 0; i < r->plan->nr_blocks; i++) {
		const struct me_plan_block *planned = &r->plan->blocks[i];

		if (planned->stub)
			continue;
		/* In place of a call nothing would be left out. */
		if (planned->left_out)
			f->leaf_of[cfg->blocks[planned->block].func] = NO_LEAF;
		if (planned->zone == ME_ZONE_HOT && !planned->left_out)
			f->hot[planned->block] = 1;
		if (!planned->clone)
			f->planned_at[planned->block] = i;
	}
	for (uint32_t c = 0; r->counts && c < cfg->nr_calls; c++)
		if (!cfg->calls[c].tail)
			f->nr_calls += r->counts[cfg->calls[c].block];
	return true;
}

static void finder_fini(struct finder *f)
{
	free(f->hot);
	free(f->planned_at);
	free(f->callers);
	free(f->leaf_of);
	free(f->last_of);
	free(f->leaves);
}

/* A number between 0 and 3 for the place @at, at random by the seed of --lab=stress-inline. */
static uint64_t throw_dice(uint64_t seed, uint64_t at)
{
	return me_mix(seed * UINT64_C(0x9e3779b97f4a7c15) + at) % 4;
}

/* Return: what the plan that was given says of a call which ends at @end; NULL: it stays. */
static const struct me_plan_call *given_call(const struct finder *f, uint64_t end)
{
	const struct me_rewriting *r = f->r;
	uint32_t low = mp_search(i, 0, r->nr_calls, r->calls[i].end < end);

	return low < r->nr_calls && r->calls[low].end == end ? &r->calls[low] : NULL;
}

static bool may_lose_calls(struct finder *f, uint32_t func)
{
	if (f->callers[func] == UNKNOWN)
		f->callers[func] = me_leaf_caller(f->cfg, func) ? YES : NO;
	return f->callers[func] == YES;
}

/* Return: the block at the entry of @func, behind which its part for cold code may lie; MP_NONE: none. */
static uint32_t entry_of(const struct finder *f, uint32_t func)
{
	const struct mp_func *fn = &f->cfg->funcs[func];

	return fn->nr_blocks ? mp_cfg_block_starting(f->cfg, fn->vaddr) : MP_NONE;
}

/* Does the plan copy the entry of @func? Then its blocks may move, also those that stay. */
static bool may_move(const struct finder *f, uint32_t func)
{
	uint32_t entry = entry_of(f, func);

	return entry != MP_NONE && f->copied[entry];
}

/* A key by which the parts are sorted: the zone of the block's copy, then its place in the plan. Under stress it is
 * random. */
static uint64_t wanted_place(const struct finder *f, const struct me_leaf_part *part)
{
	uint32_t block = mp_cfg_block_at(f->cfg, part->vaddr);
	const uint64_t *seed = f->r->stress;
	uint64_t place = seed ? me_mix(*seed + part->vaddr) % UINT32_MAX : f->planned_at[block];

	return place | (uint64_t)(seed ? place % 3 == 0 : !f->hot[block]) << 32;
}

/* How often a part runs, for the choice of the last one. Under stress at random. */
static double runs(const struct finder *f, const struct me_leaf_part *part)
{
	const uint64_t *seed = f->r->stress;

	return seed ? (double)me_mix(~*seed + part->vaddr)
		    : f->r->counts[mp_cfg_block_at(f->cfg, part->vaddr)];
}

static bool favours_fall(const struct finder *f, uint32_t block)
{
	uint32_t at = f->planned_at[block];

	return at != UINT32_MAX && f->r->plan->blocks[at].favour_fall;
}

/*
 * The parts stand as the function's own copy has its blocks; those that are not hot lie apart. Of the near ones, the
 * return, or jump to another function, that runs most often is last, since only it needs no jump.
 */
static bool arrange(const struct finder *f, struct me_leaf *leaf)
{
	uint64_t at[ME_LEAF_PARTS_MAX] = {0};
	uint8_t order[ME_LEAF_PARTS_MAX] = {0}, last = 0, nr_near;
	double most = -1;

	leaf->parts[0].favour_next = favours_fall(f, entry_of(f, leaf->func));
	for (uint8_t i = 1; i < leaf->nr_parts; i++) {
		struct me_leaf_part *part = &leaf->parts[i];
		uint32_t block = mp_cfg_block_at(f->cfg, part->vaddr);
		uint8_t k = i;

		at[i] = wanted_place(f, part);
		part->favour_next = favours_fall(f, block);
		for (; k > 1 && at[order[k - 1]] > at[i]; k--)
			order[k] = order[k - 1];
		order[k] = i;
		if (f->r->given)
			last = (part->returns || part->tails) && i == f->last_of[leaf->func] ? i
											     : last;
		else if ((part->returns || part->tails) && runs(f, part) > most) {
			most = runs(f, part);
			last = i;
		}
	}
	f->last_of[leaf->func] = last;
	/* A function whose entry returns, and whose other blocks do not, stays as it is. */
	if (!last)
		return true;
	at[last] &= UINT32_MAX;
	nr_near = 0;
	for (uint8_t k = 0; k < leaf->nr_parts; k++)
		nr_near += at[order[k]] <= UINT32_MAX;
	for (uint8_t k = 1, to = 1; k < leaf->nr_parts; k++)
		if (order[k] != last)
			order[to++] = order[k];
	memmove(&order[nr_near], &order[nr_near - 1], leaf->nr_parts - nr_near);
	order[nr_near - 1] = last;
	return me_leaf_arrange(leaf, order, nr_near);
}

/* In place of a jump to another function stands a call, below which debug information would find a frame too many. */
static bool may_call(const struct finder *f, const struct me_leaf *leaf)
{
	bool tails = false;

	for (uint8_t i = 0; i < leaf->nr_parts; i++)
		tails |= leaf->parts[i].tails;
	return f->may_call && !(tails && f->r->described);
}

/* Does debug information, if there is any, get the lines of @func in place of a call? It does for one part only. */
static bool is_described(const struct finder *f, uint32_t func)
{
	return f->cfg->funcs[func].nr_ranges == 1 || !f->r->described;
}

/* Return: 1 + index of the leaf that @func is, or NO_LEAF. Out of memory, sets @failed. */
static uint16_t ask_leaf(struct finder *f, uint32_t func)
{
	struct me_leaf *leaf;
	int is;

	if (f->leaf_of[func])
		return f->leaf_of[func];
	f->leaf_of[func] = NO_LEAF;
	if (!may_move(f, func) || f->nr_leaves == NO_LEAF - 1 || !is_described(f, func))
		return NO_LEAF;
	if (mp_grow(f->leaves, f->cap_leaves, f->nr_leaves + 1)) {
		f->failed = true;
		return NO_LEAF;
	}
	leaf = &f->leaves[f->nr_leaves];
	is = me_leaf_find(f->cfg, func, leaf);
	f->failed |= is < 0;
	if (is <= 0 || (leaf->calls && !may_call(f, leaf)) ||
	    (leaf->calls && f->r->slots && !me_leaf_use_slots(f->cfg, leaf)) ||
	    (f->r->arranges && !arrange(f, leaf)))
		return NO_LEAF;
	f->leaf_of[func] = (uint16_t)++f->nr_leaves;
	return f->leaf_of[func];
}

/* Under stress, the seed chooses a quarter to all of the calls. */
static bool is_chosen(const struct finder *f, const struct mp_call *call)
{
	uint64_t seed = *f->r->stress;

	return throw_dice(seed, mp_call_insn(f->cfg, call)) <= seed % 4;
}

/* May @call pay, if the code is small enough? */
static bool is_hot(const struct finder *f, const struct mp_call *call)
{
	if (f->r->given)
		return given_call(f, mp_call_insn(f->cfg, call) + ME_LEAF_CALL_SIZE);
	if (f->r->stress)
		return is_chosen(f, call);
	return f->hot[call->block] &&
	       (f->nr_calls <= 0 || f->r->counts[call->block] >= SHARE_OF_CALLS * f->nr_calls);
}

/* Does it pay that @leaf replaces @call, which is_hot()? Without a profile, only small code does. */
static bool pays(const struct finder *f, const struct mp_call *call, const struct me_leaf *leaf)
{
	const double *count = f->r->counts;

	if (f->r->given || f->r->stress || leaf->size <= SMALL)
		return true;
	if (f->nr_calls <= 0 || count[call->block] < SHARE_OF_CALLS_LARGE * f->nr_calls)
		return false;
	return !leaf->calls ||
	       count[call->block] >= SHARE_OF_CALLEE * count[entry_of(f, leaf->func)];
}

/* Has each instruction of @leaf an unwind row in place of the call at @vaddr? Out of memory, sets @failed. */
static bool has_rows(struct finder *f, const struct mp_call *call, uint64_t vaddr,
		     const struct me_leaf *leaf)
{
	int has = !leaf->frame ? 1
			       : me_unwind_composes(f->cfg, call->block, vaddr, leaf->func,
						    me_leaf_raised(leaf));

	f->failed |= has < 0;
	return has > 0;
}

/* Return: 1 + index of the leaf that may replace @call, which ends at *@end; NO_LEAF: it stays. */
static uint16_t leaf_for(struct finder *f, const struct mp_call *call, uint64_t *end)
{
	const struct mp_cfg *cfg = f->cfg;
	const struct mp_block *block = &cfg->blocks[call->block];
	uint64_t vaddr = mp_call_insn(cfg, call), block_end = block->vaddr + block->size;
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, vaddr, 1);
	uint32_t next;
	uint16_t leaf;

	*end = vaddr + ME_LEAF_CALL_SIZE;
	/* A prefix is not understood. */
	if (!bytes || *bytes != 0xe8 || call->tail || call->callee == MP_NONE ||
	    !f->copied[call->block] || *end > block_end || !cfg->funcs[call->callee].nr_blocks ||
	    mp_call_target(cfg, call) != cfg->funcs[call->callee].vaddr)
		return NO_LEAF;
	/* Few calls pay even if the code is small, and the others need not be looked at. */
	if (!is_hot(f, call))
		return NO_LEAF;
	if (f->r->given && !f->leaf_of[call->callee])
		f->last_of[call->callee] = given_call(f, *end)->last;
	leaf = ask_leaf(f, call->callee);
	if (leaf == NO_LEAF || !pays(f, call, &f->leaves[leaf - 1]) ||
	    !may_lose_calls(f, block->func) || !has_rows(f, call, vaddr, &f->leaves[leaf - 1]))
		return NO_LEAF;
	if (*end < block_end)
		return leaf;
	/* Control must go on behind the call, in the same function. */
	next = mp_cfg_block_starting(cfg, *end);
	return block->term == MP_TERM_FALL && next != MP_NONE &&
			       cfg->blocks[next].func == block->func &&
			       !(cfg->blocks[next].flags & MP_BLOCK_PADDING)
		       ? leaf
		       : NO_LEAF;
}

int me_inline_choose(struct me_rewriting *r, const uint8_t *copied, struct mp_err *err)
{
	struct finder f;
	int rc = 0;

	if (!finder_init(&f, r, copied))
		f.failed = true;
	for (uint32_t c = 0; !f.failed && c < r->cfg->nr_calls; c++) {
		struct me_plan_call *call = &r->replaced[r->nr_replaced];

		call->leaf = leaf_for(&f, &r->cfg->calls[c], &call->end);
		if (call->leaf == NO_LEAF)
			continue;
		call->last = f.last_of[f.leaves[call->leaf - 1].func];
		r->nr_replaced++;
	}
	if (f.failed) {
		rc = mp_err_set(err, ENOMEM, "out of memory");
	} else if (r->given && r->nr_replaced != r->nr_calls) {
		rc = mp_err_set(err, EBADMSG, "replaces a call that has to stay");
	} else {
		r->plan->leaves = f.leaves;
		r->plan->nr_leaves = f.nr_leaves;
		f.leaves = NULL;
	}
	finder_fini(&f);
	return rc;
}

/* Plans the code that lies apart, behind all others: it runs seldom. Return: 0, or negative with @err. */
static int add_aparts(struct me_plan *plan, uint32_t nr, struct mp_err *err)
{
	uint32_t at = plan->nr_blocks;
	struct me_plan_block *blocks =
		reallocarray(plan->blocks, (size_t)plan->nr_blocks + nr, sizeof(*blocks));

	if (!blocks)
		return mp_err_set(err, ENOMEM, "out of memory");
	plan->blocks = blocks;
	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		if (blocks[i].inlined && plan->leaves[blocks[i].inlined - 1].apart_size)
			blocks[at++] = (struct me_plan_block){.block = blocks[i].block,
							      .zone = ME_ZONE_WARM,
							      .why = blocks[i].why,
							      .clone = true,
							      .inlined = blocks[i].inlined,
							      .apart = true};
	plan->nr_blocks = at;
	return 0;
}

/* Under stress, all of these blocks or three in four, of all zones. */
int me_inline_mark(const struct me_rewriting *r, struct mp_err *err)
{
	const uint64_t *seed = r->stress;
	struct me_plan *plan = r->plan;
	uint32_t nr_apart = 0;
	uint16_t *leaf_at = calloc((size_t)r->cfg->nr_blocks + 1, sizeof(*leaf_at));

	if (!leaf_at)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < r->nr_replaced; i++)
		leaf_at[mp_cfg_block_at(r->cfg, r->replaced[i].end - 1)] = r->replaced[i].leaf;
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		struct me_plan_block *planned = &plan->blocks[i];
		bool wanted = seed ? *seed % 4 == 3 || throw_dice(~*seed, i) != 0
				   : planned->zone == ME_ZONE_HOT;

		if (!wanted || planned->stub || planned->left_out)
			continue;
		planned->inlined = leaf_at[planned->block];
		nr_apart += planned->inlined && plan->leaves[planned->inlined - 1].apart_size;
	}
	free(leaf_at);
	return nr_apart ? add_aparts(plan, nr_apart, err) : 0;
}
