// SPDX-License-Identifier: Apache-2.0
/*
 * test_sequential_test - the sequential test is fair by arithmetic, keeps its error rate in
 * simulation, and still finds real differences. Seeds are fixed, so every run gives the same
 * numbers.
 */
#include <math.h>

#include "tests/support/audits/audit_simulate.h"
#include "libprof/audit/sequential_test.h"
#include "tests/unit/suite.h"

#define ALPHA 0.01

static void add_all(struct mp_seq *seq, const double *d, size_t nr)
{
	size_t i;

	mp_seq_init(seq, ALPHA);
	for (i = 0; i < nr; i++)
		ck_assert_int_eq(mp_seq_add(seq, d[i]), 0);
}

/*
 * Under the null hypothesis, all sign patterns of given magnitudes are equally likely. So the
 * mean capital over all patterns must be exactly 1. _i: the kind.
 */
TEST_EACH(sequential_is_a_fair_game, 2)
{
	static const double size[] = {0.011, 0.002, 0.3, 0.0007, 0.01, 0.009,
				      0.02,  5.0,   0.0, 0.004,	 0.1,  0.013};
	enum {
		N = sizeof(size) / sizeof(size[0])
	};
	double up = 0, down = 0, pool_up = 0, pool_down = 0;
	unsigned int pattern, i;

	for (pattern = 0; pattern < 1u << N; pattern++) {
		double d[N];
		AUTO(mp_seq_fini) struct mp_seq seq = {0};

		for (i = 0; i < N; i++)
			d[i] = pattern >> i & 1 ? size[i] : -size[i];
		mp_seq_init_kind(&seq, (enum mp_seq_kind)_i, ALPHA);
		for (i = 0; i < N; i++)
			ck_assert_int_eq(mp_seq_add(&seq, d[i]), 0);
		up += mp_seq_capital(&seq, seq.up) / (1u << N);
		down += mp_seq_capital(&seq, seq.down) / (1u << N);
		pool_up += mp_seq_pool_capital(&seq, seq.up) / (1u << N);
		pool_down += mp_seq_pool_capital(&seq, seq.down) / (1u << N);
	}
	ck_assert_double_eq_tol(up, 1, 1e-9);
	ck_assert_double_eq_tol(down, 1, 1e-9);
	ck_assert_double_eq_tol(pool_up, 1, 1e-9);
	ck_assert_double_eq_tol(pool_down, 1, 1e-9);
}

TEST(sequential_decides_by_eight_pairs_of_one_sign_and_not_before)
{
	/* the last difference is small, so only its sign matters */
	static const double d[] = {0.11, 0.05, 0.14, 0.08, 0.1, 0.02, 0.09, 0.004};
	enum {
		N = sizeof(d) / sizeof(d[0])
	};
	AUTO(mp_seq_fini) struct mp_seq seq = {0};
	double lo, hi;

	/*
	 * a fair coin gives seven equal faces once in 64 times, which is too often; eight, once
	 * in 128
	 */
	ck_assert_uint_eq(mp_seq_least_pairs(ALPHA), N);
	add_all(&seq, d, N - 1);
	ck_assert_int_eq(seq.verdict, MP_SEQ_UNDECIDED);
	mp_seq_interval(&seq, &lo, &hi);
	ck_assert(isinf(lo) && isinf(hi));
	ck_assert_int_eq(mp_seq_add(&seq, d[N - 1]), 0);
	ck_assert_int_eq(seq.verdict, MP_SEQ_POSITIVE);
	mp_seq_interval(&seq, &lo, &hi);
	ck_assert(lo > 0 && lo <= 0.004 && hi >= 0.14 && hi < 0.2);
}

