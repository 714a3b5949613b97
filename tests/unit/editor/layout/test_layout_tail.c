// SPDX-License-Identifier: Apache-2.0
/* test_layout_tail - tail duplication: where clones are made and where not. */

#include "editor/layout/layout_private.h"
#include "editor/layout/predict.h"
#include "tests/unit/suite.h"
#include "tests/support/toycfg.h"

static struct toy toy;
static struct me_plan plan;

/* Adds a hot function that only increases the budget for clones. */
static void ballast(void)
{
	toy_func(&toy, "ballast");
	for (int i = 0; i < 100; i++)
		toy_block(&toy, MP_TERM_RET, 1);
}

/*
 * Plans @blocks of the first function, then all of the others. The first @nr_hot are hot, the
 * rest warm.
 */
static void tails(const uint32_t *blocks, uint32_t nr, uint32_t nr_hot)
{
	uint32_t own = toy.funcs[0].nr_blocks, others = toy.cfg.nr_blocks - own;

	me_plan_fini(&plan);
	plan.blocks = calloc(nr + others, sizeof(*plan.blocks));
	ck_assert_ptr_nonnull(plan.blocks);
	for (uint32_t i = 0; i < nr_hot; i++)
		plan.blocks[plan.nr_blocks++].block = blocks[i];
	for (uint32_t i = 0; i < others; i++)
		plan.blocks[plan.nr_blocks++].block = own + i;
	for (uint32_t i = nr_hot; i < nr; i++)
		plan.blocks[plan.nr_blocks++] =
			(struct me_plan_block){.block = blocks[i], .zone = ME_ZONE_WARM};
	ck_assert_int_eq(me_tails_add(&toy.cfg, &toy.counts, &plan), 0);
}

/* The plan must begin with these blocks, with clones as CLONE(block), and have no other clones. */
#define CLONE(b) ((b) | 0x80000000)
#define EXPECT(...)                                                                                \
	expect((uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
#define TAILS(...)                                                                                 \
	tails((uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t),     \
	      sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void expect(const uint32_t *blocks, uint32_t nr)
{
	ck_assert_uint_ge(plan.nr_blocks, nr);
	for (uint32_t i = 0; i < plan.nr_blocks; i++) {
		const struct me_plan_block *at = &plan.blocks[i];

		if (i < nr) {
			ck_assert_msg(at->block == (blocks[i] & ~CLONE(0)) &&
					      at->clone == blocks[i] >> 31,
				      "at %u: block %u, clone %d", i, at->block, at->clone);
			ck_assert(!at->clone || at->why == ME_WHY_TAIL);
		} else {
			ck_assert_msg(!at->clone, "at %u: a clone of %u", i, at->block);
		}
	}
}

/* 0 -> 1 (30) or 2 (70); 1 jumps to 3; 2 falls into 3; 3 ends with @term. */
static void diamond(enum mp_term term)
{
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 100}, {MP_TERM_JUMP, 30}, {MP_TERM_FALL, 70}, {term, 100});
	ballast();
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 30}, {0, 2, MP_EDGE_TAKEN, 70},
		  {1, 3, MP_EDGE_JUMP, 30}, {2, 3, MP_EDGE_FALL, 70});
	toy_finish(&toy);
}

TEST(tail_saves_a_jump_to_a_way_out)
{
	static const enum mp_term ends[] = {MP_TERM_RET, MP_TERM_TABLE, MP_TERM_INDIRECT_TAIL,
					    MP_TERM_TAIL};

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		diamond(ends[i]);
		TAILS(0, 2, 3, 1);
		EXPECT(0, 2, 3, 1, CLONE(3));
		/* A conditional branch that falls through to its target's clone. */
		TAILS(0, 1, 3, 2);
		EXPECT(0, 1, 3, 2, CLONE(3));
	}
}

TEST(tail_is_not_copied_where_control_need_not_end)
{
	static const enum mp_term others[] = {MP_TERM_TRAP, MP_TERM_NORETURN, MP_TERM_FALL};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		diamond(others[i]);
		TAILS(0, 2, 3, 1);
		EXPECT(0, 2, 3, 1);
	}
}

TEST(tail_is_not_copied_where_it_follows_anyway)
{
	diamond(MP_TERM_RET);
	TAILS(0, 2, 1, 3);
	/* Only 2 jumps. */
	EXPECT(0, 2, CLONE(3), 1, 3);
}

