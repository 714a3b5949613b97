// SPDX-License-Identifier: Apache-2.0
/*
 * test_plan_all - the contract of struct me_plan holds for every seed, and different seeds give
 * different plans.
 */
#include "tests/unit/suite.h"

#include "editor/layout/plan_all.h"
#include "tests/support/toycfg.h"

static struct toy toy;

static void make(void)
{
	toy_init(&toy);
	for (int f = 0; f < 20; f++) {
		toy_func(&toy, "f");
		for (int b = 0; b < 1 + f; b++)
			toy_block(&toy, MP_TERM_FALL, 1);
	}
	toy_finish(&toy);
}

static void plan_in_order(struct me_plan *out)
{
	ck_assert_int_eq(me_plan_all(&toy.cfg, toy.eligible, NULL, out, &err), 0);
}

static void plan(uint64_t seed, struct me_plan *out)
{
	ck_assert_int_eq(me_plan_all(&toy.cfg, toy.eligible, &seed, out, &err), 0);
}

TEST(plan_all_without_seed_keeps_the_original_order)
{
	AUTO(me_plan_fini) struct me_plan p = {0};

	make();
	plan_in_order(&p);
	ck_assert_uint_eq(p.nr_blocks, toy.cfg.nr_blocks);
	for (uint32_t i = 0; i < p.nr_blocks; i++) {
		ck_assert_uint_eq(p.blocks[i].block, i);
		ck_assert_uint_eq(p.blocks[i].zone, ME_ZONE_HOT);
	}
}

TEST(plan_all_leaves_what_is_not_eligible)
{
	struct me_plan p;

	for (uint64_t seed = 0; seed < 5; seed++) {
		make();
		toy.eligible[3] = toy.eligible[19] = 0;
		plan(seed, &p);
		for (uint32_t i = 0; i < p.nr_blocks; i++) {
			ck_assert_uint_ne(toy.blocks[p.blocks[i].block].func, 3);
			ck_assert_uint_ne(toy.blocks[p.blocks[i].block].func, 19);
		}
		ck_assert_uint_gt(p.nr_blocks, 0);
		me_plan_fini(&p);
	}
	memset(toy.eligible, 0, sizeof(toy.eligible));
	plan(1, &p);
	ck_assert_uint_eq(p.nr_blocks, 0);
	me_plan_fini(&p);
}

/*
 * editor/plan.h: each block at most once; hot before warm; the blocks of a function in a zone
 * are adjacent and include its entry first.
 */
TEST(plan_all_with_any_seed_is_a_plan)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		uint8_t seen[TOY_MAX] = {0}, closed[2][TOY_MAX] = {0}, has_entry[TOY_MAX] = {0};
		uint32_t nr_warm = 0;
		AUTO(me_plan_fini) struct me_plan p = {0};

		make();
		plan(seed, &p);
		for (uint32_t i = 0; i < p.nr_blocks; i++) {
			const struct me_plan_block *b = &p.blocks[i], *prev = i ? b - 1 : NULL;
			uint32_t func = toy.blocks[b->block].func;
			uint32_t prev_func = prev ? toy.blocks[prev->block].func : MP_NONE;

			ck_assert(!seen[b->block]);
			seen[b->block] = 1;
			ck_assert_uint_lt(b->zone, ME_NR_ZONES);
			if (prev)
				ck_assert_uint_ge(b->zone, prev->zone);
			if (prev && (prev->zone != b->zone || prev_func != func))
				closed[prev->zone][prev_func] = 1;
			ck_assert(!closed[b->zone][func]);
			if (toy.blocks[b->block].flags & MP_BLOCK_ENTRY) {
				ck_assert_uint_eq(b->zone, ME_ZONE_HOT);
				ck_assert(!prev || prev_func != func);
				has_entry[func] = 1;
			}
			ck_assert(has_entry[func]);
			nr_warm += b->zone == ME_ZONE_WARM;
		}
		/* There are warm blocks and blocks left behind. */
		ck_assert_uint_gt(nr_warm, 0);
		ck_assert_uint_lt(p.nr_blocks, toy.cfg.nr_blocks);
	}
}

TEST(plan_all_is_the_same_for_the_same_seed_alone)
{
	struct me_plan a, b, c;

	make();
	plan(7, &a);
	plan(7, &b);
	plan(8, &c);
	ck_assert_uint_eq(a.nr_blocks, b.nr_blocks);
	ck_assert_mem_eq(a.blocks, b.blocks, a.nr_blocks * sizeof(*a.blocks));
	ck_assert(a.nr_blocks != c.nr_blocks ||
		  memcmp(a.blocks, c.blocks, a.nr_blocks * sizeof(*a.blocks)));
	me_plan_fini(&a);
	me_plan_fini(&b);
	me_plan_fini(&c);
}

/* Some functions have their blocks reversed, others shuffled. */
TEST(plan_all_with_a_seed_reverses_and_shuffles)
{
	uint32_t nr_reversed = 0, nr_mixed = 0, nr_kept = 0, nr_left = 0;
	struct me_plan p;

	for (uint64_t seed = 0; seed < 20; seed++) {
		uint32_t nr = 0;

		make();
		plan(seed, &p);
		for (uint32_t i = 1; i <= p.nr_blocks; i += nr) {
			uint32_t func = toy.blocks[p.blocks[i - 1].block].func, up = 0;

			/* Behind the entry: the blocks of this function in this zone. */
			for (nr = 1; i + nr <= p.nr_blocks; nr++) {
				const struct me_plan_block *b = &p.blocks[i + nr - 1];

				if (toy.blocks[b->block].func != func || b->zone != b[-1].zone)
					break;
				up += nr > 1 && b->block > b[-1].block;
			}
			if (nr < 6)
				continue;
			nr_reversed += up == 0;
			nr_kept += up == nr - 2;
			nr_mixed += up != 0 && up != nr - 2;
		}
		nr_left += p.nr_blocks < toy.cfg.nr_blocks;
		me_plan_fini(&p);
	}
	ck_assert_uint_gt(nr_reversed, 20);
	ck_assert_uint_gt(nr_mixed, 20);
	ck_assert_uint_lt(nr_kept, 10);
	ck_assert_uint_eq(nr_left, 20);
}

TEST(plan_all_moves_no_padding)
{
	struct me_plan p;

	for (uint64_t seed = 0; seed < 3; seed++) {
		make();
		toy.blocks[toy.cfg.nr_blocks - 1].flags |= MP_BLOCK_PADDING;
		plan(seed, &p);
		for (uint32_t i = 0; i < p.nr_blocks; i++)
			ck_assert_uint_ne(p.blocks[i].block, toy.cfg.nr_blocks - 1);
		me_plan_fini(&p);
	}
}

/* A signal handler may know the address of a trap, or continue behind it. */
TEST(plan_all_moves_no_trap)
{
	struct me_plan p;

	for (uint64_t seed = 0; seed < 4; seed++) {
		uint32_t last = 0;

		make();
		last = toy.cfg.nr_blocks - 1;
		toy.blocks[last].term = toy.blocks[0].term = MP_TERM_TRAP;
		if (seed)
			plan(seed, &p);
		else
			plan_in_order(&p);
		for (uint32_t i = 0; i < p.nr_blocks; i++)
			ck_assert_uint_ne(p.blocks[i].block, last);
		/* Unless the function has nothing else, or begins with it. */
		for (uint32_t i = 0; i <= p.nr_blocks; i++) {
			ck_assert_uint_lt(i, p.nr_blocks);
			if (p.blocks[i].block == 0)
				break;
		}
		me_plan_fini(&p);
	}
}
