// SPDX-License-Identifier: Apache-2.0
/*
 * test_proportion - tests of shares, compared with published values and with complete
 * enumeration.
 */
#include <math.h>

#include "daemon/diff/proportion.h"
#include "tests/unit/suite.h"

static void expect(double got, double want, double tolerance)
{
	ck_assert_msg(fabs(got - want) <= tolerance, "%.10g, not %.10g", got, want);
}

TEST(proportion_that_is_the_same_is_no_change)
{
	expect(md_proportion_p(10, 100, 10, 100), 1, 1e-12);
	expect(md_proportion_p(0, 100, 0, 200), 1, 0);
	expect(md_proportion_p(100, 100, 200, 200), 1, 0);
	expect(md_proportion_p(0, 0, 5, 10), 1, 0);
	expect(md_proportion_p(1, 10, 0, 0), 1, 0);
	expect(md_proportion_p(1000, 10000, 2000, 20000), 1, 1e-9);
}

TEST(proportion_of_few_samples_is_fishers)
{
	/*
	 * The lady tasting tea; a table from textbooks; one in which only the extreme table is
	 * as unlikely.
	 */
	expect(md_proportion_p(3, 4, 1, 4), 34.0 / 70, 1e-9);
	expect(md_proportion_p(8, 10, 1, 6), 0.034965034965, 1e-9);
	expect(md_proportion_p(3, 10, 0, 10), 4.0 / 19, 1e-9);
	expect(md_proportion_p(0, 1, 1, 1), 1, 1e-9);
}

TEST(proportion_of_many_samples_is_normal)
{
	/* z = 3.3806 */
	expect(md_proportion_p(100, 1000, 150, 1000), 0.000723, 2e-6);
	expect(md_proportion_p(500, 1000, 520, 1000), 0.370998, 1e-6);
	ck_assert_double_le(md_proportion_p(1, 1000000, 500000, 1000000), 1e-20);
	ck_assert_double_gt(md_proportion_p(0, 1u << 31, 1u << 30, 1u << 31), 0);
}

static double log_choose(double n, double k)
{
	return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/* Enumerates all tables. */
static double enumerate(int x1, int n1, int x2, int n2)
{
	int k = x1 + x2, low = k > n2 ? k - n2 : 0, high = k < n1 ? k : n1;
	double tail = 0, all = log_choose(n1 + n2, k);
	double seen = exp(log_choose(n1, x1) + log_choose(n2, x2) - all);

	for (int i = low; i <= high; i++) {
		double p = exp(log_choose(n1, i) + log_choose(n2, k - i) - all);

		if (p <= seen * (1 + 1e-7))
			tail += p;
	}
	return fmin(tail, 1);
}

TEST(proportion_agrees_with_enumeration)
{
	int nr = 0;

	for (int n1 = 1; n1 < 40; n1 += 3)
		for (int n2 = 1; n2 < 3000; n2 = n2 * 3 + 1)
			for (int x1 = 0; x1 <= n1; x1 += 2)
				for (int x2 = 0; x2 <= n2 && x2 < 9; x2++) {
					double p = (double)(x1 + x2) / (n1 + n2);

					/* These use Fisher's test. */
					if (fmin(n1, n2) * fmin(p, 1 - p) >= 10)
						continue;
					nr++;
					expect(md_proportion_p((uint64_t)x1, (uint64_t)n1,
							       (uint64_t)x2, (uint64_t)n2),
					       enumerate(x1, n1, x2, n2), 1e-7);
				}
	ck_assert_int_gt(nr, 1000);
}

TEST(proportion_is_symmetric_and_stays_finite)
{
	const uint64_t n[] = {1, 2, 7, 100, 1u << 20, 1ull << 40, 1ull << 62};

	for (size_t a = 0; a < 7; a++)
		for (size_t b = 0; b < 7; b++)
			for (int i = 0; i < 4; i++)
				for (int k = 0; k < 4; k++) {
					uint64_t x1 = n[a] / 3 * (uint64_t)i;
					uint64_t x2 = n[b] / 3 * (uint64_t)k;
					double p = md_proportion_p(x1, n[a], x2, n[b]);

					ck_assert(p > 0 && p <= 1);
					expect(md_proportion_p(x2, n[b], x1, n[a]), p,
					       1e-9 + 1e-6 * p);
				}
}

TEST(holm_multiplies_by_the_tests_that_are_left)
{
	const double p[] = {0.03, 0.01, 0.5, 0.01, 0.9};
	double a[5];

	ck_assert_int_eq(md_holm_adjust(p, 5, a), 0);
	expect(a[1], 0.05, 1e-12);
	expect(a[3], 0.05, 1e-12); /* 0.04, but never below the value before */
	expect(a[0], 0.09, 1e-12);
	expect(a[2], 1, 1e-12);
	expect(a[4], 1, 1e-12);
	ck_assert_int_eq(md_holm_adjust(p, 0, a), 0);
	ck_assert_int_eq(md_holm_adjust(p, 1, a), 0);
	expect(a[0], 0.03, 1e-12);
}