TEST(tail_needs_evidence)
{
	diamond(MP_TERM_RET);
	toy.edge_counts[2] = 0; /* 1 -> 3 */
	TAILS(0, 2, 3, 1);
	EXPECT(0, 2, 3, 1);
	diamond(MP_TERM_RET);
	toy.block_counts[3] = 0;
	TAILS(0, 2, 3, 1);
	EXPECT(0, 2, 3, 1);
}

TEST(tail_takes_the_way_of_a_branch_that_saves_more)
{
	/* Neither successor of 0 follows it, and both return. */
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 100}, {MP_TERM_RET, 30}, {MP_TERM_RET, 70},
		   {MP_TERM_RET, 1});
	ballast();
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 30}, {0, 2, MP_EDGE_TAKEN, 70});
	toy_finish(&toy);
	TAILS(0, 3, 1, 2);
	EXPECT(0, CLONE(2), 3, 1, 2);
	toy.blocks[2].flags |= MP_BLOCK_LANDING_PAD;
	TAILS(0, 3, 1, 2);
	EXPECT(0, CLONE(1), 3, 1, 2);
}

TEST(tail_is_never_an_entry_a_landing_pad_or_padding)
{
	static const uint16_t flags[] = {MP_BLOCK_ENTRY, MP_BLOCK_LANDING_PAD, MP_BLOCK_PADDING};

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		diamond(MP_TERM_RET);
		toy.blocks[3].flags |= flags[i];
		TAILS(0, 2, 3, 1);
		EXPECT(0, 2, 3, 1);
	}
}

TEST(tail_is_hot_and_behind_hot_blocks)
{
	diamond(MP_TERM_RET);
	tails((uint32_t[]){0, 2, 3, 1}, 4, 3); /* 1 is warm */
	EXPECT(0, 2, 3);
	tails((uint32_t[]){0, 2, 1, 3}, 4, 3); /* 3 is warm */
	EXPECT(0, 2, 1);
}

/* 0 jumps to a chain of @nr blocks, the last of which returns; block 1 returns too. */
static void chain(uint32_t nr)
{
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_JUMP, 100}, {MP_TERM_RET, 1});
	for (uint32_t i = 0; i < nr; i++)
		toy_block(&toy, i + 1 < nr ? MP_TERM_FALL : MP_TERM_RET, 100);
	ballast();
	toy_edge(&toy, 0, 2, MP_EDGE_JUMP, 100);
	for (uint32_t i = 0; i + 1 < nr; i++)
		toy_edge(&toy, 2 + i, 3 + i, MP_EDGE_FALL, 100);
	toy_finish(&toy);
}

static uint32_t nr_clones(void)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < plan.nr_blocks; i++)
		nr += plan.blocks[i].clone;
	return nr;
}

TEST(tail_is_copied_whole_or_not_at_all)
{
	for (uint32_t nr = 1; nr < 20; nr++) {
		uint32_t blocks[32];

		for (uint32_t i = 0; i < nr + 2; i++)
			blocks[i] = i;
		chain(nr);
		tails(blocks, nr + 2, nr + 2);
		ck_assert_uint_eq(nr_clones(), nr <= 10 ? nr : 0); /* 4 instructions each */
		for (uint32_t i = 1; i <= nr_clones(); i++)
			ck_assert(plan.blocks[i].clone && plan.blocks[i].block == i + 1);
	}
}

TEST(tail_is_short)
{
	for (uint32_t insns = 1; insns < 100; insns++) {
		chain(1);
		toy.blocks[2].nr_insns = insns;
		TAILS(0, 1, 2);
		ck_assert_uint_eq(nr_clones(), insns <= 40);
	}
}

TEST(tail_ends_before_what_follows)
{
	/* 0 jumps to 2, which falls into 3, which follows 0. */
	chain(5);
	TAILS(0, 3, 4, 5, 6, 1, 2);
	EXPECT(0, CLONE(2), 3, 4, 5, 6, 1, 2, CLONE(3), CLONE(4), CLONE(5), CLONE(6));
}

TEST(tail_ends_a_loop)
{
	/* 2 and 3 loop forever. */
	chain(3);
	toy.blocks[4].term = MP_TERM_JUMP;
	toy.blocks[4].nr_edges = 1;
	toy.edges[3] = (struct mp_edge){4, 2, MP_EDGE_JUMP};
	toy.edge_counts[3] = 100;
	toy.blocks[4].first_edge = 3;
	TAILS(0, 1, 2, 3, 4);
	EXPECT(0, 1, 2, 3, 4);
}

