// SPDX-License-Identifier: Apache-2.0
/*
 * test_order_exttsp - orders by the extended TSP score, compared with the best of all orders
 * in small cases.
 */

#include "libprof/order/order_exttsp.h"
#include "libprof/cfg/cfg.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define MAX	  600
#define MAX_LINKS (3 * MAX)

static uint32_t sizes[MAX], out[MAX], place[MAX];
static uint64_t start[MAX];
static double counts[MAX];
static struct mp_exttsp_link links[MAX_LINKS];
static struct mp_exttsp problem;

static void link_add(uint32_t from, uint32_t to, double count, double fall)
{
	links[problem.nr_links++] = (struct mp_exttsp_link){from, to, count, fall};
}

static void problem_start(uint32_t nr_blocks, uint32_t size)
{
	problem = (struct mp_exttsp){sizes, counts, nr_blocks, 0, links, 0};
	for (uint32_t b = 0; b < nr_blocks; b++) {
		sizes[b] = size;
		counts[b] = 1;
	}
}

/* Flow like that of a function: random walks from the entry through a random graph. */
static void random_function(uint32_t nr, uint32_t max_size)
{
	uint32_t to[MAX][2], ways[MAX];
	double count[MAX][2];

	problem_start(nr, 1);
	memset(count, 0, sizeof(count));
	memset(counts, 0, sizeof(counts));
	for (uint32_t b = 0; b < nr; b++) {
		sizes[b] = 1 + random_below(max_size);
		ways[b] = random_below(8) ? 1 + random_below(2) : 0;
		for (int k = 0; k < 2; k++)
			to[b][k] = nr > 20 ? (b + 1 + random_below(9)) % nr : random_below(nr);
	}
	for (int walk = 0; walk < 40; walk++) {
		double weight = 1 + random_below(100);

		for (uint32_t b = 0, step = 0; step < 60; step++) {
			int k = ways[b] == 2 && random_below(100) < 30 + 40 * (b % 2);

			counts[b] += weight;
			if (!ways[b])
				break;
			count[b][k] += weight;
			b = to[b][k];
		}
	}
	for (uint32_t b = 0; b < nr; b++)
		for (uint32_t k = 0; k < ways[b]; k++)
			if (count[b][k] > 0 && to[b][k] != b)
				link_add(b, to[b][k], count[b][k],
					 to[b][k] ? count[b][k] * (1 + random_below(2) * 0.25) : 0);
}

static double run(void)
{
	bool seen[MAX] = {false};

	ck_assert_int_eq(mp_exttsp_order(&problem, out), 0);
	for (uint32_t i = 0; i < problem.nr_blocks; i++) {
		ck_assert_uint_lt(out[i], problem.nr_blocks);
		ck_assert(!seen[out[i]]);
		seen[out[i]] = true;
	}
	if (problem.entry != MP_NONE && problem.nr_blocks)
		ck_assert_uint_eq(out[0], problem.entry);
	return mp_exttsp_score(&problem, out, start, place);
}

/* Return: best score of all orders that equal @order up to @fixed. */
static double best_score(uint32_t *order, uint32_t fixed)
{
	double best = 0;

	if (fixed == problem.nr_blocks)
		return mp_exttsp_score(&problem, order, start, place);
	for (uint32_t i = fixed; i < problem.nr_blocks; i++) {
		uint32_t swap = order[i];
		double score;

		order[i] = order[fixed];
		order[fixed] = swap;
		score = best_score(order, fixed + 1);
		best = score > best ? score : best;
		swap = order[i];
		order[i] = order[fixed];
		order[fixed] = swap;
	}
	return best;
}

