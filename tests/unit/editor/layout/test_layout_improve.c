// SPDX-License-Identifier: Apache-2.0
/*
 * test_layout_improve - the local search for links, compared with the best of all solutions in small cases.
 */

#include "editor/layout/layout_improve.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define MAX	  300
#define MAX_LINKS (3 * MAX)

static struct me_improve_link links[MAX_LINKS];
static uint32_t nr_links, nr_blocks;

static void link_add(uint32_t from, uint32_t to, double gain, bool chosen)
{
	links[nr_links++] = (struct me_improve_link){from, to, gain, chosen};
}

/* Return: the worth of the chosen links, which are a solution. */
static double worth(void)
{
	uint32_t next[MAX];
	bool has_leader[MAX] = {false};
	double sum = 0;

	for (uint32_t b = 0; b < nr_blocks; b++)
		next[b] = UINT32_MAX;
	for (uint32_t l = 0; l < nr_links; l++) {
		if (!links[l].chosen)
			continue;
		ck_assert_uint_eq(next[links[l].from], UINT32_MAX);
		ck_assert(!has_leader[links[l].to]);
		next[links[l].from] = links[l].to;
		has_leader[links[l].to] = true;
		sum += links[l].gain;
	}
	for (uint32_t b = 0; b < nr_blocks; b++) {
		uint32_t at = b, steps = 0;

		for (; at != UINT32_MAX; at = next[at])
			ck_assert_uint_le(++steps, nr_blocks);
	}
	return sum;
}

static double improve(void)
{
	ck_assert_int_eq(me_links_improve(links, nr_links, nr_blocks), 0);
	return worth();
}

/* May link @l be chosen beside those that @next and @led say? */
static bool fits(uint32_t l, const uint32_t *next, const bool *led)
{
	uint32_t b = links[l].to;

	if (next[links[l].from] != UINT32_MAX || led[b])
		return false;
	while (b != links[l].from && next[b] != UINT32_MAX)
		b = next[b];
	return b != links[l].from;
}

/* Return: the worth of the best solution with the links from @l on, beside those that are chosen before. */
static double best_worth(uint32_t l, uint32_t *next, bool *led)
{
	double without, with;

	if (l == nr_links)
		return 0;
	without = best_worth(l + 1, next, led);
	if (!fits(l, next, led))
		return without;
	next[links[l].from] = links[l].to;
	led[links[l].to] = true;
	with = links[l].gain + best_worth(l + 1, next, led);
	next[links[l].from] = UINT32_MAX;
	led[links[l].to] = false;
	return with > without ? with : without;
}

/* At most two ways from each block; none to the first one. The heaviest links come first and are chosen so. */
static void random_function(uint32_t nr)
{
	uint32_t next[MAX];
	bool led[MAX] = {false};

	nr_blocks = nr;
	nr_links = 0;
	for (uint32_t b = 0; b < nr; b++) {
		next[b] = UINT32_MAX;
		for (uint32_t k = random_below(3); k; k--) {
			uint32_t to = nr > 20 ? (b + 1 + random_below(9)) % nr : random_below(nr);

			if (to && to != b)
				link_add(b, to, random_below(1000), false);
		}
	}
	for (uint32_t i = 0; i < nr_links; i++)
		for (uint32_t k = i; k && links[k].gain > links[k - 1].gain; k--) {
			struct me_improve_link link = links[k];

			links[k] = links[k - 1];
			links[k - 1] = link;
		}
	for (uint32_t l = 0; l < nr_links; l++)
		if (fits(l, next, led)) {
			links[l].chosen = true;
			next[links[l].from] = links[l].to;
			led[links[l].to] = true;
		}
}

TEST(improve_opens_a_loop_where_control_leaves_it)
{
	/*
	 * 0 -> 2; 1 -> 2 and 2 -> 1 is a loop that is left behind 2, for 3. The heaviest link, 2 -> 1, excludes
	 * 2 -> 3, and makes 1 -> 2 jump.
	 */
	nr_blocks = 4;
	nr_links = 0;
	link_add(2, 1, 103, true);
	link_add(1, 2, 100, false);
	link_add(2, 3, 15, false);
	link_add(0, 2, 10, true);
	ck_assert(improve() == 115);
	ck_assert(!links[0].chosen && links[1].chosen && links[2].chosen && !links[3].chosen);
}

TEST(improve_keeps_what_is_as_good)
{
	nr_blocks = 3;
	nr_links = 0;
	link_add(0, 1, 50, true);
	link_add(0, 2, 50, false);
	link_add(1, 2, 0, false);
	ck_assert(improve() == 50);
	ck_assert(links[0].chosen && !links[1].chosen);
}

TEST(improve_chooses_one_of_two_links_between_the_same_blocks)
{
	nr_blocks = 3;
	nr_links = 0;
	link_add(0, 1, 50, true);
	link_add(0, 1, 50, true);
	link_add(0, 2, 60, false);
	ck_assert(improve() == 60);
}

TEST(improve_is_near_the_best_of_all_solutions)
{
	double sum = 0, greedy = 0;
	int nr = 0, nr_best = 0;

	seed = 7;
	for (int round = 0; round < 2000; round++) {
		uint32_t next[MAX];
		bool led[MAX] = {false};
		double before, after, best;

		random_function(2 + random_below(7));
		memset(next, 0xff, sizeof(next));
		before = worth();
		after = improve();
		best = best_worth(0, next, led);
		ck_assert(before <= after && after <= best);
		if (best <= 0)
			continue;
		greedy += before / best;
		sum += after / best;
		nr_best += after == best;
		nr++;
	}
	ck_assert_int_gt(nr, 1500);
	ck_assert_double_gt(sum / nr, 0.9995);
	ck_assert_double_lt(greedy / nr, 0.995);
	ck_assert_int_gt(nr_best, nr * 99 / 100);
}

TEST(improve_keeps_a_solution_in_large_functions)
{
	seed = 3;
	for (int round = 0; round < 50; round++) {
		double before;

		random_function(MAX);
		before = worth();
		ck_assert(improve() >= before);
	}
}
