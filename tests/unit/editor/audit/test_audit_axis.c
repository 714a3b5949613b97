// SPDX-License-Identifier: Apache-2.0
/* test_audit_axis - what pictures draw: ranges, ticks, and the interval pair by pair. */
#include <math.h>

#include "editor/audit/audit_axis.h"
#include "editor/audit/audit_history.h"
#include "tests/unit/suite.h"

TEST(axis_covers_the_bulk_but_not_an_outlier)
{
	double values[] = {10, 11, 12, 13, 14, 15, 16, 1000}, same[] = {5, 5, 5}, one[] = {-2};
	struct me_axis axis = {.from = 0, .to = 100};

	me_axis_cover(&axis, values, 8, ME_AXIS_BULK);
	ck_assert(axis.lo < 10 && axis.lo > 8);
	ck_assert(axis.hi > 16 && axis.hi < 50);
	ck_assert_double_eq_tol(me_axis_place(&axis, axis.lo), 0, 1e-9);
	ck_assert_double_eq_tol(me_axis_place(&axis, axis.hi), 100, 1e-9);
	me_axis_cover(&axis, same, 3, ME_AXIS_BULK);
	ck_assert(axis.lo < 5 && axis.hi > 5);
	me_axis_cover(&axis, one, 1, ME_AXIS_BULK);
	ck_assert(axis.lo < -2 && axis.hi > -2);
	me_axis_cover(&axis, NULL, 0, ME_AXIS_BULK);
	ck_assert(axis.lo < axis.hi);
}

TEST(axis_ticks_are_round_and_few)
{
	static const struct {
		double lo, hi, step;
		int decimals;
	} cases[] = {{0, 7, 1, 0},
		     {0, 10, 2, 0},
		     {0.95, 1.05, 0.02, 2},
		     {1e6, 3e6, 5e5, 0},
		     {0, 1e-5, 2e-6, 6}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct me_axis axis = {.lo = cases[i].lo, .hi = cases[i].hi, .to = 1};
		int decimals;
		double step = me_axis_step(&axis, 7, &decimals);

		ck_assert_msg(fabs(step / cases[i].step - 1) < 1e-9, "%zu: %g", i, step);
		ck_assert_msg(decimals == cases[i].decimals, "%zu: %d", i, decimals);
	}
}

TEST(history_ends_with_the_result_and_is_limited)
{
	struct me_history history;
	AUTO(mp_seq_fini) struct mp_seq seq = {0};
	double lo, hi;

	mp_seq_init(&seq, 0.01);
	ck_assert_int_eq(me_history_make(&seq, &history), 0);
	ck_assert_uint_eq(history.nr, 0);
	me_history_fini(&history);
	for (size_t nr = 1; nr <= 250; nr++) {
		const struct me_history_point *last;

		ck_assert_int_eq(mp_seq_add(&seq, 0.01 * sin((double)nr)), 0);
		if (nr != 1 && nr != 8 && nr != 100 && nr != 250)
			continue;
		ck_assert_int_eq(me_history_make(&seq, &history), 0);
		ck_assert_uint_le(history.nr, ME_HISTORY_MAX);
		ck_assert(history.nr >= (nr < ME_HISTORY_MAX ? nr : ME_HISTORY_MAX / 2));
		last = &history.points[history.nr - 1];
		mp_seq_interval(&seq, &lo, &hi);
		ck_assert_uint_eq(last->nr, nr);
		ck_assert(last->lo == lo && last->hi == hi);
		ck_assert(last->estimate == mp_seq_estimate(&seq));
		me_history_fini(&history);
	}
}
