// SPDX-License-Identifier: Apache-2.0
/* test_worth - savings of known graphs, and the line through the origin. */
#include <math.h>

#include "daemon/machine/worth.h"
#include "tests/support/toycfg.h"
#include "tests/unit/suite.h"

static struct toy toy;

/* A branch that is taken nine times of ten, over a block that lies behind it. */
static void build(double taken, double fallen)
{
	uint32_t a, b, c;

	toy_start(&toy, "f");
	a = toy_block(&toy, MP_TERM_COND, taken + fallen);
	b = toy_block(&toy, MP_TERM_FALL, fallen);
	c = toy_block(&toy, MP_TERM_RET, taken + fallen);
	toy_edges(&toy, {a, b, MP_EDGE_FALL, fallen}, {a, c, MP_EDGE_TAKEN, taken},
		  {b, c, MP_EDGE_FALL, fallen});
	toy_finish(&toy);
}

TEST(saving_turns_the_likely_way_into_a_fall_through)
{
	struct md_saving s;

	build(900, 100);
	ck_assert_int_eq(md_saving_compute(&toy.cfg, &toy.counts, NULL, &s), 0);
	/* 900 of 8,400 instructions are taken branches; then the rare block jumps 200 times. */
	ck_assert_double_eq_tol(s.taken, 1000 * 900 / 8400.0, 1e-6);
	ck_assert_double_eq_tol(s.saved, 1000 * 700 / 8400.0, 1e-6);
	ck_assert_double_eq_tol(s.movable, 1, 1e-9);
}

TEST(saving_of_a_good_layout_is_nothing)
{
	struct md_saving s;

	build(10, 990);
	ck_assert_int_eq(md_saving_compute(&toy.cfg, &toy.counts, NULL, &s), 0);
	ck_assert_double_eq_tol(s.saved, 0, 1e-9);
}

TEST(saving_leaves_functions_alone_that_are_not_understood)
{
	struct md_saving s;

	build(900, 100);
	toy.funcs[0].problem = MP_PROBLEM_UNRESOLVED_JUMP;
	ck_assert_int_eq(md_saving_compute(&toy.cfg, &toy.counts, NULL, &s), 0);
	ck_assert_double_eq_tol(s.saved, 0, 1e-9);
	ck_assert_double_eq_tol(s.movable, 0, 1e-9);
	ck_assert_double_eq_tol(s.left_alone[MP_PROBLEM_UNRESOLVED_JUMP], 1, 1e-9);
}

TEST(saving_without_executions_is_nothing)
{
	struct md_saving s;

	build(0, 0);
	ck_assert_int_eq(md_saving_compute(&toy.cfg, &toy.counts, NULL, &s), 0);
	ck_assert_double_eq_tol(s.taken + s.saved + s.movable, 0, 1e-9);
}

TEST(effect_without_audits_is_the_prior_and_uncertain)
{
	struct md_effect e;

	md_effect_fit(NULL, 0, &e);
	ck_assert_uint_eq(e.nr_here, 0);
	ck_assert(e.slope > 0.05 && e.slope < 0.5);
	ck_assert_double_eq_tol(e.slope_sd, e.slope, 1e-9);
	ck_assert(e.spread > 0);
}

TEST(effect_follows_this_machine_s_audits_and_becomes_certain)
{
	struct md_effect_point points[40];
	struct md_effect none, some, many;

	for (int i = 0; i < 40; i++)
		points[i] = (struct md_effect_point){30 + i % 7, 0.4 * (30 + i % 7)};
	md_effect_fit(NULL, 0, &none);
	md_effect_fit(points, 2, &some);
	md_effect_fit(points, 40, &many);
	ck_assert(fabs(some.slope - 0.4) < fabs(none.slope - 0.4));
	ck_assert(some.slope_sd < none.slope_sd && many.slope_sd < some.slope_sd);
	ck_assert_double_eq_tol(many.slope, 0.4, 0.01);
	ck_assert_uint_eq(many.nr_here, 40);
}

TEST(effect_of_a_machine_without_gains_goes_to_zero)
{
	struct md_effect_point points[20];
	struct md_effect e;

	for (int i = 0; i < 20; i++)
		points[i] = (struct md_effect_point){40, i % 2 ? 1 : -1};
	md_effect_fit(points, 20, &e);
	ck_assert(fabs(e.slope) < 0.02);
}

TEST(effect_leaves_out_numbers_that_are_none)
{
	const struct md_effect_point point = {NAN, 3};
	struct md_effect e;

	md_effect_fit(&point, 1, &e);
	ck_assert_uint_eq(e.nr_here, 0);
	ck_assert(isfinite(e.slope));
}

TEST(worth_grows_with_share_and_holds_its_interval)
{
	struct md_saving s = {.movable = 1, .taken = 80, .saved = 30};
	struct md_effect e;
	struct md_worth half, whole;

	md_effect_fit(NULL, 0, &e);
	half = md_worth_compute(&s, &e, 0.5);
	whole = md_worth_compute(&s, &e, 1);
	ck_assert_double_eq_tol(whole.gain, e.slope * 30, 1e-9);
	ck_assert_double_eq_tol(half.gain, whole.gain / 2, 1e-9);
	ck_assert_double_eq_tol(half.most - half.least, (whole.most - whole.least) / 2, 1e-9);
	ck_assert(half.least < half.gain && half.gain < half.most);
}

TEST(worth_of_what_cannot_move_is_nothing)
{
	struct md_saving s = {.movable = 0, .taken = 80, .saved = 0};
	struct md_effect e;
	struct md_worth w;

	md_effect_fit(NULL, 0, &e);
	w = md_worth_compute(&s, &e, 0.9);
	ck_assert_double_eq_tol(fabs(w.gain) + fabs(w.least) + fabs(w.most), 0, 1e-9);
}
