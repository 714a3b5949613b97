// SPDX-License-Identifier: Apache-2.0
/*
 * test_predict - predicted taken branches and instructions of a plan, compared with values
 * computed by hand.
 */
#include <math.h>

#include "editor/layout/predict.h"
#include "tests/unit/suite.h"
#include "tests/support/toycfg.h"

static struct toy toy;

/* 0 -> 1 (30) or 2 (70); 1 jumps to 3; 2 falls into 3; 3 returns. */
static void diamond(void)
{
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 100}, {MP_TERM_JUMP, 30}, {MP_TERM_FALL, 70},
		   {MP_TERM_RET, 100});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 30}, {0, 2, MP_EDGE_TAKEN, 70},
		  {1, 3, MP_EDGE_JUMP, 30}, {2, 3, MP_EDGE_FALL, 70});
	toy_finish(&toy);
}

/*
 * Blocks from @first_warm on are in the warm zone. @clones: positions of clones, ends with 0;
 * NULL: none.
 */
static struct me_branches count_clones(const uint32_t *blocks, uint32_t nr, uint32_t first_warm,
				       const uint32_t *clones)
{
	struct me_plan_block list[TOY_MAX];
	struct me_plan plan = {.blocks = list, .nr_blocks = nr};
	struct me_branches sum;

	for (uint32_t i = 0; i < nr; i++)
		list[i] = (struct me_plan_block){.block = blocks[i], .zone = i >= first_warm};
	for (; clones && *clones; clones++)
		list[*clones].clone = 1;
	ck_assert_int_eq(me_branches_count(&toy.cfg, &toy.counts, &plan, NULL, &sum), 0);
	return sum;
}

static struct me_branches count(const uint32_t *blocks, uint32_t nr)
{
	return count_clones(blocks, nr, nr, NULL);
}

TEST(predict_counts_the_original_as_it_is)
{
	struct me_branches sum;

	diamond();
	sum = count((uint32_t[]){0, 1, 2, 3}, 4);
	ck_assert(sum.taken_before == 100 && sum.taken_after == 100);
	ck_assert(sum.insns_before == 1200 && sum.insns_after == 1200);
	ck_assert(sum.insns_moved == 1200);
}

TEST(predict_counts_removed_and_added_jumps)
{
	struct me_branches sum;

	diamond();
	/* 0 2 3, 1: inverted; 1 still jumps. */
	sum = count((uint32_t[]){0, 2, 3, 1}, 4);
	ck_assert(sum.taken_after == 60);
	ck_assert(sum.insns_after == 1200);
	/* 0, 2, 1, 3: 1 needs no jump, 2 needs one. */
	sum = count((uint32_t[]){0, 2, 1, 3}, 4);
	ck_assert(sum.taken_after == 30 + 70);
	ck_assert(sum.insns_after == 1200 + 70 - 30);
	/* Neither successor of 0 follows: a jump for the rarer one, and both are taken. */
	sum = count((uint32_t[]){0, 3, 1, 2}, 4);
	ck_assert(sum.taken_after == 30 + 70 + 30 + 70);
	ck_assert(sum.insns_after == 1200 + 30 + 70);
}

TEST(predict_ends_a_zone_with_a_jump)
{
	struct me_branches sum;

	diamond();
	sum = count_clones((uint32_t[]){0, 2, 3, 1}, 4, 2, NULL);
	ck_assert(sum.taken_after == 30 + 30 + 70);
	ck_assert(sum.insns_after == 1200 + 70);
}

TEST(predict_charges_old_code_that_falls_into_a_patch)
{
	struct me_branches sum;

	diamond();
	/* 2 is left behind: jcc to it; it falls into the patch on 3, which jumps to 3's copy. */
	sum = count((uint32_t[]){0, 1, 3}, 3);
	ck_assert(sum.taken_after == 70 + 70);
	ck_assert(sum.insns_after == 1200 - 30 + 70);
	ck_assert(sum.insns_moved == 1200 - 280);
}

