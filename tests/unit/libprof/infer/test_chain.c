// SPDX-License-Identifier: Apache-2.0
/*
 * test_chain - Markov chains that end: the computed visits equal those of a long simulation,
 * even for long loops.
 */
#include "libprof/infer/chain.h"

#include <math.h>

#include "tests/unit/suite.h"

#define MAX 64
#define ANY UINT64_MAX

static uint64_t seed;

static double draw(void)
{
	uint64_t x;

	/* splitmix64 */
	seed += 0x9e3779b97f4a7c15;
	x = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static struct mp_chain *make(uint32_t nr, const struct mp_chain_step *steps, uint32_t nr_steps,
			     const double *leave)
{
	struct mp_chain *chain = NULL;

	ck_assert_msg(!mp_chain_new(nr, steps, nr_steps, leave, ANY, &chain, &err), "%s", err.msg);
	return chain;
}

TEST(chain_of_one_line_visits_all_once)
{
	static const struct mp_chain_step steps[] = {{0, 1, 1}, {1, 2, 1}};
	double start[] = {5, 0, 2}, gain[] = {1, 10, 100};
	struct mp_chain *chain = make(3, steps, 2, (double[]){0, 0, 1});

	mp_chain_visits(chain, start, start);
	ck_assert(start[0] == 5 && start[1] == 5 && start[2] == 7);
	mp_chain_worth(chain, gain, gain);
	ck_assert(gain[0] == 111 && gain[1] == 110 && gain[2] == 100);
	mp_chain_free(chain);
}

/* Computing 1 - (1 - 1e-15) would be wrong by a tenth. */
TEST(chain_is_exact_in_loops_that_hardly_end)
{
	const double out = 1e-15;
	const struct mp_chain_step steps[] = {{0, 1, 1 - out}, {1, 2, 1}, {2, 0, 1}};
	double visits[3];
	struct mp_chain *chain = make(3, steps, 3, (double[]){out, 0, 0});

	mp_chain_visits(chain, (double[]){1, 0, 0}, visits);
	for (int s = 0; s < 3; s++)
		ck_assert_msg(fabs(visits[s] * out - 1) < 1e-12, "%d: %g", s, visits[s]);
	mp_chain_free(chain);
}

TEST(chain_takes_steps_to_itself_and_several_between_two)
{
	static const struct mp_chain_step steps[] = {
		{0, 0, 0.5}, {0, 1, 0.25}, {0, 1, 0.25}, {1, 1, 0.9}};
	double visits[2];
	struct mp_chain *chain = make(2, steps, 4, (double[]){0, 0.1});

	mp_chain_visits(chain, (double[]){1, 0}, visits);
	ck_assert(fabs(visits[0] - 2) < 1e-12 && fabs(visits[1] - 10) < 1e-11);
	mp_chain_free(chain);
}

TEST(chain_of_nothing_is_none)
{
	struct mp_chain *chain = make(0, NULL, 0, NULL);

	mp_chain_visits(chain, NULL, NULL);
	mp_chain_worth(chain, NULL, NULL);
	mp_chain_free(chain);
	mp_chain_free(NULL);
}

/* Random graphs, nearly complete: nested loops with entries in their middle. */
TEST(chain_agrees_with_walking_in_random_graphs)
{
	struct mp_chain_step steps[MAX * 8];
	double leave[MAX], start[MAX], gain[MAX], visits[MAX], worth[MAX];

	for (uint64_t graph = 0; graph < 150; graph++) {
		uint32_t nr, nr_steps = 0;
		double earned = 0, expected = 0;
		double at[MAX], next[MAX], sum[MAX] = {0};
		struct mp_chain *chain;

		seed = graph;
		nr = 1 + (uint32_t)(draw() * MAX);
		for (uint32_t s = 0; s < nr; s++) {
			uint32_t nr_out = (uint32_t)(draw() * 8), first = nr_steps;
			double all = leave[s] = nr_out ? draw() < 0.3 ? draw() : 0.02 : 1;

			for (uint32_t i = 0; i < nr_out; i++) {
				steps[nr_steps] = (struct mp_chain_step){s, (uint32_t)(draw() * nr),
									 0.01 + draw()};
				all += steps[nr_steps++].share;
			}
			leave[s] /= all;
			for (uint32_t i = first; i < nr_steps; i++)
				steps[i].share /= all;
			at[s] = start[s] = draw() < 0.5 ? draw() : 0;
			gain[s] = draw();
		}
		for (int round = 0; round < 5000; round++) {
			for (uint32_t s = 0; s < nr; s++) {
				sum[s] += at[s];
				next[s] = 0;
			}
			for (uint32_t i = 0; i < nr_steps; i++)
				next[steps[i].to] += at[steps[i].from] * steps[i].share;
			for (uint32_t s = 0; s < nr; s++)
				at[s] = next[s];
		}
		chain = make(nr, steps, nr_steps, leave);
		mp_chain_visits(chain, start, visits);
		mp_chain_worth(chain, gain, worth);
		for (uint32_t s = 0; s < nr; s++) {
			ck_assert(fabs(visits[s] - sum[s]) <= 1e-9 * (1 + sum[s]));
			/* The gains of all visits equal the worth of the starts. */
			earned += visits[s] * gain[s];
			expected += start[s] * worth[s];
		}
		ck_assert(fabs(earned - expected) <= 1e-9 * (1 + earned));
		mp_chain_free(chain);
	}
}

TEST(chain_refuses_what_never_ends)
{
	static const struct mp_chain_step steps[] = {{0, 1, 1}, {1, 2, 1}, {2, 1, 1}};
	struct mp_chain *chain;

	ck_assert_int_eq(mp_chain_new(3, steps, 3, (double[]){0, 0, 0}, ANY, &chain, &err), -EDOM);
	ck_assert_ptr_null(chain);
	ck_assert_uint_ne(err.msg[0], 0);
	ck_assert_int_eq(mp_chain_new(1, steps, 0, (double[]){0}, ANY, &chain, NULL), -EDOM);
}

TEST(chain_refuses_numbers_that_make_no_sense)
{
	static const struct mp_chain_step good = {0, 1, 0.5};
	static const struct mp_chain_step bad[] = {{2, 1, 0.5}, {0, 2, 0.5}, {0, 1, 0},
						   {0, 1, -1},	{0, 1, NAN}, {0, 1, INFINITY}};
	static const double leaves[] = {-0.5, NAN, INFINITY};
	struct mp_chain *chain;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(mp_chain_new(2, &bad[i], 1, (double[]){1, 1}, ANY, &chain, NULL),
				 -EINVAL);
	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++)
		ck_assert_int_eq(mp_chain_new(2, &good, 1, (double[]){0.5, leaves[i]}, ANY, &chain,
					      NULL),
				 -EINVAL);
}

TEST(chain_gives_up_where_it_would_take_too_long)
{
	struct mp_chain_step steps[MAX * MAX];
	double leave[MAX];
	struct mp_chain *chain;
	uint32_t nr = 0;

	for (uint32_t s = 0; s < MAX; s++) {
		leave[s] = 1.0 / (MAX + 1);
		for (uint32_t t = 0; t < MAX; t++)
			steps[nr++] = (struct mp_chain_step){s, t, 1.0 / (MAX + 1)};
	}
	ck_assert_int_eq(mp_chain_new(MAX, steps, nr, leave, 1000, &chain, NULL), -E2BIG);
	ck_assert_int_eq(mp_chain_new(MAX, steps, nr, leave, MAX * MAX * MAX, &chain, NULL), 0);
	mp_chain_free(chain);
}
