// SPDX-License-Identifier: Apache-2.0
/* test_flow_connect - paths over blocks without samples to loops with samples. */

#include "libprof/infer/flow_connect.h"
#include "tests/unit/suite.h"

#define NR 8

static struct mp_flow_edge edge(uint32_t from, uint32_t to)
{
	return (struct mp_flow_edge){.from = from, .to = to, .group = UINT32_MAX};
}

/*
 * 0 leads to 5, which exits; 2 is a loop, 1 lies before and 3 behind it. 4 is a longer way into
 * the loop. 6 is entered by exceptions, and leads to 2.
 */
static struct mp_flow_block blocks[NR] = {
	{.nr_insns = 5, .entry = true},
	{.nr_insns = 1},
	{.nr_insns = 5},
	{.nr_insns = 2},
	{.nr_insns = 9},
	{.nr_insns = 5, .exit = true},
	{.nr_insns = 1, .entry = true, .entry_cost = 100},
};
static struct mp_flow_edge edges[NR];
static struct mp_flow flow = {.blocks = blocks, .nr_blocks = 7, .edges = edges, .nr_edges = NR};

static void setup(void)
{
	const struct mp_flow_edge all[NR] = {edge(0, 1), edge(0, 4), edge(0, 5), edge(1, 2),
					     edge(2, 2), edge(2, 3), edge(3, 5), edge(4, 2)};

	for (int e = 0; e < NR; e++)
		edges[e] = all[e];
	flow.nr_edges = NR;
}

FIXTURE(setup, NULL);

TEST(flow_is_connected_into_and_out_of_a_loop)
{
	const double block[NR] = {10, 0, 80, 0, 0, 10}, count[NR] = {0, 0, 10, 0, 80};
	double runs[NR];

	ck_assert_int_eq(mp_flow_connect(&flow, block, count, runs), 0);
	ck_assert(runs[1] > 0 && runs[1] < 80);
	ck_assert(runs[3] == runs[1]);
	for (int b = 0; b < 7; b++)
		ck_assert(b == 1 || b == 3 || runs[b] == 0);
}

TEST(connected_flow_gets_nothing_more)
{
	const double block[NR] = {10, 5, 80, 5, 0, 10}, count[NR] = {5, 0, 5, 5, 75, 5, 5};
	double runs[NR];

	ck_assert_int_eq(mp_flow_connect(&flow, block, count, runs), 0);
	for (int b = 0; b < 7; b++)
		ck_assert(runs[b] == 0);
}

TEST(flow_is_not_connected_at_a_landing_pad)
{
	const double block[NR] = {10, 0, 80, 0, 0, 10}, count[NR] = {0, 0, 10, 0, 80};
	double runs[NR];

	/* The second shortest way, because 6 has no other predecessor. */
	edges[3] = edge(6, 2);
	edges[0] = edge(1, 5);
	ck_assert_int_eq(mp_flow_connect(&flow, block, count, runs), 0);
	ck_assert(runs[6] == 0);
	ck_assert(runs[4] > 0);
}

TEST(flow_without_any_way_stays_unconnected)
{
	const double block[NR] = {10, 0, 80, 0, 0, 10}, count[NR] = {0, 0, 10, 0, 80};
	double runs[NR];

	/* Nothing leads into or out of the loop. */
	flow.nr_edges = 5;
	edges[0] = edges[1] = edges[3] = edge(0, 5);
	ck_assert_int_eq(mp_flow_connect(&flow, block, count, runs), 0);
	for (int b = 0; b < 7; b++)
		ck_assert(runs[b] == 0);
}
