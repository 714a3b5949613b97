// SPDX-License-Identifier: Apache-2.0
/* test_enough - what one half of a profile is worth on the other half. */
#include "editor/base/mix.h"
#include "libprof/trial/enough.h"
#include "tests/unit/suite.h"

/* Three blocks: two ways out, two ways out, one way. */
static const uint32_t group[] = {1, 1, 4, 4, 7};
static const bool taken[] = {true, false, false, true, true};
static const struct mp_flow flow = {.nr_edges = 5, .group = group, .taken = taken};
static struct mp_enough e;

/* Both halves know all: every usual way falls through. */
TEST(enough_of_equal_halves)
{
	static const uint64_t counts[] = {90, 10, 5, 45, 50};

	ck_assert_int_eq(mp_enough_counts(&flow, counts, counts, &e), 0);
	/* 185 are taken in the original, and 15 in the layout */
	ck_assert_double_eq_tol(e.saving, 100.0 * 170 / 185, 1e-9);
	ck_assert_double_eq(e.loss, 0);
	ck_assert_double_eq(e.more, 0);
	ck_assert_double_eq_tol(e.coverage, 1, 1e-12);
	ck_assert_double_eq_tol(e.agreement, 1, 1e-12);
}

/* The halves call different ways of the second block usual. */
TEST(enough_of_halves_that_disagree)
{
	static const uint64_t a[] = {90, 10, 10, 40, 50}, b[] = {90, 10, 30, 20, 50};

	ck_assert_int_eq(mp_enough_counts(&flow, a, b, &e), 0);
	/*
	 * a's way on b: 30 instead of 20 are taken, of b's 160; b's way on a: 40 instead of 10, of
	 * a's 180
	 */
	ck_assert_double_eq_tol(e.loss, (100.0 * 10 / 160 + 100.0 * 30 / 180) / 2, 1e-9);
	ck_assert(e.more > 0 && e.more < e.loss);
	ck_assert_double_eq_tol(e.agreement, 150 / 200.0, 1e-12);
	ck_assert_double_eq_tol(e.coverage, 1, 1e-12);
}

/* A block that the teacher did not see keeps the original's way: here, the worse one. */
TEST(enough_of_a_half_that_saw_less)
{
	static const uint64_t a[] = {90, 10, 0, 0, 0}, b[] = {90, 10, 5, 45, 50};

	ck_assert_int_eq(mp_enough_counts(&flow, a, b, &e), 0);
	ck_assert_double_eq_tol(e.loss, (100.0 * (40 + 50) / 185 + 0) / 2, 1e-9);
	ck_assert_double_eq_tol(e.coverage, (100 / 200.0 + 1) / 2, 1e-12);
}

TEST(enough_where_taken_branches_are_not_known)
{
	static const uint64_t a[] = {90, 10, 0, 0, 0}, b[] = {90, 10, 5, 45, 50};
	const struct mp_flow unknown = {.nr_edges = 5, .group = group};

	ck_assert_int_eq(mp_enough_counts(&unknown, a, b, &e), 0);
	ck_assert_double_eq_tol(e.loss, 100.0 * 95 / 200 / 2, 1e-9);
}

TEST(enough_needs_counts_in_both_halves)
{
	static const uint64_t counts[] = {90, 10, 5, 45, 50}, none[5];
	static const uint32_t mixed[] = {4, 4, 1, 1, 7};
	const struct mp_flow wrong = {.nr_edges = 5, .group = mixed};

	ck_assert_int_eq(mp_enough_counts(&flow, counts, none, &e), -EAGAIN);
	ck_assert_int_eq(mp_enough_counts(&flow, none, counts, &e), -EAGAIN);
	ck_assert_int_eq(mp_enough_counts(&wrong, counts, counts, &e), -EINVAL);
}

#define NR_BLOCKS 2000
static uint32_t blocks[2 * NR_BLOCKS];
static bool second[2 * NR_BLOCKS];
static uint64_t half[2][2 * NR_BLOCKS];
static const struct mp_flow program = {.nr_edges = 2 * NR_BLOCKS, .group = blocks, .taken = second};

/*
 * @nr samples of a program whose blocks have a usual way each, taken in the original, that nine of
 * ten go.
 */
static void sample(int nr)
{
	uint64_t state = 1;

	memset(half, 0, sizeof(half));
	for (uint32_t i = 0; i < 2 * NR_BLOCKS; i++) {
		blocks[i] = i / 2;
		second[i] = i % 2;
	}
	for (int i = 0; i < nr; i++) {
		uint64_t block = me_next_random(&state) % NR_BLOCKS;

		half[i % 2][2 * block + (me_next_random(&state) % 10 > 0)]++;
	}
}

TEST(enough_counts_of_many_samples)
{
	sample(4000);
	ck_assert_int_eq(mp_enough_counts(&program, half[0], half[1], &e), 0);
	ck_assert_double_gt(e.more, MP_ENOUGH_MORE);
	sample(200000);
	ck_assert_int_eq(mp_enough_counts(&program, half[0], half[1], &e), 0);
	ck_assert_double_lt(e.more, MP_ENOUGH_MORE);
	/* nine of ten branches were taken, and one of ten is */
	ck_assert_double_eq_tol(e.saving, 100 * 8 / 9.0, 1);
}
