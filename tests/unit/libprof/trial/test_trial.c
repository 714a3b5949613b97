// SPDX-License-Identifier: Apache-2.0
/*
 * test_trial - verdicts of trials by everyday use. That the trial is rarely wrong is shown exactly,
 * over all orders of some pairs, and by simulations.
 */
#include <math.h>

#include "libprof/base/defaults.h"
#include "libprof/trial/trial.h"
#include "tests/support/audits/trial_simulate.h"
#include "tests/unit/suite.h"

static struct mp_trial *trial;
static struct mp_trial_result result;

static const struct mp_trial_config config = {
	.alpha = MP_ALPHA,
	.nr_counters = 2,
	.weights = {1e-3, 2e-3},
	.least_work = 0.5,
	.least_processes = 1,
	.max_pairs = 200,
};

static void setup(void)
{
	ck_assert_int_eq(mp_trial_new(&config, &trial), 0);
}

static void teardown(void)
{
	mp_trial_free(trial);
}

FIXTURE(setup, teardown);

/* A block of one second of work, of which the first counter has @share. */
static struct mp_trial_block block_of(double cpu_s, double share)
{
	return (struct mp_trial_block){.cpu_s = cpu_s,
				       .counts = {(uint64_t)(1000 * share + 0.5),
						  (uint64_t)(500 * (1 - share) + 0.5)},
				       .processes = 4};
}

static int add(const struct mp_trial_block *original, const struct mp_trial_block *new)
{
	const struct mp_trial_block blocks[2] = {*original, *new};

	mp_trial_draw(trial, true);
	return mp_trial_add_pair(trial, blocks);
}

/* Adds pairs in which the new version takes @times as long, with some noise, until the end. */
static enum mp_trial_verdict run(double times, double noise)
{
	for (int i = 0; mp_trial_verdict(trial) == MP_TRIAL_RUNNING; i++) {
		struct mp_trial_block original = block_of(1 + noise * (i % 3), 0.5);
		struct mp_trial_block new = block_of(times * (1 + noise * (i / 3 % 3)), 0.5);

		ck_assert_int_eq(add(&original, &new), 0);
	}
	mp_trial_result(trial, &result);
	return mp_trial_verdict(trial);
}

TEST(trial_finds_a_faster_version)
{
	ck_assert_int_eq(run(1 / 1.06, 0.01), MP_TRIAL_FASTER);
	ck_assert_double_eq_tol(result.speedup, 1.06, 0.005);
	ck_assert(result.lowest > 1 && result.lowest < 1.06 && result.highest > 1.06);
	ck_assert_int_eq(result.verdict, MP_TRIAL_FASTER);
	ck_assert_int_eq(result.unlike, -1);
	ck_assert(!result.withheld);
	ck_assert_double_eq_tol(result.work[0], result.nr_pairs, 1e-6);
	ck_assert_uint_eq(result.processes[1], 4 * result.nr_pairs);
	ck_assert_int_eq(mp_trial_draw(trial, false), -EALREADY);
	ck_assert_int_eq(add(&(struct mp_trial_block){0}, &(struct mp_trial_block){0}), -EALREADY);
}

/* Exchanged names give the mirrored result after as many pairs. */
/* The weights of the meter are ten times wrong, in opposite directions; a process costs time as well. */
TEST(trial_mends_the_weights)
{
	for (uint64_t i = 0; mp_trial_verdict(trial) == MP_TRIAL_RUNNING; i++) {
		struct mp_trial_block b[2];

		for (uint64_t v = 0; v < 2; v++) {
			uint64_t x = (2 * i + v) * 2654435761u >> 7;

			b[v] = (struct mp_trial_block){.counts = {500 + x % 997, 500 + x % 991},
						       .processes = 2 + x % 7};
			b[v].cpu_s = 1e-4 * (double)b[v].counts[0] + 2e-2 * (double)b[v].counts[1] +
				     0.5 * (double)b[v].processes;
		}
		b[1].cpu_s /= 1.03;
		ck_assert_int_eq(add(&b[0], &b[1]), 0);
	}
	mp_trial_result(trial, &result);
	ck_assert_int_eq(result.verdict, MP_TRIAL_FASTER);
	ck_assert_uint_lt(result.nr_pairs, 100);
	ck_assert_double_eq_tol(result.speedup, 1.03, 0.01);
}