#define CLONES(...)                                                                                \
	(uint32_t[])                                                                               \
	{                                                                                          \
		__VA_ARGS__, 0                                                                     \
	}

TEST(predict_gives_a_clone_what_falls_into_it)
{
	struct me_branches sum;

	diamond();
	sum = count_clones((uint32_t[]){0, 2, 3, 1, 3}, 5, 5, CLONES(4));
	ck_assert(sum.taken_before == 100 && sum.taken_after == 30);
	ck_assert(sum.insns_before == 1200 && sum.insns_after == 1200 - 30);
	ck_assert(sum.insns_moved == 1200);
}

/* 0 -> 1 (60) or 2 (40); both -> 3 -> 4 (80) or 5 (20), which return. */
static void two_ways_out(void)
{
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 100}, {MP_TERM_JUMP, 60}, {MP_TERM_FALL, 40},
		   {MP_TERM_COND, 100}, {MP_TERM_RET, 80}, {MP_TERM_RET, 20});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 60}, {0, 2, MP_EDGE_TAKEN, 40},
		  {1, 3, MP_EDGE_JUMP, 60}, {2, 3, MP_EDGE_FALL, 40}, {3, 4, MP_EDGE_FALL, 80},
		  {3, 5, MP_EDGE_TAKEN, 20});
	toy_finish(&toy);
}

TEST(predict_divides_flow_between_copies)
{
	struct me_branches sum;

	two_ways_out();
	/* 60 go through the clone of 3, 40 through 3; each sends a fifth to 5. */
	sum = count_clones((uint32_t[]){0, 2, 3, 4, 1, 3, 4, 5}, 8, 8, CLONES(5, 6));
	ck_assert(sum.taken_before == 40 + 60 + 20);
	ck_assert_msg(fabs(sum.taken_after - (60 + 8 + 12)) < 1e-9, "%f", sum.taken_after);
	ck_assert(fabs(sum.insns_after - (1600 - 60)) < 1e-9);
	/* The clone of 3 falls into 5, and branches to 4. */
	sum = count_clones((uint32_t[]){0, 2, 3, 4, 1, 3, 5}, 7, 7, CLONES(5));
	ck_assert_msg(fabs(sum.taken_after - (60 + 8 + 48)) < 1e-9, "%f", sum.taken_after);
	ck_assert(fabs(sum.insns_after - (1600 - 60)) < 1e-9);
	/* Nothing follows the clone of 3: both its ways are taken, one by an added jump. */
	sum = count_clones((uint32_t[]){0, 2, 3, 4, 1, 3, 5}, 7, 6, CLONES(5));
	ck_assert_msg(fabs(sum.taken_after - (60 + 8 + 60)) < 1e-9, "%f", sum.taken_after);
	ck_assert(fabs(sum.insns_after - (1600 - 60 + 12)) < 1e-9);
}

TEST(predict_divides_what_is_left_of_a_cloned_block)
{
	struct me_branches sum;

	/* 0 -> 1 (30), 2 (50), 3 (20) by a table; 1, 2 -> 4; 3, 4 -> 5; 5 -> 6 (60), 7 (40). */
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_TABLE, 100}, {MP_TERM_JUMP, 30}, {MP_TERM_JUMP, 50},
		   {MP_TERM_JUMP, 20}, {MP_TERM_JUMP, 80}, {MP_TERM_COND, 100}, {MP_TERM_RET, 60},
		   {MP_TERM_RET, 40});
	for (uint32_t i = 1; i <= 3; i++)
		toy_edge(&toy, 0, i, MP_EDGE_TABLE, toy.block_counts[i]);
	toy_edges(&toy, {1, 4, MP_EDGE_JUMP, 30}, {2, 4, MP_EDGE_JUMP, 50},
		  {3, 5, MP_EDGE_JUMP, 20}, {4, 5, MP_EDGE_JUMP, 80}, {5, 6, MP_EDGE_FALL, 60},
		  {5, 7, MP_EDGE_TAKEN, 40});
	toy_finish(&toy);
	/* 4 keeps 30 of its 80, so only these continue into the clone of 5 behind it. */
	sum = count_clones((uint32_t[]){0, 1, 4, 5, 7, 2, 4, 5, 6, 3}, 10, 10, CLONES(3, 6));
	ck_assert(sum.taken_before == 30 + 50 + 20 + 80 + 40);
	ck_assert_msg(fabs(sum.taken_after - (18 + 28 + 20)) < 1e-9, "%f", sum.taken_after);
	ck_assert(fabs(sum.insns_after - (sum.insns_before - 30 - 50 - 80)) < 1e-9);
}

