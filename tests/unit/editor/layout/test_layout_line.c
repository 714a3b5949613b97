// SPDX-License-Identifier: Apache-2.0
/* test_layout_line - which runs of blocks are kept within few cache lines. */

#include "editor/layout/layout_private.h"
#include "tests/unit/suite.h"
#include "tests/support/toycfg.h"

static struct toy toy;
static struct me_plan_block blocks[TOY_MAX];
static struct me_plan plan;

/*
 * 0 -> 1 (99 of 100; 1 of it to 4); 1 jumps to 3; 2 is never reached by falling through; 3 -> 4
 * -> ret
 */
static void build(double count)
{
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, count}, {MP_TERM_JUMP, 0.99 * count},
		   {MP_TERM_RET, 0.01 * count}, {MP_TERM_FALL, 0.99 * count},
		   {MP_TERM_RET, 0.99 * count});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 0.99 * count}, {0, 2, MP_EDGE_TAKEN, 0.01 * count},
		  {1, 3, MP_EDGE_JUMP, 0.99 * count}, {3, 4, MP_EDGE_FALL, 0.99 * count});
	toy_func(&toy, "rare");
	toy_block(&toy, MP_TERM_RET, 1);
	toy_finish(&toy);
	plan = (struct me_plan){.blocks = blocks, .nr_blocks = 6};
	for (uint32_t i = 0; i < 6; i++)
		blocks[i] = (struct me_plan_block){.block = i, .zone = ME_ZONE_HOT};
}

TEST(line_marks_runs_where_control_comes_by_a_branch)
{
	static const uint8_t want[] = {2, 0, 1, 2, 0, 0}; /* rare: not worth padding */

	build(1e5);
	ck_assert_int_eq(me_lines_keep(&toy.cfg, &toy.counts, 6, &plan), 0);
	ck_assert_uint_eq(plan.line_log2, 6);
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_msg(blocks[i].run == want[i], "block %u: %u", i, blocks[i].run);
}

TEST(line_leaves_clones_and_warm_code_alone)
{
	build(1e5);
	blocks[3].clone = 1;
	blocks[4].zone = blocks[5].zone = ME_ZONE_WARM;
	ck_assert_int_eq(me_lines_keep(&toy.cfg, &toy.counts, 6, &plan), 0);
	for (uint32_t i = 3; i < 6; i++)
		ck_assert_uint_eq(blocks[i].run, 0);
}

TEST(line_pads_nothing_that_control_may_fall_into)
{
	/* Falling from 0 into 1 was never seen but is possible, and would execute the padding. */
	build(1e5);
	toy.counts.edge[0] = 0;
	ck_assert_int_eq(me_lines_keep(&toy.cfg, &toy.counts, 6, &plan), 0);
	ck_assert_uint_eq(blocks[1].run, 0);
}

TEST(line_wants_counts)
{
	build(0);
	toy.counts.block[5] = 0;
	ck_assert_int_eq(me_lines_keep(&toy.cfg, &toy.counts, 6, &plan), 0);
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_uint_eq(blocks[i].run, 0);
}

/*
 * 0 -> 1 -> 2 -> 3 -> ret; 2 leads back to 1 in @inner of @count executions, 3 to 1 in @outer
 */
static void build_loop(double count, double inner, double outer)
{
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_FALL, count - inner - outer}, {MP_TERM_FALL, count},
		   {MP_TERM_COND, count}, {MP_TERM_COND, count - inner},
		   {MP_TERM_RET, count - inner - outer});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, count - inner - outer}, {1, 2, MP_EDGE_FALL, count},
		  {2, 3, MP_EDGE_FALL, count - inner}, {2, 1, MP_EDGE_TAKEN, inner},
		  {3, 4, MP_EDGE_FALL, count - inner - outer}, {3, 1, MP_EDGE_TAKEN, outer});
	toy_finish(&toy);
	plan = (struct me_plan){.blocks = blocks, .nr_blocks = 5};
	for (uint32_t i = 0; i < 5; i++)
		blocks[i] = (struct me_plan_block){.block = i, .zone = ME_ZONE_HOT};
	ck_assert_int_eq(me_lines_keep(&toy.cfg, &toy.counts, 6, &plan), 0);
}

TEST(line_marks_loops_up_to_where_most_rounds_end)
{
	static const struct {
		double inner, outer;
		uint8_t want;
	} cases[] = {
		{900, 0, 2},   {800, 100, 2},		     /* most rounds end with block 2 */
		{400, 400, 3}, {0, 900, 3},   {300, 100, 0}, /* most executions are no rounds */
		{0, 0, 0},
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		build_loop(1000, cases[c].inner, cases[c].outer);
		for (uint32_t i = 0; i < 5; i++)
			ck_assert_msg(blocks[i].loop == (i == 1 ? cases[c].want : 0),
				      "case %zu, block %u: %u", c, i, blocks[i].loop);
		ck_assert_double_eq(blocks[1].heat, 1000);
	}
}

TEST(line_pads_only_loops_that_run_many_rounds)
{
	build_loop(1000, 900, 0);
	ck_assert(blocks[1].pad && !blocks[1].run);
	build_loop(1000, 860, 0);
	ck_assert(!blocks[1].pad && blocks[1].loop == 2);
	/* Control falls into a clone as often as into the first of its row. */
	build_loop(1000, 900, 0);
	for (uint32_t i = 5; i > 1; i--)
		blocks[i] = (struct me_plan_block){.block = i - 1, .zone = ME_ZONE_HOT};
	blocks[1] = (struct me_plan_block){.block = 2, .zone = ME_ZONE_HOT, .clone = 1};
	plan.nr_blocks = 6;
	toy.counts.edge[0] = 100;
	ck_assert_int_eq(me_lines_keep(&toy.cfg, &toy.counts, 6, &plan), 0);
	ck_assert(blocks[2].loop == 2 && blocks[2].pad);
}

TEST(line_marks_no_loop_that_the_plan_has_in_another_order)
{
	build_loop(1000, 900, 0);
	for (uint32_t i = 0; i < 5; i++)
		blocks[i] = (struct me_plan_block){.block = i, .zone = ME_ZONE_HOT};
	/* 2 lies before 1, so the branch leads forward; 1 falls back into 2, by a jump */
	blocks[1].block = 2;
	blocks[2].block = 1;
	toy.counts.edge[1] = 0;
	ck_assert_int_eq(me_lines_keep(&toy.cfg, &toy.counts, 6, &plan), 0);
	for (uint32_t i = 0; i < 5; i++)
		ck_assert_uint_eq(blocks[i].loop, 0);
}
