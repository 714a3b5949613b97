// SPDX-License-Identifier: Apache-2.0
/*
 * test_fit - weights that are not negative: what makes them the best ones holds for many problems.
 */
#include <math.h>

#include "editor/base/mix.h"
#include "libprof/trial/fit.h"
#include "tests/unit/suite.h"

#define NR_ROWS 20

static double uniform(uint64_t *state)
{
	return (double)(me_next_random(state) >> 11) / 9007199254740992.0;
}

static struct mp_fit fit_of(const double rows[NR_ROWS][MP_FIT_MAX], const double *target, size_t nr)
{
	struct mp_fit fit = {.nr = nr};

	for (int r = 0; r < NR_ROWS; r++)
		for (size_t i = 0; i < nr; i++) {
			fit.target[i] += rows[r][i] * target[r];
			for (size_t j = 0; j < nr; j++)
				fit.gram[i][j] += rows[r][i] * rows[r][j];
		}
	return fit;
}

/*
 * The slope of the sum of squares in each weight is 0 where the weight is above 0, and else leads
 * below 0.
 */
TEST_EACH(fit_is_the_best_one, 200)
{
	uint64_t state = (uint64_t)_i;
	size_t nr = 1 + (size_t)_i % MP_FIT_MAX;
	double rows[NR_ROWS][MP_FIT_MAX], target[NR_ROWS], weights[MP_FIT_MAX], gain, squares = 0;
	double before = 0;
	struct mp_fit fit;

	for (int r = 0; r < NR_ROWS; r++) {
		target[r] = uniform(&state) - 0.3;
		for (size_t i = 0; i < nr; i++)
			rows[r][i] = uniform(&state) - (_i % 3 ? 0 : 0.5);
	}
	fit = fit_of(rows, target, nr);
	gain = mp_fit(&fit, weights);
	for (size_t i = 0; i < nr; i++) {
		double slope = fit.target[i];

		for (size_t j = 0; j < nr; j++)
			slope -= fit.gram[i][j] * weights[j];
		ck_assert(weights[i] >= 0);
		ck_assert(slope <= 1e-7);
		ck_assert(weights[i] == 0 || slope >= -1e-7);
	}
	for (int r = 0; r < NR_ROWS; r++) {
		double rest = target[r];

		for (size_t i = 0; i < nr; i++)
			rest -= weights[i] * rows[r][i];
		squares += rest * rest;
		before += target[r] * target[r];
	}
	ck_assert_double_eq_tol(gain, before - squares, 1e-9);
}

TEST(fit_finds_the_weights_that_made_the_target)
{
	static const double made[] = {0.5, 2, 0, 1e-3};
	double rows[NR_ROWS][MP_FIT_MAX], target[NR_ROWS] = {0}, weights[MP_FIT_MAX];
	struct mp_fit fit;
	uint64_t state = 1;

	for (int r = 0; r < NR_ROWS; r++)
		for (int i = 0; i < 4; i++) {
			rows[r][i] = uniform(&state);
			target[r] += made[i] * rows[r][i];
		}
	fit = fit_of(rows, target, 4);
	mp_fit(&fit, weights);
	for (int i = 0; i < 4; i++)
		ck_assert_double_eq_tol(weights[i], made[i], 1e-9);
}

TEST(fit_takes_one_of_two_equal_columns_and_none_of_zeros)
{
	double rows[NR_ROWS][MP_FIT_MAX] = {{0}}, target[NR_ROWS], weights[MP_FIT_MAX];
	struct mp_fit fit;

	for (int r = 0; r < NR_ROWS; r++) {
		rows[r][0] = rows[r][1] = 1 + r;
		target[r] = 3 * (1 + r);
	}
	fit = fit_of(rows, target, 3);
	mp_fit(&fit, weights);
	ck_assert_double_eq_tol(weights[0] + weights[1], 3, 1e-9);
	ck_assert(weights[0] == 0 || weights[1] == 0);
	ck_assert_double_eq(weights[2], 0);
}
