// SPDX-License-Identifier: Apache-2.0
/* test_design - the array is orthogonal, and its effects are those that were put in. */
#include <math.h>

#include "editor/refine/design.h"
#include "tests/unit/suite.h"

START_TEST(any_two_factors_meet_in_each_pair_of_levels_once)
{
	for (unsigned int a = 0; a < ME_DESIGN_FACTORS; a++)
		for (unsigned int b = 0; b < a; b++) {
			unsigned int met[ME_DESIGN_LEVELS][ME_DESIGN_LEVELS] = {{0}};

			for (unsigned int row = 0; row < ME_DESIGN_ROWS; row++) {
				ck_assert_uint_lt(me_design_level(row, a), ME_DESIGN_LEVELS);
				met[me_design_level(row, a)][me_design_level(row, b)]++;
			}
			for (unsigned int i = 0; i < ME_DESIGN_LEVELS; i++)
				for (unsigned int k = 0; k < ME_DESIGN_LEVELS; k++)
					ck_assert_uint_eq(met[i][k], 1);
		}
}
END_TEST

START_TEST(row_of_nothing_changed_is_there)
{
	for (unsigned int f = 0; f < ME_DESIGN_FACTORS; f++)
		ck_assert_uint_eq(me_design_level(0, f), 0);
}
END_TEST

/* Effects of all factors at once; each is found as if it were alone. */
static const double truth[ME_DESIGN_FACTORS][ME_DESIGN_LEVELS] = {
	{100, 40, 60, 90}, {5, 6, 7, 8}, {30, 90, 10, 20}, {1, 1, 1, 1}, {50, 20, 30, 19}};

static void fill(double own[ME_DESIGN_ROWS], double whole[ME_DESIGN_ROWS], unsigned int factor)
{
	for (unsigned int row = 0; row < ME_DESIGN_ROWS; row++) {
		own[row] = truth[factor][me_design_level(row, factor)];
		whole[row] = 1000;
		for (unsigned int f = 0; f < ME_DESIGN_FACTORS; f++)
			whole[row] += truth[f][me_design_level(row, f)];
	}
}

START_TEST(effects_do_not_mix)
{
	static const unsigned int best[ME_DESIGN_FACTORS] = {1, 0, 2, 0, 3};

	for (unsigned int f = 0; f < ME_DESIGN_FACTORS; f++) {
		double own[ME_DESIGN_ROWS], whole[ME_DESIGN_ROWS];
		struct me_design_effect effects[ME_DESIGN_LEVELS];

		fill(own, whole, f);
		me_design_effects(whole, f, effects);
		for (unsigned int level = 1; level < ME_DESIGN_LEVELS; level++)
			ck_assert_double_eq_tol(effects[level].mean - effects[0].mean,
						truth[f][level] - truth[f][0], 1e-9);
		ck_assert_uint_eq(me_design_choose(own, whole, f), best[f]);
	}
}
END_TEST

START_TEST(harm_elsewhere_counts)
{
	double own[ME_DESIGN_ROWS], whole[ME_DESIGN_ROWS];

	/* Level 1 of the first factor gains 60 for itself, and costs 500 elsewhere. */
	fill(own, whole, 0);
	for (unsigned int row = 0; row < ME_DESIGN_ROWS; row++)
		if (me_design_level(row, 0) == 1)
			whole[row] += 500;
	ck_assert_uint_eq(me_design_choose(own, whole, 0), 2);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("design");
	TCase *tc = tcase_create("design");

	tcase_add_test(tc, any_two_factors_meet_in_each_pair_of_levels_once);
	tcase_add_test(tc, row_of_nothing_changed_is_there);
	tcase_add_test(tc, effects_do_not_mix);
	tcase_add_test(tc, harm_elsewhere_counts);
	suite_add_tcase(s, tc);
	return s;
}

MORPH_SUITE_MAIN(suite)