/* One pair with the other sign needs more pairs, but does not prevent the claim. */
TEST(sequential_forgives_a_wrong_sign)
{
	AUTO(mp_seq_fini) struct mp_seq seq = {0};
	size_t i;

	mp_seq_init(&seq, ALPHA);
	for (i = 0; i < 20 && seq.verdict == MP_SEQ_UNDECIDED; i++)
		ck_assert_int_eq(mp_seq_add(&seq, i == 3 ? -0.02 : 0.1), 0);
	ck_assert_int_eq(seq.verdict, MP_SEQ_POSITIVE);
	ck_assert_uint_gt(seq.decided_at, 8);
}

TEST(sequential_treats_both_directions_alike)
{
	static const double d[] = {0.02, 0.03, 0.01, 0.025, 0.02, 0.022, 0.03,
				   0.02, 0.01, 0.02, 0.03,  0.02, 0.021, 0.019};
	enum {
		N = sizeof(d) / sizeof(d[0])
	};
	double negated[N], lo, hi, nlo, nhi;
	struct mp_seq seq, neg;
	int i;

	for (i = 0; i < N; i++)
		negated[i] = -d[i];
	add_all(&seq, d, N);
	add_all(&neg, negated, N);
	ck_assert_int_eq(seq.verdict, MP_SEQ_POSITIVE);
	ck_assert_int_eq(neg.verdict, MP_SEQ_NEGATIVE);
	ck_assert_uint_eq(seq.decided_at, neg.decided_at);
	mp_seq_interval(&seq, &lo, &hi);
	mp_seq_interval(&neg, &nlo, &nhi);
	ck_assert_double_eq_tol(lo, -nhi, 1e-9);
	ck_assert_double_eq_tol(hi, -nlo, 1e-9);
	ck_assert_double_eq_tol(mp_seq_estimate(&seq), -mp_seq_estimate(&neg), 1e-12);
	mp_seq_fini(&seq);
	mp_seq_fini(&neg);
}

TEST(sequential_verdict_stays)
{
	AUTO(mp_seq_fini) struct mp_seq seq = {0};
	size_t at, i;

	mp_seq_init(&seq, ALPHA);
	for (i = 0; i < 20; i++)
		ck_assert_int_eq(mp_seq_add(&seq, 0.05), 0);
	at = seq.decided_at;
	ck_assert_int_eq(seq.verdict, MP_SEQ_POSITIVE);
	for (i = 0; i < 100; i++)
		ck_assert_int_eq(mp_seq_add(&seq, -0.05), 0);
	ck_assert_int_eq(seq.verdict, MP_SEQ_POSITIVE);
	ck_assert_uint_eq(seq.decided_at, at);
}

/* The interval and the verdict must agree, since both come from the same test. */
TEST(sequential_interval_leaves_out_zero_if_and_only_if_decided)
{
	uint64_t seed;

	for (seed = 0; seed < 40; seed++) {
		struct me_noise_source src;
		AUTO(mp_seq_fini) struct mp_seq seq = {0};
		double lo, hi;
		int i;

		me_noise_init(&src, ME_NOISE_GAUSSIAN, seed);
		mp_seq_init(&seq, ALPHA);
		for (i = 0; i < 60; i++) {
			double shift = 0.0005 * ((double)seed - 20);
			double d = me_noise_next(&src) - me_noise_next(&src) + shift;

			ck_assert_int_eq(mp_seq_add(&seq, d), 0);
		}
		mp_seq_interval(&seq, &lo, &hi);
		ck_assert_int_eq(lo > 0, seq.verdict == MP_SEQ_POSITIVE);
		ck_assert_int_eq(hi < 0, seq.verdict == MP_SEQ_NEGATIVE);
		if (lo < hi) {
			ck_assert(mp_seq_holds(&seq, (lo + hi) / 2));
			ck_assert(!mp_seq_holds(&seq, lo - 1e-6));
			ck_assert(!mp_seq_holds(&seq, hi + 1e-6));
		}
	}
}