TEST(trial_treats_both_versions_alike)
{
	struct mp_trial_result first;

	ck_assert_int_eq(run(1 / 1.06, 0), MP_TRIAL_FASTER);
	first = result;
	teardown();
	setup();
	ck_assert_int_eq(run(1.06, 0), MP_TRIAL_SLOWER);
	ck_assert_uint_eq(result.nr_pairs, first.nr_pairs);
	ck_assert_double_eq_tol(result.lowest * first.highest, 1, 1e-9);
	ck_assert_double_eq_tol(result.speedup * first.speedup, 1, 1e-9);
}

TEST(trial_of_equal_versions_ends)
{
	ck_assert_int_eq(run(1, 0.0005), MP_TRIAL_EQUAL_SPEED);
	ck_assert(result.lowest >= exp(-MP_TRIAL_EQUAL) && result.highest <= exp(MP_TRIAL_EQUAL));
}

TEST(trial_ends_by_its_budget)
{
	ck_assert_int_eq(run(1, 0.3), MP_TRIAL_UNDECIDED);
	ck_assert_uint_eq(result.nr_pairs, config.max_pairs);
	ck_assert(result.lowest < 1 && result.highest > 1);
}

/* A small alpha asks for many pairs, but not if the new version takes much longer. */
TEST(trial_ends_early_if_the_new_version_does_harm)
{
	struct mp_trial_config strict = config;

	strict.alpha = 1e-6;
	teardown();
	ck_assert_int_eq(mp_trial_new(&strict, &trial), 0);
	ck_assert_int_eq(run(1.3, 0.01), MP_TRIAL_MUCH_SLOWER);
	ck_assert_uint_lt(result.nr_pairs, 20);
	ck_assert(isinf(result.highest)); /* the test of times has not decided */
}

/*
 * Pairs in which @original and @new of 4 processes crash in each block, until the end. Return: how
 * many.
 */
static int run_crashes(uint64_t original, uint64_t new)
{
	int nr = 0;

	for (; mp_trial_verdict(trial) == MP_TRIAL_RUNNING; nr++) {
		struct mp_trial_block a = block_of(1 + 0.3 * (nr % 2), 0.5);
		struct mp_trial_block b = block_of(1 + 0.3 * (nr / 2 % 2), 0.5);

		a.crashes = original;
		b.crashes = new;
		ck_assert_int_eq(add(&a, &b), 0);
	}
	return nr;
}

TEST(trial_ends_if_only_the_new_version_crashes)
{
	/* sixteen coins would do at 99.998 %, twelve at 99.98 %, and eight do not */
	ck_assert_int_eq(run_crashes(0, 4), 3);
	ck_assert_int_eq(mp_trial_verdict(trial), MP_TRIAL_CRASHES);
}

/* One crash in a pair is one coin. */
TEST(trial_ends_if_the_new_version_crashes_once_in_each_block)
{
	ck_assert_int_eq(run_crashes(0, 1), 10);
	ck_assert_int_eq(mp_trial_verdict(trial), MP_TRIAL_CRASHES);
}

TEST(trial_ends_if_the_new_version_crashes_more_often)
{
	int nr = run_crashes(1, 2);

	ck_assert_int_eq(mp_trial_verdict(trial), MP_TRIAL_CRASHES);
	ck_assert_int_ge(nr, 10);
	ck_assert_int_le(nr, 12);
}

/* It does no work then, and its pairs do not count as times. */
TEST(trial_ends_if_the_new_version_crashes_at_once)
{
	struct mp_trial_block original = block_of(1, 0.5);
	struct mp_trial_block new = {.cpu_s = 0.001, .processes = 50, .crashes = 50};

	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(add(&original, &new), 0);
	ck_assert_int_eq(mp_trial_verdict(trial), MP_TRIAL_CRASHES);
	mp_trial_result(trial, &result);
	ck_assert_uint_eq(result.nr_pairs, 0);
	ck_assert_uint_eq(result.nr_dropped, 3);
	ck_assert_uint_eq(result.crashes[1], 150);
}

TEST_EACH(trial_does_not_mind_an_original_that_crashes, 3)
{
	run_crashes(1 + (uint64_t)_i, 1);
	ck_assert_int_ne(mp_trial_verdict(trial), MP_TRIAL_CRASHES);
}

/*
 * The share of the first counter is larger where the new version runs: its time may be that of
 * other work.
 */