static struct me_prediction predict(const struct me_plan *plan)
{
	struct me_prediction prediction;

	ck_assert_int_eq(me_layout_predict(&toy.cfg, &toy.counts, plan, NULL, &prediction, &err),
			 0);
	return prediction;
}

/* In the order 0 2 3 1, block 1 jumps before and after. */
static struct me_prediction predict_inverted(void)
{
	struct me_plan_block list[] = {{.block = 0}, {.block = 2}, {.block = 3}, {.block = 1}};
	struct me_plan plan = {.blocks = list, .nr_blocks = 4};

	return predict(&plan);
}

TEST(predict_ratio_lies_between_the_estimate_and_one)
{
	struct me_prediction prediction;

	diamond();
	prediction = predict_inverted();
	ck_assert(fabs(prediction.ratio - 0.6) < 1e-12);
	toy.counts.exact = false;
	prediction = predict_inverted();
	ck_assert(prediction.taken_before == 100 && prediction.taken_after == 60);
	ck_assert(prediction.ratio > 0.6 && prediction.ratio < 1);
}

TEST(predict_knows_plans_without_blocks_and_of_others)
{
	struct me_plan_block other = {.block = 4};
	struct me_plan plan = {.blocks = &other, .nr_blocks = 1};
	struct me_prediction prediction;

	diamond();
	ck_assert_int_eq(me_layout_predict(&toy.cfg, &toy.counts, &plan, NULL, &prediction, &err),
			 -EINVAL);
	plan.nr_blocks = 0;
	ck_assert(predict(&plan).ratio == 1);
}

/* The counts of a profile that is @times as large. */
static struct me_prediction predict_larger(double times)
{
	diamond();
	toy.counts.exact = false;
	for (uint32_t b = 0; b < toy.cfg.nr_blocks; b++)
		toy.counts.block[b] *= times;
	for (uint32_t e = 0; e < toy.cfg.nr_edges; e++)
		toy.counts.edge[e] *= times;
	return predict_inverted();
}

TEST(predict_believes_larger_profiles_more)
{
	struct me_prediction few = predict_larger(0.01), more = predict_larger(1),
			     many = predict_larger(1000);

	/* Four samples say 0.7; two more stand for the doubt, half each way. */
	ck_assert_msg(fabs(few.ratio - (2.2 / 6 + 0.3) / (3.8 / 6 + 0.3)) < 1e-9, "%f", few.ratio);
	ck_assert(few.ratio > more.ratio && more.ratio > many.ratio && many.ratio > 0.6);
	ck_assert(many.ratio < 0.6001);
	ck_assert(few.least < few.ratio && few.ratio < few.most);
	/* No number of samples tells the time of a block, so there is always an interval. */
	ck_assert(many.least < many.ratio && many.ratio < many.most);
}

TEST(predict_has_no_doubt_of_what_was_counted)
{
	struct me_prediction prediction;

	diamond();
	prediction = predict_inverted();
	ck_assert(prediction.least == prediction.ratio && prediction.most == prediction.ratio);
}