TEST(sequential_interval_moves_with_the_effect)
{
	struct me_noise_source src;
	struct mp_seq seq, moved;
	double lo, hi, mlo, mhi;
	int i;

	me_noise_init(&src, ME_NOISE_HEAVY, 7);
	mp_seq_init(&seq, ALPHA);
	mp_seq_init(&moved, ALPHA);
	for (i = 0; i < 50; i++) {
		double d = me_noise_next(&src);

		ck_assert_int_eq(mp_seq_add(&seq, d), 0);
		ck_assert_int_eq(mp_seq_add(&moved, d + 0.25), 0);
	}
	mp_seq_interval(&seq, &lo, &hi);
	mp_seq_interval(&moved, &mlo, &mhi);
	ck_assert_double_eq_tol(mlo - lo, 0.25, 1e-9);
	ck_assert_double_eq_tol(mhi - hi, 0.25, 1e-9);
	mp_seq_fini(&seq);
	mp_seq_fini(&moved);
}

TEST(sequential_survives_differences_that_do_not_vary)
{
	AUTO(mp_seq_fini) struct mp_seq seq = {0};
	double lo, hi;
	int i;

	mp_seq_init(&seq, ALPHA);
	for (i = 0; i < 50; i++)
		ck_assert_int_eq(mp_seq_add(&seq, 0.0), 0);
	ck_assert_int_eq(seq.verdict, MP_SEQ_UNDECIDED);
	mp_seq_interval(&seq, &lo, &hi);
	ck_assert(lo <= 0 && hi >= 0 && lo > -0.02 && hi < 0.02);
}

TEST(sequential_refuses_what_is_no_number)
{
	AUTO(mp_seq_fini) struct mp_seq seq = {0};

	mp_seq_init(&seq, ALPHA);
	ck_assert_int_eq(mp_seq_add(&seq, NAN), -EINVAL);
	ck_assert_int_eq(mp_seq_add(&seq, INFINITY), -EINVAL);
	ck_assert_uint_eq(seq.nr, 0);
	ck_assert_double_eq(mp_seq_estimate(&seq), 0);
}

static struct me_simulation simulated(enum me_noise noise, double effect, size_t max_pairs)
{
	struct me_simulation sim = {
		.noise = noise,
		.effect = effect,
		.alpha = ALPHA,
		.nr_audits = 20000,
		.max_pairs = max_pairs,
		.seed = 20,
	};

	ck_assert_int_eq(me_simulate(&sim), 0);
	return sim;
}

/*
 * The promised error rate: of 20,000 audits of a program against itself, at most 1 % claim a
 * difference, checked after each of 64 pairs. _i: the kind of noise.
 */
TEST_EACH(sequential_claims_nothing_of_a_program_and_itself, ME_NR_NOISES)
{
	struct me_simulation sim = simulated((enum me_noise)_i, 0, 64);

	ck_assert_msg(sim.nr_positive + sim.nr_negative <= 200, "%s: %zu + %zu false claims",
		      me_noise_name(sim.noise), sim.nr_positive, sim.nr_negative);
}

TEST_EACH(sequential_interval_holds_the_effect, ME_NR_NOISES)
{
	struct me_simulation sim = simulated((enum me_noise)_i, 0.02, 64);

	ck_assert_msg(sim.nr_covered >= 19800, "%s: %zu intervals hold the effect",
		      me_noise_name(sim.noise), sim.nr_covered);
	/* a wrong claim is an interval that does not contain the effect */
	ck_assert_uint_le(sim.nr_negative, 200);
}

/*
 * The required power: a difference of 10 % with 3 % noise per run is found within eight pairs
 * in nine of ten audits. No sign-based test is better, because all eight signs must agree.
 */
TEST(sequential_sees_ten_per_cent_at_three_within_eight_pairs)
{
	struct me_simulation sim = {.noise = ME_NOISE_GAUSSIAN,
				    .effect = log(1.1),
				    .sd = 0.03,
				    .alpha = ALPHA,
				    .nr_audits = 20000,
				    .max_pairs = 8,
				    .seed = 20};

	ck_assert_int_eq(me_simulate(&sim), 0);
	ck_assert_msg(sim.nr_within[0] >= 18000, "%zu", sim.nr_within[0]);
	sim.effect = -sim.effect;
	ck_assert_int_eq(me_simulate(&sim), 0);
	ck_assert_msg(sim.nr_within[0] >= 18000, "%zu", sim.nr_within[0]);
	ck_assert_uint_eq(sim.nr_within[0], sim.nr_negative);
}