TEST(trial_withholds_its_verdict_if_the_work_differs)
{
	for (int i = 0; mp_trial_verdict(trial) == MP_TRIAL_RUNNING; i++) {
		double share = 0.4 + 0.01 * (i % 4);
		struct mp_trial_block original = block_of(1, share),
				      new = block_of(0.95, share + 0.05);

		ck_assert_int_eq(add(&original, &new), 0);
	}
	mp_trial_result(trial, &result);
	ck_assert_int_eq(result.verdict, MP_TRIAL_UNDECIDED);
	ck_assert_int_eq(result.unlike, 0);
	ck_assert_double_eq_tol(result.unlike_shift, 0.05, 0.002);
	ck_assert(result.withheld);
	ck_assert(result.lowest > 1);
}

TEST(trial_allows_small_shifts_of_work)
{
	for (int i = 0; i < 100; i++) {
		struct mp_trial_block original = block_of(1 + 0.01 * (i % 2), 0.4),
				      new = block_of(1 + 0.01 * (i / 2 % 2), 0.404);

		ck_assert_int_ne(add(&original, &new), -EINVAL);
	}
	mp_trial_result(trial, &result);
	ck_assert_int_eq(result.unlike, -1);
}

TEST(trial_drops_pairs_as_a_whole)
{
	struct mp_trial_block good = block_of(1, 0.5), little = good, alone = good, timeless = good;

	little.counts[0] = 10;
	little.counts[1] = 10;
	alone.processes = 0;
	timeless.cpu_s = 0;
	ck_assert_int_eq(add(&good, &little), 0);
	ck_assert_int_eq(add(&little, &good), 0);
	ck_assert_int_eq(add(&good, &alone), 0);
	ck_assert_int_eq(add(&timeless, &good), 0);
	ck_assert_int_ge(mp_trial_draw(trial, true), 0);
	mp_trial_abandon(trial);
	mp_trial_abandon(trial);
	mp_trial_result(trial, &result);
	ck_assert_uint_eq(result.nr_pairs, 0);
	ck_assert_uint_eq(result.nr_dropped, 5);
	ck_assert_double_eq(result.speedup, 1);
	ck_assert(result.lowest == 0 && isinf(result.highest));
}

TEST(trial_draws_once)
{
	const struct mp_trial_block blocks[2] = {block_of(1, 0.5), block_of(1, 0.5)};

	ck_assert_int_eq(mp_trial_drawn(trial), -1);
	ck_assert_int_eq(mp_trial_add_pair(trial, blocks), -EINVAL);
	ck_assert_int_eq(mp_trial_draw(trial, true), 1);
	ck_assert_int_eq(mp_trial_draw(trial, false), 1);
	ck_assert_int_eq(mp_trial_drawn(trial), 1);
	ck_assert_int_eq(mp_trial_add_pair(trial, blocks), 0);
	ck_assert_int_eq(mp_trial_drawn(trial), -1);
	ck_assert_int_eq(mp_trial_draw(trial, false), 0);
}

TEST(trial_refuses_what_is_no_block)
{
	const struct mp_trial_block good = block_of(1, 0.5);
	struct mp_trial_block bad[5];

	for (int i = 0; i < 5; i++)
		bad[i] = good;
	bad[0].cpu_s = NAN;
	bad[1].cpu_s = -1;
	bad[2].cpu_s = INFINITY;
	bad[3].crashes = bad[3].processes + 1;
	bad[4].counts[1] = UINT64_MAX;
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(add(&good, &bad[i]), -EINVAL);
		ck_assert_int_eq(add(&bad[i], &good), -EINVAL);
	}
	ck_assert_int_eq(mp_trial_drawn(trial), 1);
	ck_assert_int_eq(add(&good, &good), 0);
}

