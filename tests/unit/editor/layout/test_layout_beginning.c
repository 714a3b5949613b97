// SPDX-License-Identifier: Apache-2.0
/* test_layout_beginning - copies of functions' beginnings in place of jumps to them: where, and how long. */
#include <stdlib.h>
#include <string.h>

#include "editor/layout/layout_beginning.h"
#include "editor/layout/predict.h"
#include "tests/support/toycfg.h"
#include "tests/unit/suite.h"

static struct toy toy;
static struct me_plan plan;
static uint8_t allowed[8];

/* Adds a hot function that only increases the budget for clones. */
static void ballast(void)
{
	toy_func(&toy, "ballast");
	for (int i = 0; i < 200; i++)
		toy_block(&toy, MP_TERM_RET, 1);
}

/* Block @from jumps to the function @callee. */
static void jumps(uint32_t from, uint32_t callee)
{
	toy_call(&toy, from, callee);
	toy.calls[toy.cfg.nr_calls - 1].tail = true;
	mp_block_set_target(&toy.blocks[from], toy.funcs[callee].vaddr);
}

/*
 * f: 0 jumps to g at its end, or returns in 1; 100 times in all, @nr times to g. g: 2 falls into 3 @stay times of 200,
 * else it branches to 4; both return.
 */
static void functions(double nr, double stay)
{
	toy_init(&toy);
	toy_func(&toy, "f");
	toy_block(&toy, MP_TERM_TAIL, nr);
	toy_block(&toy, MP_TERM_RET, 100 - nr);
	toy_func(&toy, "g");
	toy_block(&toy, MP_TERM_COND, 200);
	toy_block(&toy, MP_TERM_RET, stay);
	toy_block(&toy, MP_TERM_RET, 200 - stay);
	ballast();
	toy_edge(&toy, 2, 3, MP_EDGE_FALL, stay);
	toy_edge(&toy, 2, 4, MP_EDGE_TAKEN, 200 - stay);
	toy_finish(&toy);
	jumps(0, 1);
	memset(allowed, 1, sizeof(allowed));
}

static void plan_all(void)
{
	me_plan_fini(&plan);
	plan.blocks = calloc(toy.cfg.nr_blocks, sizeof(*plan.blocks));
	ck_assert_ptr_nonnull(plan.blocks);
	for (uint32_t b = 0; b < toy.cfg.nr_blocks; b++)
		plan.blocks[plan.nr_blocks++].block = b;
}

static void add(void)
{
	ck_assert_int_eq(me_beginnings_add(&toy.cfg, &toy.counts, allowed, &plan), 0);
}