TEST(sequential_sees_five_per_cent_soon)
{
	struct me_simulation sim = simulated(ME_NOISE_GAUSSIAN, 0.05, 200);

	ck_assert_uint_eq(sim.nr_positive, 20000);
	ck_assert(sim.mean_pairs < 8.1);
	sim = simulated(ME_NOISE_GAUSSIAN, -0.05, 200);
	ck_assert_uint_eq(sim.nr_negative, 20000);
}

TEST(sequential_sees_an_effect_as_large_as_the_noise)
{
	struct me_simulation sim = simulated(ME_NOISE_GAUSSIAN, 0.01, 200);

	ck_assert_uint_ge(sim.nr_positive, 19900);
}

/* Effects of a fifth of the noise: those who expect them need less than two thirds of the pairs. */
TEST(sequential_everyday_sees_small_effects_sooner)
{
	size_t pairs[2] = {0};

	for (int kind = MP_SEQ_RUNS; kind <= MP_SEQ_EVERYDAY; kind++)
		for (uint64_t seed = 0; seed < 20; seed++) {
			struct me_noise_source src;
			AUTO(mp_seq_fini) struct mp_seq seq = {0};

			me_noise_init(&src, ME_NOISE_GAUSSIAN, seed);
			mp_seq_init_kind(&seq, (enum mp_seq_kind)kind, ALPHA);
			while (seq.verdict == MP_SEQ_UNDECIDED && seq.nr < 3000)
				ck_assert_int_eq(mp_seq_add(&seq, 10 * me_noise_next(&src) + 0.02),
						 0);
			pairs[kind] += seq.nr;
		}
	ck_assert_msg(3 * pairs[MP_SEQ_EVERYDAY] < 2 * pairs[MP_SEQ_RUNS], "%zu, %zu",
		      pairs[MP_SEQ_RUNS], pairs[MP_SEQ_EVERYDAY]);
}

/*
 * Checks that the simulation can find errors: a t test repeated after each pair, at a nominal 1
 * %.
 */
TEST(simulation_catches_a_repeated_t_test)
{
	size_t audit, nr_claims = 0;

	for (audit = 0; audit < 1000; audit++) {
		struct me_noise_source src;
		double sum = 0, squares = 0;
		int n;

		me_noise_init(&src, ME_NOISE_GAUSSIAN, 1000 + audit);
		for (n = 1; n <= 200; n++) {
			double d = me_noise_next(&src) - me_noise_next(&src), var;

			sum += d;
			squares += d * d;
			var = n > 1 ? (squares - sum * sum / n) / (n - 1) : 0;
			/* from ten pairs on, t is almost Gaussian */
			if (n >= 10 && fabs(sum) / sqrt(n * var) > 3.25) {
				nr_claims++;
				break;
			}
		}
	}
	ck_assert_msg(nr_claims > 15, "%zu claims", nr_claims);
}

/*
 * Checks that the coin is needed: A first in every pair, on a machine whose speed varies in
 * step with the pairs.
 */
TEST(simulation_catches_a_fixed_order)
{
	size_t audit, nr_claims = 0;

	for (audit = 0; audit < 100; audit++) {
		struct me_noise_source src;
		AUTO(mp_seq_fini) struct mp_seq seq = {0};
		int n;

		me_noise_init(&src, ME_NOISE_LOCKSTEP, audit);
		mp_seq_init(&seq, ALPHA);
		for (n = 0; n < 50; n++) {
			double a = me_noise_next(&src), b = me_noise_next(&src);

			ck_assert_int_eq(mp_seq_add(&seq, a - b), 0);
		}
		nr_claims += seq.verdict != MP_SEQ_UNDECIDED;
	}
	ck_assert_uint_eq(nr_claims, 100);
}
