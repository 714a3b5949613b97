// SPDX-License-Identifier: Apache-2.0
/*
 * test_program_audit - windows become pairs, pairs become verdicts: each pair that does not count
 * has its reason, the rate of false verdicts is as promised for every kind of noise, and known
 * effects are found with the right sign. Seeds are fixed, so every run gives the same numbers.
 */
#include "libprof/audit/program_audit.h"

#include <math.h>

#include "tests/support/audits/windows.h"
#include "tests/unit/suite.h"

#define ALPHA 0.01

static const struct mp_audit_record first = {.pair = 9,
					     .ticks = 1000,
					     .rounds = 10,
					     .function = 1,
					     .thread = 5,
					     .point = 2,
					     .version = MP_AUDIT_A,
					     .fate = MP_AUDIT_TIMED};
static const struct mp_audit_record second = {.pair = 9,
					      .ticks = 1600,
					      .rounds = 20,
					      .function = 1,
					      .thread = 5,
					      .point = 2,
					      .version = MP_AUDIT_B,
					      .second = 1,
					      .fate = MP_AUDIT_TIMED};

TEST(pair_compares_times_of_a_round)
{
	struct mp_window_pairs *pairs = mp_window_pairs_new(4);
	struct mp_audit_record a = second, b = first;
	struct mp_pair pair;

	ck_assert(!mp_window_pairs_add(pairs, &first, &pair));
	ck_assert(mp_window_pairs_add(pairs, &second, &pair));
	ck_assert_uint_eq(pair.function, 1);
	ck_assert_uint_eq(pair.point, 2);
	ck_assert(!pair.b_first);
	/* 100 ticks a round and 80. */
	ck_assert_double_eq_tol(pair.difference, log(100.0 / 80), 1e-12);
	/* The same with B first. */
	a.version = MP_AUDIT_A;
	b.version = MP_AUDIT_B;
	ck_assert(!mp_window_pairs_add(pairs, &b, &pair));
	ck_assert(mp_window_pairs_add(pairs, &a, &pair));
	ck_assert(pair.b_first);
	ck_assert_double_eq_tol(pair.difference, log(80.0 / 100), 1e-12);
	mp_window_pairs_free(pairs);
}

/* Return: what became of the pair of @a and @b; MP_NR_PAIR_DROPS: it counts. */
static int fate_of(struct mp_audit_record a, struct mp_audit_record b)
{
	struct mp_window_pairs *pairs = mp_window_pairs_new(4);
	const uint64_t *drops = mp_window_pairs_drops(pairs, 1);
	struct mp_pair pair;
	int fate = -1, nr = 0;

	if (mp_window_pairs_add(pairs, &a, &pair) || mp_window_pairs_add(pairs, &b, &pair))
		fate = MP_NR_PAIR_DROPS;
	mp_window_pairs_clear(pairs);
	for (int i = 0; i < MP_NR_PAIR_DROPS; i++)
		if (drops[i]) {
			fate = i;
			nr++;
		}
	ck_assert_int_le(nr, 1);
	mp_window_pairs_free(pairs);
	return fate;
}

TEST(pair_that_does_not_count_has_a_reason)
{
	struct mp_audit_record a = first, b = second;

	ck_assert_int_eq(fate_of(a, b), MP_NR_PAIR_DROPS);
#define WITH(record, member, value, want)                                                          \
	do {                                                                                       \
		record.member = (value);                                                           \
		ck_assert_int_eq(fate_of(a, b), want);                                             \
		a = first;                                                                         \
		b = second;                                                                        \
	} while (0)
	WITH(b, fate, MP_AUDIT_PREEMPTED, MP_PAIR_PREEMPTED);
	WITH(b, fate, MP_AUDIT_ABANDONED, MP_PAIR_ABANDONED);
	WITH(b, fate, MP_AUDIT_SIGNALLED, MP_PAIR_SIGNALLED);
	WITH(a, ticks, 0, MP_PAIR_EMPTY);
	WITH(b, rounds, 0, MP_PAIR_EMPTY);
	WITH(b, version, MP_AUDIT_A, MP_PAIR_WRONG);
	WITH(b, thread, 6, MP_PAIR_WRONG);
	WITH(b, point, 0, MP_PAIR_WRONG);
	/* One of the two windows is missing. */
	WITH(b, pair, 8, MP_PAIR_ALONE);
#undef WITH
}

TEST(pair_of_a_window_that_was_not_timed_needs_no_second)
{
	struct mp_window_pairs *pairs = mp_window_pairs_new(4);
	struct mp_audit_record a = first;
	struct mp_pair pair;

	a.fate = MP_AUDIT_PREEMPTED;
	ck_assert(!mp_window_pairs_add(pairs, &a, &pair));
	mp_window_pairs_clear(pairs);
	ck_assert_uint_eq(mp_window_pairs_drops(pairs, 1)[MP_PAIR_PREEMPTED], 1);
	ck_assert_uint_eq(mp_window_pairs_drops(pairs, 1)[MP_PAIR_ALONE], 0);
	mp_window_pairs_free(pairs);
}