TEST(tail_is_no_part_of_a_first_round_of_many)
{
	for (int entries = 9; entries <= 20; entries += 11) {
		/* 0 jumps into a loop: 1 falls into 2, which branches to 1 or falls into 3. */
		int rounds = 100 - entries;

		toy_start(&toy, "f");
		toy_blocks(&toy, {MP_TERM_JUMP, entries}, {MP_TERM_FALL, rounds},
			   {MP_TERM_COND, 100}, {MP_TERM_RET, entries});
		ballast();
		toy_edges(&toy, {0, 2, MP_EDGE_JUMP, entries}, {1, 2, MP_EDGE_FALL, rounds},
			  {2, 1, MP_EDGE_TAKEN, rounds}, {2, 3, MP_EDGE_FALL, entries});
		toy_finish(&toy);
		TAILS(0, 1, 2, 3);
		if (entries < 10)
			EXPECT(0, 1, 2, 3);
		else
			EXPECT(0, CLONE(2), 1, 2, 3);
	}
}

TEST(tail_is_reached_to_its_end)
{
	for (int i = 0; i < 2; i++) {
		/* 0 jumps to 2 -> 3 (70 %) or 4; 3 -> 5 (@likely) or 4; 4 and 5 return. */
		double likely = i ? 0.8 : 0.6;

		toy_start(&toy, "f");
		toy_blocks(&toy, {MP_TERM_JUMP, 100}, {MP_TERM_RET, 1}, {MP_TERM_COND, 100},
			   {MP_TERM_COND, 70}, {MP_TERM_RET, 30 + 70 * (1 - likely)},
			   {MP_TERM_RET, 70 * likely});
		ballast();
		toy_edges(&toy, {0, 2, MP_EDGE_JUMP, 100}, {2, 3, MP_EDGE_FALL, 70},
			  {2, 4, MP_EDGE_TAKEN, 30}, {3, 4, MP_EDGE_FALL, 70 * (1 - likely)},
			  {3, 5, MP_EDGE_TAKEN, 70 * likely});
		toy_finish(&toy);
		TAILS(0, 1, 2, 3, 4, 5);
		if (i)
			EXPECT(0, CLONE(2), CLONE(3), CLONE(5), 1, 2, 3, 4, 5);
		else
			EXPECT(0, 1, 2, 3, 4, 5);
	}
}

TEST(tail_budget_goes_to_the_worthiest)
{
	/* 0 -> 1, 2, 3 by a table; each jumps to 4. Five blocks allow one clone. */
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_TABLE, 100}, {MP_TERM_JUMP, 20}, {MP_TERM_JUMP, 50},
		   {MP_TERM_JUMP, 30}, {MP_TERM_RET, 100});
	for (uint32_t i = 1; i <= 3; i++)
		toy_edge(&toy, 0, i, MP_EDGE_TABLE, toy.block_counts[i]);
	for (uint32_t i = 1; i <= 3; i++)
		toy_edge(&toy, i, 4, MP_EDGE_JUMP, toy.block_counts[i]);
	toy_finish(&toy);
	TAILS(0, 4, 1, 2, 3);
	EXPECT(0, 4, 1, 2, CLONE(4), 3);
	/* Three blocks allow none. */
	TAILS(0, 4, 2);
	EXPECT(0, 4, 2);
	ballast();
	toy_finish(&toy);
	TAILS(0, 4, 1, 2, 3);
	EXPECT(0, 4, 1, CLONE(4), 2, CLONE(4), 3, CLONE(4));
}

static void build(bool no_tails, struct me_plan *out)
{
	struct me_layout_options options = {ME_ORDER_PH, MP_ORDER_PH, .no_tails = no_tails};

	ck_assert_int_eq(me_layout_build(&toy.cfg, &toy.counts, toy.eligible, &options, out, &err),
			 0);
}

TEST(tail_duplication_can_be_switched_off)
{
	diamond(MP_TERM_RET);
	me_plan_fini(&plan);
	build(true, &plan);
	ck_assert_uint_eq(nr_clones(), 0);
	me_plan_fini(&plan);
	build(false, &plan);
	ck_assert_uint_eq(nr_clones(), 1);
}

