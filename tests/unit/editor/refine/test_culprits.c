// SPDX-License-Identifier: Apache-2.0
/*
 * test_culprits - simulated samples of two versions: what rose is named first, and nothing is named
 * where nothing rose, whatever the runs' own noise.
 */
#include <math.h>

#include "editor/refine/culprits.h"
#include "editor/refine/student.h"
#include "tests/unit/suite.h"

static uint64_t state = 88172645463325252u;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double gaussian(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

static uint64_t poisson(double mean)
{
	double sum = 0, n = 0;

	if (mean > 200)
		return (uint64_t)fmax(0, round(mean + sqrt(mean) * gaussian()));
	while ((sum -= log(uniform())) < mean)
		n++;
	return (uint64_t)n;
}

enum {
	NR_FUNCS = 120,
	NR_RUNS = 12
};

struct noise {
	double run, function; /* of logarithms: of whole runs, of a function in a run */
};

static bool changed[NR_RUNS];
static uint64_t counts[NR_RUNS * NR_FUNCS];

/* Function f has some 2000 / (f + 1) samples in a run; @slow takes @factor times as long. */
static struct me_samples simulate(size_t nr_runs, struct noise noise, uint32_t slow, double factor)
{
	for (size_t run = 0; run < nr_runs; run++) {
		double speed = exp(noise.run * gaussian());

		changed[run] = run % 2;
		for (uint32_t f = 0; f < NR_FUNCS; f++) {
			double mean = 2000.0 / (f + 1) * speed * exp(noise.function * gaussian());

			if (changed[run] && f == slow)
				mean *= factor;
			counts[run * NR_FUNCS + f] = poisson(mean);
		}
	}
	return (struct me_samples){nr_runs, NR_FUNCS, changed, counts};
}

TEST(tail_is_that_of_tables)
{
	ck_assert_double_eq_tol(me_student_tail(0, 5), 0.5, 1e-12);
	ck_assert_double_eq_tol(me_student_tail(2.015048, 5), 0.05, 1e-7);
	ck_assert_double_eq_tol(me_student_tail(-2.015048, 5), 0.95, 1e-7);
	ck_assert_double_eq_tol(me_student_tail(4.143700, 10), 0.001, 1e-7);
	ck_assert_double_eq_tol(me_student_tail(1, 1), 0.25, 1e-12);
	ck_assert_double_eq_tol(me_student_tail(1.959964, 1e7), 0.025, 1e-6);
	ck_assert_double_eq_tol(me_student_tail(3, 3), 0.0288344, 1e-6);
}

TEST(nothing_is_named_where_nothing_rose)
{
	static const struct noise noises[] = {{0, 0}, {0.05, 0}, {0.01, 0.05}, {0.1, 0.1}};
	enum {
		NR = 1000
	};

	for (size_t n = 0; n < sizeof(noises) / sizeof(noises[0]); n++) {
		unsigned int false_claims = 0;

		for (unsigned int i = 0; i < NR; i++) {
			struct me_samples samples =
				simulate(i % 2 ? NR_RUNS : 6, noises[n], UINT32_MAX, 1);
			AUTO_FREE struct me_culprit *culprits = NULL;
			size_t nr;

			ck_assert_int_eq(me_culprits_find(&samples, 0.01, &culprits, &nr), 0);
			false_claims += nr > 0;
		}
		/* 1 % are promised; the seed is fixed. */
		ck_assert_msg(false_claims <= NR / 100, "noise %zu: %u of %d", n, false_claims, NR);
	}
}

TEST(what_rose_is_named_first)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < 100; i++) {
		uint32_t slow = i % 20;
		struct me_samples samples =
			simulate(NR_RUNS, (struct noise){0.03, 0.02}, slow, i % 2 ? 1.5 : 10);
		AUTO_FREE struct me_culprit *culprits = NULL;
		size_t nr;

		ck_assert_int_eq(me_culprits_find(&samples, 0.01, &culprits, &nr), 0);
		if (nr && culprits[0].func == slow) {
			found++;
			ck_assert_double_gt(culprits[0].factor, 1.2);
			ck_assert_double_le(culprits[0].p, 0.01);
			ck_assert_uint_gt(culprits[0].after, culprits[0].before);
			ck_assert_double_gt(culprits[0].harm, ME_CULPRIT_LEAST_HARM);
		}
	}
	ck_assert_msg(found >= 95, "%u of 100", found);
}

TEST(most_harmful_comes_first)
{
	AUTO_FREE struct me_culprit *culprits = NULL;
	struct me_samples samples = simulate(8, (struct noise){0, 0}, 0, 1);
	size_t nr;

	for (size_t run = 1; run < 8; run += 2) {
		counts[run * NR_FUNCS + 1] = counts[run * NR_FUNCS + 1] * 2;   /* 1,000 more */
		counts[run * NR_FUNCS + 40] = counts[run * NR_FUNCS + 40] * 9; /* 390 more */
	}
	ck_assert_int_eq(me_culprits_find(&samples, 0.01, &culprits, &nr), 0);
	ck_assert_uint_eq(nr, 2);
	ck_assert_uint_eq(culprits[0].func, 1);
	ck_assert_uint_eq(culprits[1].func, 40);
}

TEST(what_fell_or_hardly_ran_is_not_named)
{
	AUTO_FREE struct me_culprit *culprits = NULL;
	struct me_samples samples = simulate(8, (struct noise){0, 0}, 3, 0.2);
	size_t nr;

	for (size_t run = 0; run < 8; run++)
		counts[run * NR_FUNCS + 7] = run == 1 ? 20 : 0; /* one run, few samples */
	ck_assert_int_eq(me_culprits_find(&samples, 0.01, &culprits, &nr), 0);
	ck_assert_uint_eq(nr, 0);
}

TEST(too_few_runs_are_refused)
{
	struct me_culprit *culprits;
	struct me_samples samples = simulate(5, (struct noise){0, 0}, 3, 2);
	size_t nr;

	ck_assert_int_eq(me_culprits_find(&samples, 0.01, &culprits, &nr), -EINVAL);
	ck_assert_ptr_null(culprits);
}