/* Any number of first windows without a second one takes no more memory, and each is counted. */
TEST(pair_that_never_comes_is_counted)
{
	struct mp_window_pairs *pairs = mp_window_pairs_new(4);
	struct mp_audit_record a = first;
	struct mp_pair pair;

	for (uint64_t i = 1; i <= 100000; i++) {
		a.pair = i;
		mp_window_pairs_add(pairs, &a, &pair);
	}
	a.function = 4;
	mp_window_pairs_add(pairs, &a, &pair);
	mp_window_pairs_clear(pairs);
	ck_assert_uint_eq(mp_window_pairs_drops(pairs, 1)[MP_PAIR_ALONE], 100000);
	ck_assert_uint_eq(mp_window_pairs_foreign(pairs), 1);
	mp_window_pairs_free(pairs);
}

/*
 * Under the null hypothesis each pair is as likely to be swapped as not, whatever its times. So the
 * mean capital over all ways to swap is exactly 1, also where pairs are taken together.
 */
TEST(effect_test_is_a_fair_game)
{
	enum {
		N = 12
	};
	double up = 0;

	for (unsigned int swaps = 0; swaps < 1u << N; swaps++) {
		AUTO(mp_seq_fini) struct mp_seq seq = {0};

		mp_seq_init(&seq, ALPHA);
		mp_seq_enter(&seq);
		for (unsigned int i = 0; i < N; i += 3) {
			double sum = 0;

			for (unsigned int k = i; k < i + 3; k++)
				sum += (swaps >> k & 1 ? 1 : -1) * 0.01 * (1 + k * k % 7);
			ck_assert_int_eq(mp_seq_add_noisy(&seq, sum / 3, 1 / sqrt(3)), 0);
			if (i == 3)
				mp_seq_enter(&seq);
		}
		up += mp_seq_capital(&seq, seq.up) / (1u << N);
	}
	ck_assert_double_eq_tol(up, 1, 1e-9);
}

/* Adds at most @nr_pairs pairs of one function. Return: its verdict. */
static enum mp_audit_verdict run(struct mp_program_audit *audit, uint32_t function,
				 enum me_noise noise, double effect, uint64_t seed, size_t nr_pairs)
{
	struct windows w;
	uint32_t decided;

	windows_init(&w, noise, effect, seed);
	for (size_t i = 0; i < nr_pairs && !mp_program_audit_verdict(audit, function); i++) {
		struct mp_audit_record both[2];

		windows_pair(&w, function, 1, i + 1, both);
		for (int k = 0; k < 2; k++) {
			ck_assert_int_eq(mp_program_audit_add(audit, &both[k], &decided), 0);
			ck_assert(decided == UINT32_MAX || decided == function);
		}
	}
	return mp_program_audit_verdict(audit, function);
}

/* 60 audits of 4 functions: at most 4 false ones, where at most 0.6 are expected. */
TEST_EACH(audit_of_equal_versions_keeps_its_promise, ME_NR_NOISES)
{
	int nr_false = 0;

	for (uint64_t a = 0; a < 60; a++) {
		struct mp_program_audit *audit = mp_program_audit_new(4, ALPHA);
		bool wrong = false;

		for (uint32_t f = 0; f < 4; f++)
			wrong |= run(audit, f, (enum me_noise)_i, 0, 7919 * (4 * a + f + 1),
				     1000) != MP_AUDIT_VERDICT_NONE;
		nr_false += wrong;
		mp_program_audit_free(audit);
	}
	ck_assert_int_le(nr_false, 4);
}

TEST_EACH(audit_finds_five_per_cent_with_the_right_sign, ME_NR_NOISES)
{
	struct mp_program_audit *audit = mp_program_audit_new(16, ALPHA);
	struct mp_audit_effect effect;
	int nr_held = 0;

	for (uint32_t f = 0; f < 16; f++) {
		double d = f % 2 ? -0.05 : 0.05;

		ck_assert_int_eq(run(audit, f, (enum me_noise)_i, d, 104729 * (f + 1), 6000),
				 f % 2 ? MP_AUDIT_VERDICT_A : MP_AUDIT_VERDICT_B);
		mp_program_audit_effect(audit, f, true, &effect);
		ck_assert_uint_eq(effect.decided_at, effect.pairs);
		ck_assert(d > 0 ? effect.lowest > 0 : effect.highest < 0);
		nr_held += effect.lowest <= d && d <= effect.highest;
	}
	/* The clock of this noise is too coarse for bounds: the effect moves it by one tick or none. */
	if (_i != ME_NOISE_TICKS)
		ck_assert_int_eq(nr_held, 16);
	mp_program_audit_free(audit);
}