static uint32_t roll(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) % below;
}

/* Functions of any shape, with the counts of random walks. */
static void random_program(uint32_t *state)
{
	static const enum mp_term terms[] = {MP_TERM_COND, MP_TERM_COND, MP_TERM_JUMP,
					     MP_TERM_FALL, MP_TERM_RET,	 MP_TERM_TABLE};

	toy_init(&toy);
	for (uint32_t f = 0; f < 4; f++) {
		uint32_t nr = 2 + roll(state, 30), first = toy.cfg.nr_blocks;

		toy_func(&toy, "f");
		for (uint32_t i = 0; i < nr; i++)
			toy_block(&toy, i + 1 < nr ? terms[roll(state, 6)] : MP_TERM_RET, 0);
		for (uint32_t b = first; b + 1 < first + nr; b++) {
			enum mp_term term = toy.blocks[b].term;

			if (term == MP_TERM_COND || term == MP_TERM_FALL)
				toy_edge(&toy, b, b + 1, MP_EDGE_FALL, 0);
			if (term == MP_TERM_COND || term == MP_TERM_JUMP)
				toy_edge(&toy, b, first + roll(state, nr),
					 term == MP_TERM_COND ? MP_EDGE_TAKEN : MP_EDGE_JUMP, 0);
			if (term == MP_TERM_TABLE)
				for (int i = 0; i < 3; i++)
					toy_edge(&toy, b, first + roll(state, nr), MP_EDGE_TABLE,
						 0);
		}
	}
	toy_finish(&toy);
	for (int walk = 0; walk < 200; walk++) {
		uint32_t b = toy.funcs[roll(state, 4)].first_block;

		for (int step = 0; step < 100; step++) {
			const struct mp_block *block = &toy.blocks[b];
			uint32_t e = block->first_edge;

			toy.block_counts[b]++;
			if (!block->nr_edges)
				break;
			e += roll(state, block->nr_edges);
			toy.edge_counts[e]++;
			b = toy.edges[e].to;
		}
	}
}

static bool leads(uint32_t from, uint32_t to)
{
	const struct mp_block *block = &toy.blocks[from];

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		if (toy.edges[e].to == to && toy.edges[e].kind != MP_EDGE_TABLE)
			return true;
	return false;
}

TEST_EACH(tail_keeps_the_contract_of_plans, 20)
{
	uint32_t state = _i, found = 0;

	for (int round = 0; round < 50; round++) {
		struct me_plan bare = {0};
		struct me_branches with, without;
		uint32_t at = 0;

		random_program(&state);
		me_plan_fini(&plan);
		build(false, &plan);
		build(true, &bare);
		for (uint32_t i = 0; i < plan.nr_blocks; i++) {
			const struct me_plan_block *b = &plan.blocks[i];

			if (!b->clone) { /* all other blocks are unchanged */
				ck_assert_uint_lt(at, bare.nr_blocks);
				ck_assert_uint_eq(b->block, bare.blocks[at].block);
				ck_assert_uint_eq(b->zone, bare.blocks[at++].zone);
				continue;
			}
			found++;
			ck_assert(i && b->zone == ME_ZONE_HOT && b[-1].zone == ME_ZONE_HOT);
			ck_assert(leads(b[-1].block, b->block));
			ck_assert(!(toy.blocks[b->block].flags & MP_BLOCK_ENTRY));
			ck_assert_uint_eq(b->align_log2, 0);
			if (i + 1 < plan.nr_blocks && !b[1].clone &&
			    toy.blocks[b->block].nr_edges &&
			    toy.blocks[b->block].term != MP_TERM_TABLE)
				ck_assert(leads(b->block, b[1].block));
		}
		ck_assert_uint_eq(at, bare.nr_blocks);
		ck_assert_int_eq(me_branches_count(&toy.cfg, &toy.counts, &plan, NULL, &with), 0);
		ck_assert_int_eq(me_branches_count(&toy.cfg, &toy.counts, &bare, NULL, &without),
				 0);
		ck_assert_msg(with.taken_after <= without.taken_after + 1e-6, "%f > %f",
			      with.taken_after, without.taken_after);
		ck_assert(with.insns_after <= without.insns_after + 1e-6);
		me_plan_fini(&bare);
	}
	ck_assert_uint_gt(found, 20);
}
