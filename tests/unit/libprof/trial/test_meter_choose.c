// SPDX-License-Identifier: Apache-2.0
/*
 * test_meter_choose - which counters become a meter, and how good it is said to be, for programs
 * that are made up.
 */
#include <math.h>

#include "editor/base/mix.h"
#include "libprof/trial/meter_choose.h"
#include "tests/unit/suite.h"

#define RATE 10000 /* of the planted counters, in a second of the work that they count */

static uint64_t state;
static struct mp_meter_windows *windows;
static struct mp_meter meter;

static void setup(void)
{
	state = 1;
	windows = NULL;
}

static void teardown(void)
{
	mp_meter_free(windows);
}

FIXTURE(setup, teardown);

static double uniform(void)
{
	return ((double)(me_next_random(&state) >> 11) + 0.5) / 9007199254740992.0;
}

static double gaussian(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/*
 * Windows of a program that does three kinds of work. The counters 3, 4 and 5 count one kind each,
 * 20,000 times in a second of it. All others are what @other says, or never count. @sd: noise of
 * the CPU time.
 */
static void add_windows(uint32_t nr_counters, int nr, double sd,
			void (*other)(uint64_t *deltas, double cpu_s, int window))
{
	uint64_t *deltas = calloc(nr_counters, sizeof(*deltas));

	if (!windows)
		windows = mp_meter_new(nr_counters);
	ck_assert(windows && deltas);
	for (int w = 0; w < nr; w++) {
		double cpu_s = 0;

		for (int kind = 0; kind < 3; kind++) {
			double work_s = 0.2 + uniform();

			deltas[3 + kind] = (uint64_t)(2 * RATE * work_s);
			cpu_s += work_s;
		}
		if (other)
			other(deltas, cpu_s, w);
		ck_assert_int_eq(mp_meter_add_window(windows, cpu_s * exp(sd * gaussian()), deltas),
				 0);
	}
	free(deltas);
}

static bool chosen(uint32_t index)
{
	for (size_t i = 0; i < meter.nr; i++)
		if (meter.index[i] == index)
			return true;
	return false;
}

static void is_the_planted_meter(void)
{
	ck_assert(meter.usable);
	ck_assert_uint_eq(meter.nr, 3);
	ck_assert(chosen(3) && chosen(4) && chosen(5));
	for (int i = 0; i < 3; i++)
		ck_assert_double_eq_tol(meter.weight[i], 0.5 / RATE, 0.02 / RATE);
}

TEST(meter_of_three_kinds_of_work)
{
	static const uint64_t counts[] = {RATE, RATE, RATE};

	add_windows(100, 40, 0.02, NULL);
	ck_assert_int_eq(mp_meter_choose(windows, NULL, &meter), 0);
	is_the_planted_meter();
	ck_assert_double_eq_tol(meter.deviation, 0.02, 0.01);
	ck_assert(meter.deviation_without > 0.2);
	ck_assert_uint_eq(meter.nr_windows, 40);
	ck_assert_uint_eq(meter.nr_candidates, 3);
	ck_assert_double_eq_tol(meter.rate, 2 * RATE, 0.05 * RATE);
	ck_assert_double_eq_tol(mp_meter_work(&meter, counts), 1.5, 0.05);
}

TEST(meter_needs_windows)
{
	add_windows(10, MP_METER_LEAST_WINDOWS - 1, 0, NULL);
	ck_assert_int_eq(mp_meter_choose(windows, NULL, &meter), -EAGAIN);
	ck_assert(!meter.usable);
	add_windows(10, 1, 0, NULL);
	ck_assert_int_eq(mp_meter_choose(windows, NULL, &meter), 0);
}

TEST(meter_refuses_what_is_no_time)
{
	const uint64_t deltas[1] = {1};

	ck_assert_ptr_null(mp_meter_new(0));
	ck_assert_ptr_null(mp_meter_new(MP_METER_MAX_COUNTERS + 1));
	windows = mp_meter_new(1);
	ck_assert_int_eq(mp_meter_add_window(windows, -1, deltas), -EINVAL);
	ck_assert_int_eq(mp_meter_add_window(windows, NAN, deltas), -EINVAL);
	ck_assert_int_eq(mp_meter_add_window(windows, INFINITY, deltas), -EINVAL);
}

/* Of processes that take a hundredth of a second, ten and more become one window. */
TEST(meter_of_short_processes)
{
	uint64_t deltas[4] = {0};

	windows = mp_meter_new(4);
	for (int w = 0; w < 400; w++) {
		deltas[2] = 50 + me_next_random(&state) % 101;
		ck_assert_int_eq(mp_meter_add_window(windows, 1e-4 * (double)deltas[2], deltas), 0);
	}
	/* no time at all adds only counts */
	deltas[2] = 0;
	ck_assert_int_eq(mp_meter_add_window(windows, 0, deltas), 0);
	ck_assert_int_eq(mp_meter_choose(windows, NULL, &meter), 0);
	ck_assert_uint_ge(meter.nr_windows, 30);
	ck_assert_uint_le(meter.nr_windows, 40);
	ck_assert(meter.usable && meter.nr == 1 && chosen(2));
	ck_assert_double_lt(meter.deviation, 1e-6);
	ck_assert_double_eq_tol(meter.weight[0], 1e-4, 1e-9);
}

TEST(meter_takes_no_counter_that_no_stub_may_hold)
{
	const uint64_t usable[2] = {~(UINT64_C(1) << 4), 0};

	add_windows(100, 40, 0.02, NULL);
	ck_assert_int_eq(mp_meter_choose(windows, usable, &meter), 0);
	ck_assert_uint_eq(meter.nr_candidates, 2);
	ck_assert(chosen(3) && !chosen(4) && chosen(5));
}

/*
 * Counters that know the time exactly, but count too often, too rarely, or nothing in every tenth
 * window.
 */
static void know_the_time(uint64_t *deltas, double cpu_s, int window)
{
	deltas[10] = (uint64_t)(MP_METER_RATE_MAX * 1.1 * cpu_s);
	deltas[11] = (uint64_t)(MP_METER_RATE_MIN * 0.9 * cpu_s);
	deltas[12] = window % 10 ? (uint64_t)(RATE * cpu_s) : 0;
}

TEST(meter_takes_no_counter_that_counts_too_often_or_too_rarely)
{
	add_windows(100, 40, 0.02, know_the_time);
	ck_assert_int_eq(mp_meter_choose(windows, NULL, &meter), 0);
	is_the_planted_meter();
}

/* Processes of four windows each, whose speed no counter knows. Counters that tell the process know it by chance. */
static void tell_the_process(uint64_t *deltas, double cpu_s, int window)
{
	static double own[64];

	for (int i = 20; i < 84; i++) {
		if (window % 4 == 0)
			own[i - 20] = uniform();
		deltas[i] = (uint64_t)(RATE * cpu_s * own[i - 20]);
	}
}

TEST(meter_is_judged_by_other_processes)
{
	uint64_t deltas[100] = {0};

	windows = mp_meter_new(100);
	for (int w = 0; w < 128; w++) {
		static double speed;

		if (w % 4 == 0)
			speed = exp(0.3 * gaussian());
		tell_the_process(deltas, 1, w);
		deltas[3] = RATE;
		ck_assert_int_eq(mp_meter_add_window(windows, speed, deltas), 0);
	}
	ck_assert_int_eq(mp_meter_choose(windows, NULL, &meter), 0);
	ck_assert_msg(meter.deviation > 0.25, "it claims to be wrong by %g", meter.deviation);
}

static void have_twins(uint64_t *deltas, double cpu_s, int window)
{
	(void)cpu_s;
	(void)window;
	deltas[20] = deltas[3];
	deltas[21] = 2 * deltas[4];
}

TEST(meter_takes_no_counter_twice)
{
	add_windows(100, 40, 0.02, have_twins);
	ck_assert_int_eq(mp_meter_choose(windows, NULL, &meter), 0);
	ck_assert_uint_eq(meter.nr_candidates, 4);
	ck_assert_uint_eq(meter.nr, 3);
	ck_assert(chosen(3) && chosen(4) != chosen(21) && chosen(5));
}

TEST(meter_that_predicts_nothing_is_not_usable)
{
	uint64_t deltas[8];

	windows = mp_meter_new(8);
	for (int w = 0; w < 60; w++) {
		for (int i = 0; i < 8; i++)
			deltas[i] = (uint64_t)(RATE * exp(gaussian()));
		ck_assert_int_eq(mp_meter_add_window(windows, exp(gaussian()), deltas), 0);
	}
	ck_assert_int_eq(mp_meter_choose(windows, NULL, &meter), 0);
	ck_assert(!meter.usable);
	ck_assert_double_gt(meter.deviation, MP_METER_DEVIATION_MAX);
}

TEST(meter_without_candidates)
{
	const uint64_t none[1] = {0};

	add_windows(10, 20, 0, NULL);
	ck_assert_int_eq(mp_meter_choose(windows, none, &meter), 0);
	ck_assert(!meter.usable && meter.nr == 0 && isinf(meter.deviation));
}

#define MANY 200000u

/* Noise in every counter that knows nothing of the work, a tenth of it at rates of candidates. */
static void be_many(uint64_t *deltas, double cpu_s, int window)
{
	(void)cpu_s;
	(void)window;
	for (uint32_t i = 6; i < MANY; i++)
		deltas[i] = (uint64_t)((i % 10 ? 1e6 : RATE) * (1 + uniform()));
}

/* So many counters and windows that most are forgotten on the way. */
TEST(meter_of_many_counters)
{
	add_windows(MANY, 180, 0.02, be_many);
	ck_assert_int_eq(mp_meter_choose(windows, NULL, &meter), 0);
	ck_assert_uint_le(meter.nr_candidates, MP_METER_CANDIDATES);
	ck_assert_uint_gt(meter.nr_candidates, MANY / 20);
	ck_assert(chosen(3) && chosen(4) && chosen(5));
	ck_assert_double_lt(meter.deviation, 0.04);
}

TEST(meter_of_many_windows)
{
	add_windows(10, 5000, 0.02, NULL);
	ck_assert_int_eq(mp_meter_choose(windows, NULL, &meter), 0);
	ck_assert_uint_eq(meter.nr_windows, 5000);
	is_the_planted_meter();
}
