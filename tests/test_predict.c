// SPDX-License-Identifier: Apache-2.0
/* Prediction: taken branches and instructions of a plan, counted by hand here. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "editor/predict.h"
#include "tests/suite.h"
#include "tests/support/toycfg.h"

static struct toy toy;

/* 0 -> 1 (30) or 2 (70); 1 jumps to 3; 2 falls into 3; 3 returns. */
static void diamond(void)
{
	toy_init(&toy);
	toy_func(&toy, "f");
	toy_block(&toy, MP_TERM_COND, 100);
	toy_block(&toy, MP_TERM_JUMP, 30);
	toy_block(&toy, MP_TERM_FALL, 70);
	toy_block(&toy, MP_TERM_RET, 100);
	toy_edge(&toy, 0, 1, MP_EDGE_FALL, 30);
	toy_edge(&toy, 0, 2, MP_EDGE_TAKEN, 70);
	toy_edge(&toy, 1, 3, MP_EDGE_JUMP, 30);
	toy_edge(&toy, 2, 3, MP_EDGE_FALL, 70);
	toy_finish(&toy);
}

static struct me_branches count(const uint32_t *blocks, const uint8_t *zones, uint32_t nr)
{
	struct me_plan_block list[TOY_MAX];
	struct me_plan plan = { list, nr };
	struct me_branches sum;

	for (uint32_t i = 0; i < nr; i++)
		list[i] = (struct me_plan_block){ .block = blocks[i], .zone = zones ? zones[i] : 0 };
	ck_assert_int_eq(me_branches_count(&toy.cfg, &toy.counts, &plan, NULL, &sum), 0);
	return sum;
}

START_TEST(predict_counts_the_original_as_it_is)
{
	struct me_branches sum;

	diamond();
	sum = count((uint32_t[]){ 0, 1, 2, 3 }, NULL, 4);
	ck_assert(sum.taken_before == 100 && sum.taken_after == 100);
	ck_assert(sum.insns_before == 1200 && sum.insns_after == 1200);
	ck_assert(sum.insns_moved == 1200);
}
END_TEST

START_TEST(predict_counts_removed_and_added_jumps)
{
	struct me_branches sum;

	diamond();
	/* 0 2 3, 1: inverted; 1 still jumps. */
	sum = count((uint32_t[]){ 0, 2, 3, 1 }, NULL, 4);
	ck_assert(sum.taken_after == 60);
	ck_assert(sum.insns_after == 1200);
	/* 0, 2, 1, 3: 1's jump has gone, 2 needs one. */
	sum = count((uint32_t[]){ 0, 2, 1, 3 }, NULL, 4);
	ck_assert(sum.taken_after == 30 + 70);
	ck_assert(sum.insns_after == 1200 + 70 - 30);
	/* Neither way of 0 follows: a jump on the rarer one, and both are taken. */
	sum = count((uint32_t[]){ 0, 3, 1, 2 }, NULL, 4);
	ck_assert(sum.taken_after == 30 + 70 + 30 + 70);
	ck_assert(sum.insns_after == 1200 + 30 + 70);
}
END_TEST

START_TEST(predict_ends_a_zone_with_a_jump)
{
	struct me_branches sum;

	diamond();
	sum = count((uint32_t[]){ 0, 2, 3, 1 }, (uint8_t[]){ 0, 0, 1, 1 }, 4);
	ck_assert(sum.taken_after == 30 + 30 + 70);
	ck_assert(sum.insns_after == 1200 + 70);
}
END_TEST

START_TEST(predict_charges_old_code_that_falls_into_a_patch)
{
	struct me_branches sum;

	diamond();
	/* 2 stays behind: jcc to it, falls into the patch on 3, jumps on to 3's copy. */
	sum = count((uint32_t[]){ 0, 1, 3 }, NULL, 3);
	ck_assert(sum.taken_after == 70 + 70);
	ck_assert(sum.insns_after == 1200 - 30 + 70);
	ck_assert(sum.insns_moved == 1200 - 280);
}
END_TEST

START_TEST(predict_ratio_lies_between_the_estimate_and_one)
{
	struct me_plan_block list[] = { { .block = 0 }, { .block = 2 }, { .block = 3 },
					{ .block = 1 } };
	struct me_plan plan = { list, 4 };
	struct me_prediction prediction;
	struct mp_err err;

	diamond();
	ck_assert_int_eq(me_layout_predict(&toy.cfg, &toy.counts, &plan, &prediction, &err), 0);
	ck_assert(fabs(prediction.ratio - 0.6) < 1e-12);
	toy.counts.exact = false;
	ck_assert_int_eq(me_layout_predict(&toy.cfg, &toy.counts, &plan, &prediction, &err), 0);
	ck_assert(prediction.taken_before == 100 && prediction.taken_after == 60);
	ck_assert(prediction.ratio > 0.6 && prediction.ratio < 1);
	list[0].block = 4;
	ck_assert_int_eq(me_layout_predict(&toy.cfg, &toy.counts, &plan, &prediction, &err),
			 -EINVAL);
	plan.nr_blocks = 0;
	ck_assert_int_eq(me_layout_predict(&toy.cfg, &toy.counts, &plan, &prediction, &err), 0);
	ck_assert(prediction.ratio == 1);
}
END_TEST

static Suite *predict_suite(void)
{
	Suite *suite = suite_create("predict");
	TCase *tcase = tcase_create("predict");

	tcase_add_test(tcase, predict_counts_the_original_as_it_is);
	tcase_add_test(tcase, predict_counts_removed_and_added_jumps);
	tcase_add_test(tcase, predict_ends_a_zone_with_a_jump);
	tcase_add_test(tcase, predict_charges_old_code_that_falls_into_a_patch);
	tcase_add_test(tcase, predict_ratio_lies_between_the_estimate_and_one);
	suite_add_tcase(suite, tcase);
	return suite;
}

MORPH_SUITE_MAIN(predict_suite)