TEST(audit_leaves_decided_functions_alone)
{
	struct mp_program_audit *audit = mp_program_audit_new(2, ALPHA);
	struct mp_audit_effect before, after;
	uint32_t decided;

	mp_program_audit_set_earlier(audit, 1, MP_AUDIT_VERDICT_A);
	ck_assert_int_eq(run(audit, 0, ME_NOISE_GAUSSIAN, 0.1, 3, 6000), MP_AUDIT_VERDICT_B);
	mp_program_audit_effect(audit, 0, true, &before);
	for (uint64_t i = 1; i < 5000; i++) {
		struct mp_audit_record a = first, b = second;

		a.pair = b.pair = 1000000 + i;
		a.function = b.function = i % 2;
		ck_assert_int_eq(mp_program_audit_add(audit, &a, &decided), 0);
		ck_assert_int_eq(mp_program_audit_add(audit, &b, &decided), 0);
		ck_assert_uint_eq(decided, UINT32_MAX);
	}
	mp_program_audit_effect(audit, 0, true, &after);
	ck_assert_uint_eq(before.pairs, after.pairs);
	mp_program_audit_effect(audit, 1, true, &after);
	ck_assert_uint_eq(after.pairs, 0);
	ck_assert(after.earlier);
	ck_assert_int_eq(after.verdict, MP_AUDIT_VERDICT_A);
	ck_assert(isinf(after.lowest) && isinf(after.highest));
	mp_program_audit_free(audit);
}

/*
 * Two timing points: most pairs come from the one where B is slower, but nearly all of the time
 * from the other one. Time decides.
 */
TEST(audit_weighs_timing_points_by_their_time)
{
	struct mp_program_audit *audit = mp_program_audit_new(1, ALPHA);
	struct mp_audit_effect effect;
	struct windows fast, slow;
	uint32_t decided;

	windows_init(&fast, ME_NOISE_GAUSSIAN, -0.05, 11);
	windows_init(&slow, ME_NOISE_GAUSSIAN, 0.05, 12);
	slow.base = 100000;
	for (uint64_t i = 0; i < 40000 && !mp_program_audit_verdict(audit, 0); i++) {
		struct mp_audit_record both[2];
		bool rare = i % 4 == 0;

		windows_pair(rare ? &slow : &fast, 0, 1, i + 1, both);
		for (int k = 0; k < 2; k++) {
			both[k].point = rare;
			ck_assert_int_eq(mp_program_audit_add(audit, &both[k], &decided), 0);
		}
	}
	ck_assert_int_eq(mp_program_audit_verdict(audit, 0), MP_AUDIT_VERDICT_B);
	mp_program_audit_effect(audit, 0, true, &effect);
	ck_assert_uint_eq(effect.nr_points, 2);
	ck_assert_uint_eq(effect.points[0].pairs + effect.points[1].pairs, effect.pairs);
	mp_program_audit_free(audit);
}

/* Numbers of any size, from a file that anybody may have made. */
TEST(audit_survives_any_record)
{
	struct mp_program_audit *audit = mp_program_audit_new(3, ALPHA);
	struct me_noise_source random;
	struct mp_audit_effect effect;
	uint32_t decided;

	me_noise_init(&random, ME_NOISE_GAUSSIAN, 1);
	for (int i = 0; i < 200000; i++) {
		struct mp_audit_record r;
		uint8_t *bytes = (uint8_t *)&r;

		for (size_t k = 0; k < sizeof(r); k++) {
			random.state = random.state * 6364136223846793005u + 1442695040888963407u;
			bytes[k] = (uint8_t)(random.state >> 56);
		}
		r.function %= 4;
		r.pair %= 64;
		r.version %= 3;
		r.second %= 2;
		r.fate %= 2;
		r.thread = 1;
		r.point %= 32;
		ck_assert_int_eq(mp_program_audit_add(audit, &r, &decided), 0);
	}
	for (uint32_t f = 0; f < 3; f++) {
		mp_program_audit_effect(audit, f, true, &effect);
		ck_assert(isfinite(effect.estimate) && effect.lowest <= effect.highest);
		ck_assert_uint_le(effect.nr_points, MP_EFFECT_NR_POINTS);
	}
	ck_assert_uint_gt(mp_program_audit_foreign(audit), 0);
	mp_program_audit_free(audit);
	ck_assert_ptr_null(mp_program_audit_new(0, ALPHA));
	ck_assert_ptr_null(mp_program_audit_new(MP_AUDIT_MAX_FUNCTIONS + 1, ALPHA));
}