TEST(exttsp_is_near_the_best_of_all_orders)
{
	double worst = 1, sum = 0;
	int nr = 0;

	seed = 11;
	for (int round = 0; round < 1500; round++) {
		uint32_t order[8], max_size = round % 3 == 0 ? 20 : round % 3 == 1 ? 200 : 900;
		double found, best;

		random_function(2 + random_below(6), max_size);
		if (round % 5 == 0)
			problem.entry = MP_NONE;
		for (uint32_t b = 0; b < problem.nr_blocks; b++)
			order[b] = b;
		found = run();
		best = best_score(order, problem.entry != MP_NONE);
		ck_assert(found <= best * 1.000001);
		if (!(best > 0))
			continue;
		worst = found / best < worst ? found / best : worst;
		sum += found / best;
		nr++;
	}
	if (getenv("EXTTSP_SHOW"))
		printf("worst %g, mean %g of %d\n", worst, sum / nr, nr);
	ck_assert_msg(worst >= 0.9, "worst %g", worst);
	ck_assert_msg(sum / nr >= 0.995, "mean %g", sum / nr);
}

TEST(exttsp_score_is_the_papers)
{
	uint32_t order[] = {0, 1, 2};

	problem_start(3, 100);
	link_add(0, 1, 10, 12);
	ck_assert_double_eq_tol(mp_exttsp_score(&problem, order, start, place), 12, 1e-9);
	problem.nr_links = 0;
	link_add(0, 2, 10, 12); /* forward over 100 bytes */
	ck_assert_double_eq_tol(mp_exttsp_score(&problem, order, start, place), 1 - 100 / 1024.0,
				1e-9);
	problem.nr_links = 0;
	link_add(2, 0, 10, 12); /* backward over 300 bytes */
	ck_assert_double_eq_tol(mp_exttsp_score(&problem, order, start, place), 1 - 300 / 640.0,
				1e-9);
	problem.nr_links = 0;
	link_add(0, 1, 10, 0); /* adjacent, but still a jump */
	ck_assert_double_eq_tol(mp_exttsp_score(&problem, order, start, place), 1, 1e-9);
	sizes[1] = 1024;
	problem.nr_links = 0;
	link_add(0, 2, 10, 12);
	link_add(2, 0, 10, 12);
	ck_assert_double_eq(mp_exttsp_score(&problem, order, start, place), 0);
}

TEST(exttsp_cuts_a_chain_where_that_pays)
{
	/* 0 -> 2 is the heaviest and is joined first; 1 belongs between. */
	uint32_t want[] = {0, 1, 2};

	problem_start(3, 10);
	link_add(0, 2, 60, 60);
	link_add(0, 1, 50, 50);
	link_add(1, 2, 50, 50);
	run();
	ck_assert_mem_eq(out, want, sizeof(want));
}

TEST(exttsp_keeps_the_jump_short)
{
	/*
	 * 1 has no fall-through, and 0 jumps to it. It must lie nearer than the long block that
	 * is not jumped to.
	 */
	problem_start(4, 10);
	sizes[2] = 2000;
	link_add(0, 3, 100, 100);
	link_add(3, 1, 10, 0);
	link_add(3, 2, 1, 0);
	run();
	ck_assert_uint_eq(out[2], 1);
}

TEST(exttsp_does_not_depend_on_addresses)
{
	/* The same problem in other memory gives the same order. */
	seed = 21;
	for (int round = 0; round < 50; round++) {
		uint32_t again[MAX], *other_sizes;
		AUTO_FREE struct mp_exttsp_link *other_links = NULL;
		AUTO_FREE double *other_counts = NULL;
		struct mp_exttsp other;

		random_function(2 + random_below(MAX - 2), 60);
		run();
		other = problem;
		other_links = malloc(sizeof(links));
		other_sizes = malloc(sizeof(sizes));
		other_counts = malloc(sizeof(counts));
		ck_assert(other_links && other_sizes && other_counts);
		other.links = memcpy(other_links, links, sizeof(links));
		other.sizes = memcpy(other_sizes, sizes, sizeof(sizes));
		other.counts = memcpy(other_counts, counts, sizeof(counts));
		ck_assert_int_eq(mp_exttsp_order(&other, again), 0);
		ck_assert_mem_eq(out, again, problem.nr_blocks * sizeof(*out));
		free(other_sizes);
	}
}

TEST(exttsp_takes_nothing_and_one_block)
{
	problem_start(0, 1);
	problem.entry = MP_NONE;
	run();
	problem_start(1, 1);
	run();
	link_add(0, 0, 5, 5);
	run();
	problem_start(5, 1); /* no links at all */
	run();
}