/* The plan begins with these blocks, foreign clones as FOREIGN(block), and has no other clones. */
#define FOREIGN(b) ((b) | 0x80000000)
#define EXPECT(...)                                                                                \
	expect((uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void expect(const uint32_t *blocks, uint32_t nr)
{
	ck_assert_uint_ge(plan.nr_blocks, nr);
	for (uint32_t i = 0; i < plan.nr_blocks; i++) {
		const struct me_plan_block *at = &plan.blocks[i];
		bool foreign = i < nr && blocks[i] >> 31;

		if (i < nr)
			ck_assert_msg(at->block == (blocks[i] & ~FOREIGN(0)), "at %u: block %u", i,
				      at->block);
		ck_assert_msg(at->clone == foreign && at->foreign == foreign, "at %u", i);
		ck_assert(!foreign || at->why == ME_WHY_BEGINNING);
	}
}

START_TEST(beginning_ends_where_most_is_saved)
{
	/* All go through both blocks. */
	functions(90, 200);
	plan_all();
	add();
	EXPECT(0, FOREIGN(2), FOREIGN(3), 1, 2, 3, 4);
	/* Nearly all branch away from the first block, to the function's own copy. */
	functions(90, 10);
	plan_all();
	add();
	EXPECT(0, FOREIGN(2), 1, 2, 3, 4);
}
END_TEST

START_TEST(beginning_has_the_order_of_the_own_copy)
{
	functions(90, 200);
	plan_all();
	plan.blocks[3].block = 4;
	plan.blocks[4].block = 3;
	plan.blocks[2].favour_fall = 1;
	add();
	/* Block 3, to which control goes, does not follow: the way there is a branch in the own copy, too. */
	EXPECT(0, FOREIGN(2), 1, 2, 4, 3);
	ck_assert(plan.blocks[1].favour_fall);
}
END_TEST

START_TEST(beginning_is_not_copied_where_nothing_is_saved)
{
	/* It follows anyway. */
	functions(90, 200);
	plan_all();
	plan.blocks[0].block = 1;
	plan.blocks[1].block = 0;
	add();
	EXPECT(1, 0, 2, 3, 4);
	/* It never runs. */
	functions(0, 200);
	plan_all();
	add();
	EXPECT(0, 1, 2, 3, 4);
	/* One of the functions takes no part. */
	for (int f = 0; f < 2; f++) {
		functions(90, 200);
		allowed[f] = 0;
		plan_all();
		add();
		EXPECT(0, 1, 2, 3, 4);
	}
	/* The entry is not hot. */
	functions(90, 200);
	plan_all();
	for (uint32_t i = 2; i < plan.nr_blocks; i++)
		plan.blocks[i].zone = ME_ZONE_WARM;
	add();
	EXPECT(0, 1, 2, 3, 4);
	/* No jump to an entry */
	functions(90, 200);
	mp_block_set_target(&toy.blocks[0], toy.blocks[3].vaddr);
	plan_all();
	add();
	EXPECT(0, 1, 2, 3, 4);
}
END_TEST

START_TEST(beginning_stays_in_the_zone)
{
	/* The next block of the function is not hot. */
	functions(90, 200);
	plan_all();
	plan.blocks[3].zone = plan.blocks[4].zone = ME_ZONE_WARM;
	add();
	EXPECT(0, FOREIGN(2), 1, 2, 3, 4);
}
END_TEST

/* f jumps to g, and g's beginning ends in a jump to h. */
START_TEST(beginning_goes_on_behind_another_one)
{
	toy_init(&toy);
	toy_func(&toy, "f");
	toy_block(&toy, MP_TERM_TAIL, 90);
	toy_func(&toy, "g");
	toy_block(&toy, MP_TERM_TAIL, 100);
	toy_func(&toy, "h");
	toy_block(&toy, MP_TERM_RET, 120);
	ballast();
	toy_finish(&toy);
	jumps(0, 1);
	jumps(1, 2);
	memset(allowed, 1, sizeof(allowed));
	plan_all();
	/* h, f, g */
	plan.blocks[0].block = 2;
	plan.blocks[1].block = 0;
	plan.blocks[2].block = 1;
	add();
	/* f falls into g anyway. */
	EXPECT(2, 0, 1, FOREIGN(2));
	plan_all();
	/* g, f, another function, h */
	plan.blocks[0].block = 1;
	plan.blocks[1].block = 0;
	plan.blocks[2].block = 3;
	plan.blocks[3].block = 2;
	add();
	EXPECT(1, FOREIGN(2), 0, FOREIGN(1), FOREIGN(2), 3, 2);
}
END_TEST

START_TEST(beginning_lengthens_the_loop_around_it)
{
	functions(90, 200);
	plan_all();
	plan.blocks[0].loop = 2;
	plan.blocks[2].loop = 3;
	add();
	EXPECT(0, FOREIGN(2), FOREIGN(3), 1, 2, 3, 4);
	ck_assert_uint_eq(plan.blocks[0].loop, 4);
	ck_assert_uint_eq(plan.blocks[4].loop, 3);
}
END_TEST

/* How often each planned block runs. */
START_TEST(flows_divide_among_the_copies)
{
	double flow[TOY_MAX];

	functions(90, 200);
	plan_all();
	add();
	ck_assert_int_eq(me_plan_flows(&toy.cfg, &toy.counts, &plan, flow), 0);
	ck_assert_double_eq_tol(flow[0], 90, 1e-6);
	ck_assert_double_eq_tol(flow[1], 90, 1e-6);
	ck_assert_double_eq_tol(flow[2], 90, 1e-6);
	ck_assert_double_eq_tol(flow[4], 110, 1e-6);
	ck_assert_double_eq_tol(flow[5], 110, 1e-6);
}
END_TEST

START_TEST(random_beginnings_are_those_of_functions)
{
	uint32_t nr = 0, longest = 0;

	for (uint64_t seed = 1; seed <= 50; seed++) {
		uint32_t len = 0;

		functions(90, 200);
		plan_all();
		ck_assert_int_eq(me_beginnings_add_random(&toy.cfg, allowed, seed, &plan), 0);
		for (; plan.blocks[1 + len].foreign; len++)
			ck_assert_uint_eq(plan.blocks[1 + len].block, 2 + len);
		nr += len > 0;
		longest = len > longest ? len : longest;
	}
	ck_assert_uint_gt(nr, 20);
	ck_assert_uint_lt(nr, 50);
	ck_assert_uint_eq(longest, 2);
}
END_TEST

static Suite *layout_beginning_suite(void)
{
	Suite *suite = suite_create("layout_beginning");
	TCase *tc = tcase_create("layout_beginning");

	tcase_add_test(tc, beginning_ends_where_most_is_saved);
	tcase_add_test(tc, beginning_has_the_order_of_the_own_copy);
	tcase_add_test(tc, beginning_is_not_copied_where_nothing_is_saved);
	tcase_add_test(tc, beginning_stays_in_the_zone);
	tcase_add_test(tc, beginning_goes_on_behind_another_one);
	tcase_add_test(tc, beginning_lengthens_the_loop_around_it);
	tcase_add_test(tc, flows_divide_among_the_copies);
	tcase_add_test(tc, random_beginnings_are_those_of_functions);
	suite_add_tcase(suite, tc);
	return suite;
}

MORPH_SUITE_MAIN(layout_beginning_suite)