/* The most different blocks that are allowed. */
TEST(trial_knows_no_infinite_ratio)
{
	const struct mp_trial_config one = {
		.alpha = MP_ALPHA, .nr_counters = 2, .weights = {1e-30, 1e30}, .max_pairs = 3};
	const struct mp_trial_block little = {.cpu_s = 1e-30, .counts = {0, UINT64_C(1) << 53}};
	const struct mp_trial_block much = {.cpu_s = 1e30, .counts = {1, 0}};

	teardown();
	ck_assert_int_eq(mp_trial_new(&one, &trial), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(add(&much, &little), 0);
	mp_trial_result(trial, &result);
	ck_assert_uint_eq(result.nr_pairs, 3);
	ck_assert(isfinite(result.speedup) && result.speedup > 1e100);
}

TEST(trial_refuses_what_is_no_config)
{
	struct mp_trial_config bad[9];
	struct mp_trial *none;

	for (int i = 0; i < 9; i++)
		bad[i] = config;
	bad[0].alpha = 0;
	bad[1].alpha = NAN;
	bad[2].nr_counters = 0;
	bad[3].nr_counters = MP_TRIAL_NR_COUNTERS + 1;
	bad[4].weights[1] = 0;
	bad[5].weights[1] = NAN;
	bad[6].least_work = -1;
	bad[7].max_pairs = 0;
	bad[8].max_pairs = MP_TRIAL_MAX_PAIRS + 1;
	for (int i = 0; i < 9; i++) {
		ck_assert_int_eq(mp_trial_new(&bad[i], &none), -EINVAL);
		ck_assert_ptr_null(none);
	}
}

/* Without a meter, the unit of work is any number. */
TEST(trial_with_another_unit_of_work)
{
	const struct mp_trial_config one = {
		.alpha = MP_ALPHA, .nr_counters = 1, .weights = {1}, .max_pairs = 100};

	teardown();
	ck_assert_int_eq(mp_trial_new(&one, &trial), 0);
	for (int i = 0; mp_trial_verdict(trial) == MP_TRIAL_RUNNING; i++) {
		struct mp_trial_block original = {.cpu_s = 2 + i % 2,
						  .counts = {200 + 100 * (i % 2)}};
		struct mp_trial_block new = {.cpu_s = 2 + i % 2, .counts = {220 + 110 * (i % 2)}};

		ck_assert_int_eq(add(&original, &new), 0);
	}
	mp_trial_result(trial, &result);
	ck_assert_int_eq(result.verdict, MP_TRIAL_FASTER);
	ck_assert_double_eq_tol(result.speedup, 1.1, 1e-9);
}

/* All trials that a machine ever begins share one alpha. */
TEST(trial_alphas_add_up)
{
	double sum = 0;

	for (uint64_t k = 1; k <= 1000000; k++) {
		ck_assert(mp_trial_alpha(k) > mp_trial_alpha(k + 1));
		sum += mp_trial_alpha(k);
	}
	ck_assert(sum <= MP_ALPHA);
	ck_assert_double_eq_tol(sum, MP_ALPHA, MP_ALPHA / 1000);
	ck_assert(mp_trial_alpha(0) == mp_trial_alpha(1));
	ck_assert(mp_trial_alpha(UINT64_MAX) > 0);
	/* The tenth one needs few pairs more than the first one. */
	ck_assert(mp_trial_alpha(1) < 4 * mp_trial_alpha(10));
}

#define NR_ORDERS_LOG 12

/*
 * If the version does not matter, each exchange of a pair's names is as likely as not. So over all
 * 4,096 ways to name the blocks of twelve pairs, whatever is in them, no verdict may come more
 * often than it is promised. _i: the seed of what is in them.
 */
TEST_EACH(trial_is_valid_over_all_orders, 6)
{
	size_t nr[MP_NR_TRIAL_VERDICTS] = {0}, nr_unlike = 0;
	struct mp_trial_block blocks[NR_ORDERS_LOG][2];
	struct me_noise_source noise;

	me_noise_init(&noise, ME_NOISE_HEAVY, (uint64_t)_i);
	for (int i = 0; i < NR_ORDERS_LOG; i++)
		for (int j = 0; j < 2; j++) {
			blocks[i][j] =
				block_of(exp(fmin(50, 5 * me_noise_next(&noise))) * (1 + 0.3 * j),
					 0.2 + (_i % 2 ? 0.5 * j : 0));
			blocks[i][j].crashes = _i % 3 == 0 ? (j ? 3 : 1) : 0;
		}
	for (unsigned int order = 0; order < 1u << NR_ORDERS_LOG; order++) {
		teardown();
		setup();
		for (int i = 0; i < NR_ORDERS_LOG && mp_trial_verdict(trial) == MP_TRIAL_RUNNING;
		     i++) {
			int swap = order >> i & 1;

			ck_assert_int_eq(add(&blocks[i][swap], &blocks[i][!swap]), 0);
		}
		mp_trial_result(trial, &result);
		nr[result.verdict]++;
		nr_unlike += result.unlike >= 0;
	}
	ck_assert_double_le((double)nr[MP_TRIAL_FASTER], MP_ALPHA / 2 * (1u << NR_ORDERS_LOG));
	ck_assert_double_le((double)nr[MP_TRIAL_SLOWER], MP_ALPHA / 2 * (1u << NR_ORDERS_LOG));
	ck_assert_double_le((double)nr[MP_TRIAL_MUCH_SLOWER],
			    MP_TRIAL_HARM_ALPHA * (1u << NR_ORDERS_LOG));
	ck_assert_double_le((double)nr[MP_TRIAL_CRASHES],
			    MP_TRIAL_HARM_ALPHA * (1u << NR_ORDERS_LOG));
	ck_assert_double_le((double)nr_unlike, MP_TRIAL_UNLIKE_ALPHA * (1u << NR_ORDERS_LOG));
}

static struct me_trial_simulation simulated(enum me_use use, enum me_noise noise, double effect,
					    double sd, size_t nr_trials, uint32_t max_pairs)
{
	struct me_trial_simulation sim = {
		.use = use,
		.noise = noise,
		.noise_scale = 100 * sd,
		.effect = effect,
		.alpha = MP_ALPHA,
		.nr_trials = nr_trials,
		.max_pairs = max_pairs,
		.seed = 1 + (uint64_t)use * 1000 + (uint64_t)noise,
	};

	ck_assert_int_eq(me_trial_simulate(&sim), 0);
	return sim;
}

/*
 * Equal versions, whatever the noise and the use: of 40 trials of each, few claim a difference. _i:
 * the use.
 */
TEST_EACH(trial_of_equal_versions, ME_USE_INSIDER)
{
	size_t faster = 0, slower = 0, covered = 0;

	for (int noise = 0; noise < ME_NR_NOISES; noise++) {
		struct me_trial_simulation sim =
			simulated((enum me_use)_i, (enum me_noise)noise, 0, 0.1, 40, 100);

		faster += sim.nr[MP_TRIAL_FASTER];
		slower += sim.nr[MP_TRIAL_SLOWER] + sim.nr[MP_TRIAL_MUCH_SLOWER];
		covered += sim.nr_covered;
		ck_assert_uint_le(sim.nr_unlike, 2);
	}
	/* 1 % of 320 is 3.2 */
	ck_assert_msg(faster + slower <= 8, "%zu, %zu", faster, slower);
	ck_assert_uint_ge(covered, 312);
}

/* A user who follows the version: the work is called unlike, and nothing is said of times. */
TEST_EACH(trial_of_unlike_work, 3)
{
	static const double effects[] = {-0.03, 0, 0.03};
	struct me_trial_simulation sim =
		simulated(ME_USE_INSIDER, ME_NOISE_GAUSSIAN, effects[_i], 0.05, 40, 60);

	ck_assert_uint_eq(sim.nr_unlike, 40);
	ck_assert_uint_eq(sim.nr[MP_TRIAL_UNDECIDED], 40);
}

TEST_EACH(trial_never_takes_a_slower_version, ME_USE_INSIDER)
{
	struct me_trial_simulation sim =
		simulated((enum me_use)_i, ME_NOISE_GAUSSIAN, log(0.97), 0.05, 100, 200);

	ck_assert_uint_eq(sim.nr[MP_TRIAL_FASTER], 0);
	ck_assert_uint_gt(sim.nr[MP_TRIAL_SLOWER], 50);
}

/*
 * Kinds of work of which the counters tell little: pairs of two kinds count less. All trials end within 300 pairs, half
 * within 80; if such pairs count as others do, a quarter does not end within 400.
 */
TEST(trial_of_kinds_of_work)
{
	struct me_trial_simulation sim =
		simulated(ME_USE_KINDS, ME_NOISE_GAUSSIAN, log(1.03), 0.02, 100, 300);

	ck_assert_uint_ge(sim.nr[MP_TRIAL_FASTER], 97);
	ck_assert_uint_le(sim.median_pairs, 80);
}

/*
 * Three per cent, where the noise of a pair is 10 %: half of the trials find it within 150 pairs.
 */
TEST(trial_finds_three_per_cent)
{
	struct me_trial_simulation sim =
		simulated(ME_USE_STEADY, ME_NOISE_GAUSSIAN, log(1.03), 0.1 / M_SQRT2, 100, 400);

	ck_assert_uint_ge(sim.nr[MP_TRIAL_FASTER], 97);
	ck_assert_uint_le(sim.median_pairs, 150);
	ck_assert_uint_eq(sim.nr[MP_TRIAL_SLOWER] + sim.nr[MP_TRIAL_EQUAL_SPEED], 0);
}
