// SPDX-License-Identifier: Apache-2.0
/* test_layout_proc - the order of functions: frequent callers lie next to their callees. */

#include "tests/unit/suite.h"
#include "tests/support/toycfg.h"

static struct toy toy;

/* @nr functions of one block, each executed @count times. */
static void leaves(uint32_t nr, double count)
{
	toy_init(&toy);
	for (uint32_t f = 0; f < nr; f++) {
		toy_func(&toy, "f");
		toy_block(&toy, MP_TERM_RET, count);
	}
}

/* Adds a caller: its second block runs @count times and calls @callee. */
static uint32_t caller(uint32_t callee, double count)
{
	uint32_t f = toy_func(&toy, "caller"), b = toy_block(&toy, MP_TERM_FALL, 1);

	toy_block(&toy, MP_TERM_RET, count);
	toy_edge(&toy, b, b + 1, MP_EDGE_FALL, 1);
	toy_call(&toy, b + 1, callee);
	return f;
}

/* Sets position[func] to its place among the functions. */
static void place(uint32_t *position, struct me_plan *plan)
{
	struct me_layout_options options = {
		.block_order = ME_ORDER_PH, .function_order = MP_ORDER_PH, .no_tails = true};
	uint32_t nr = 0, last = MP_NONE;

	toy_finish(&toy);
	for (uint32_t f = 0; f < toy.cfg.nr_funcs; f++)
		position[f] = MP_NONE;
	ck_assert_int_eq(me_layout_build(&toy.cfg, &toy.counts, toy.eligible, &options, plan, &err),
			 0);
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		uint32_t f = toy.blocks[plan->blocks[i].block].func;

		if (plan->blocks[i].zone == ME_ZONE_HOT && f != last) {
			ck_assert_uint_eq(position[f], MP_NONE);
			position[f] = nr++;
		}
		last = f;
	}
}

static uint32_t distance(const uint32_t *position, uint32_t a, uint32_t b)
{
	return position[a] > position[b] ? position[a] - position[b] : position[b] - position[a];
}

TEST(proc_puts_caller_beside_callee)
{
	AUTO(me_plan_fini) struct me_plan plan = {0};
	uint32_t position[TOY_MAX], f;

	leaves(8, 5);
	f = caller(3, 1000);
	place(position, &plan);
	ck_assert_uint_eq(distance(position, f, 3), 1);
}

TEST(proc_turns_a_chain_round_where_that_is_closer)
{
	/*
	 * a-b (100), c-d (90), then b-c (50): in whatever direction the pairs were joined, b
	 * and c become neighbours.
	 */
	struct me_plan plan;
	uint32_t position[TOY_MAX];

	for (int way = 0; way < 16; way++) {
		uint32_t first[4], call[3][3] = {{0, 1, 100}, {2, 3, 90}, {1, 2, 50}};

		toy_init(&toy);
		for (uint32_t f = 0; f < 4; f++) {
			toy_func(&toy, "f");
			first[f] = toy.cfg.nr_blocks;
			for (uint32_t k = 0; k < 3; k++)
				toy_block(&toy, MP_TERM_RET, call[k][2]);
		}
		for (uint32_t f = 0; f < 4; f++)
			for (uint32_t k = 0; k < 3; k++) {
				bool swap = way >> k & 1;

				if (call[k][swap] == (f ^ (way >> 3)))
					toy_call(&toy, first[f] + k, call[k][!swap] ^ (way >> 3));
			}
		place(position, &plan);
		ck_assert_uint_eq(distance(position, 1 ^ (way >> 3), 2 ^ (way >> 3)), 1);
		ck_assert_uint_eq(distance(position, 0, 1), 1);
		ck_assert_uint_eq(distance(position, 2, 3), 1);
		me_plan_fini(&plan);
	}
}

TEST(proc_called_from_hot_code_is_copied_though_unsampled)
{
	AUTO(me_plan_fini) struct me_plan plan = {0};
	uint32_t position[TOY_MAX];
	bool copied[TOY_MAX] = {false};

	leaves(3, 0);
	caller(1, 1000);
	place(position, &plan);
	for (uint32_t i = 0; i < plan.nr_blocks; i++) {
		copied[plan.blocks[i].block] = true;
		if (plan.blocks[i].block == 1)
			ck_assert_int_eq(plan.blocks[i].zone, ME_ZONE_WARM);
	}
	ck_assert(copied[1]);
	ck_assert(!copied[0] && !copied[2]);
}

TEST(proc_places_every_function_once)
{
	/* Every function with a block appears once; recursion and unknown callees are harmless. */
	AUTO(me_plan_fini) struct me_plan plan = {0};
	uint32_t position[TOY_MAX];

	leaves(20, 3);
	for (uint32_t i = 0; i < 10; i++)
		caller((i * 7) % 20, 10 + i);
	caller(30, 100); /* itself */
	caller(MP_NONE, 100);
	place(position, &plan);
	for (uint32_t f = 0; f < toy.cfg.nr_funcs; f++)
		ck_assert_uint_lt(position[f], toy.cfg.nr_funcs);
}

TEST(proc_keeps_the_original_order_in_the_warm_zone)
{
	/* Hot callers lie in another order than before; what they call, which has no samples, does not. */
	AUTO(me_plan_fini) struct me_plan plan = {0};
	uint32_t position[TOY_MAX], last = 0, nr_warm = 0;

	leaves(4, 0);
	for (uint32_t f = 0; f < 4; f++)
		caller(3 - f, 100 + 10 * f);
	place(position, &plan);
	for (uint32_t i = 0; i < plan.nr_blocks; i++) {
		if (plan.blocks[i].zone != ME_ZONE_WARM)
			continue;
		ck_assert_uint_ge(plan.blocks[i].block, last);
		last = plan.blocks[i].block;
		nr_warm++;
	}
	ck_assert_uint_eq(nr_warm, 4);
}

static enum mp_order chosen(uint32_t block_bytes, bool exact)
{
	struct me_layout_options options = {
		.block_order = ME_ORDER_PH, .choose_functions = true, .no_tails = true};
	AUTO(me_plan_fini) struct me_plan plan = {0};

	leaves(8, 1000);
	for (uint32_t f = 0; f < 8; f++)
		toy.samples[f] = 1000;
	toy_finish(&toy);
	for (uint32_t f = 0; f < 8; f++)
		toy.blocks[f].size = block_bytes;
	toy.counts.exact = exact;
	ck_assert_int_eq(
		me_layout_build(&toy.cfg, &toy.counts, toy.eligible, &options, &plan, &err), 0);
	return options.function_order;
}

TEST(proc_chooses_the_order_by_size_and_profile)
{
	ck_assert_int_eq(chosen(32768, true), MP_ORDER_PH); /* 256 KiB in all */
	ck_assert_int_eq(chosen(32768, false), MP_ORDER_PH);
	ck_assert_int_eq(chosen(32769, true), MP_ORDER_CDS);
	ck_assert_int_eq(chosen(32769, false), MP_ORDER_ORIGINAL);
}
