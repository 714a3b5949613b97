// SPDX-License-Identifier: Apache-2.0
/*
 * test_counts - counts of a whole program: flow is conserved in every function with samples;
 * others stay zero.
 */
#include <math.h>

#include "libprof/infer/counts.h"
#include "tests/unit/suite.h"
#include "tests/support/toycfg.h"

static struct toy toy;

static void check_conserved(const struct mp_counts *counts)
{
	double in[TOY_MAX] = {0}, out[TOY_MAX] = {0};

	for (uint32_t b = 0; b < toy.cfg.nr_blocks; b++)
		for (uint32_t e = 0; e < toy.blocks[b].nr_edges; e++) {
			out[b] += counts->edge[toy.blocks[b].first_edge + e];
			in[toy.edges[toy.blocks[b].first_edge + e].to] +=
				counts->edge[toy.blocks[b].first_edge + e];
		}
	for (uint32_t b = 0; b < toy.cfg.nr_blocks; b++) {
		double tolerance = 1e-9 * counts->block[b] + 1e-9;

		ck_assert(in[b] <= counts->block[b] + tolerance);
		ck_assert(out[b] <= counts->block[b] + tolerance);
		if (!mp_block_enters(&toy.blocks[b]))
			ck_assert(in[b] >= counts->block[b] - tolerance);
		if (!mp_block_leaves(&toy.cfg, &toy.blocks[b]))
			ck_assert(out[b] >= counts->block[b] - tolerance);
	}
}

/* f: a loop with a call that leaves it; g: never sampled; h: one block. */
static void program(void)
{
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_FALL, 0}, {MP_TERM_COND, 0}, {MP_TERM_COND, 0},
		   {MP_TERM_NORETURN, 0}, {MP_TERM_RET, 0});
	toy_func(&toy, "g");
	toy_block(&toy, MP_TERM_RET, 0);
	toy_func(&toy, "h");
	toy_block(&toy, MP_TERM_RET, 0);
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 0}, {1, 2, MP_EDGE_FALL, 0}, {1, 4, MP_EDGE_TAKEN, 0},
		  {2, 3, MP_EDGE_FALL, 0}, {2, 1, MP_EDGE_TAKEN, 0});
	toy_finish(&toy);
}

TEST(counts_are_conserved_in_every_sampled_function)
{
	uint64_t samples[] = {6, 6000, 5400, 0, 5, 0, 60};
	struct mp_profile profile = {.block_samples = samples, .nr_blocks = 7};
	struct mp_counts_options options[] = {
		{.estimator = MP_ESTIMATE_POISSON},
		{.estimator = MP_ESTIMATE_POISSON, .layout_prior = true},
		{.estimator = MP_ESTIMATE_POISSON, .layout_prior = true, .call_graph = true}};

	for (int i = 0; i < 3; i++) {
		struct mp_counts_stats stats;
		AUTO(mp_counts_fini) struct mp_counts counts = {0};

		program();
		ck_assert_int_eq(
			mp_counts_build(&toy.cfg, &profile, &options[i], &counts, &stats, NULL), 0);
		check_conserved(&counts);
		ck_assert_uint_eq(stats.nr_funcs, 2);
		ck_assert_uint_eq(stats.nr_gave_up, 0);
		ck_assert_uint_eq(stats.largest, 5);
		ck_assert(counts.block[1] > 100 * counts.block[0]);
		ck_assert(counts.block[3] == 0 && counts.block[5] == 0);
		ck_assert(counts.block[6] > 1);
		ck_assert_uint_eq(counts.samples[1], 6000);
	}
}

TEST(counts_that_were_counted_are_taken_as_they_are)
{
	/* 1 runs 101 times and goes to 2 each time but the last. */
	uint64_t samples[TOY_MAX] = {0}, transfers[] = {0, 0, 1, 0, 99}, leavings[TOY_MAX] = {0};
	const double runs[] = {2, 101, 100, 1, 1, 0, 7};
	uint32_t leavers[TOY_MAX] = {0};
	struct mp_profile profile = {.block_samples = samples,
				     .edge_transfers = transfers,
				     .block_leavings = leavings,
				     .block_leavers = leavers,
				     .nr_transfers = 100,
				     .nr_blocks = 7,
				     .exact = true};
	AUTO(mp_counts_fini) struct mp_counts counts = {0};

	program();
	for (uint32_t b = 0; b < 7; b++) {
		samples[b] = (uint64_t)runs[b] * toy.blocks[b].nr_insns;
		profile.nr_samples += samples[b];
	}
	ck_assert_int_eq(mp_counts_build(&toy.cfg, &profile, NULL, &counts, NULL, NULL), 0);
	ck_assert(counts.exact);
	for (uint32_t b = 0; b < 7; b++)
		ck_assert(counts.block[b] == runs[b]);
	for (uint32_t e = 0; e < toy.cfg.nr_edges; e++) {
		uint32_t from = toy.edges[e].from;
		double want = toy.edges[e].kind == MP_EDGE_TAKEN ? (double)transfers[e]
								 : runs[from] - (from == 1   ? 1
										 : from == 2 ? 99
											     : 0);

		ck_assert_msg(counts.edge[e] == want, "edge %u: %f", e, counts.edge[e]);
	}
}

/* 2 runs @rare times and leaves the loop every 100th time; all other flow stays in the loop. */
static void count_loop(uint64_t rare, uint64_t rounds, uint64_t *samples,
		       struct mp_profile *profile)
{
	const uint64_t back = rare - rare / 100;
	const uint64_t runs[] = {rounds, rounds + back, rare, rare / 100, rounds - rare / 100, 0,
				 7};

	*profile = (struct mp_profile){.block_samples = samples, .nr_blocks = 7, .exact = true};
	for (uint32_t b = 0; b < 7; b++) {
		samples[b] = runs[b] * toy.blocks[b].nr_insns;
		profile->nr_samples += samples[b];
	}
}

TEST(counts_of_blocks_alone_tell_edges_to_the_last_one)
{
	/* Hot blocks beside rare ones, in both positions. */
	const uint64_t cases[][2] = {{100, 1}, {100, 1000000000}, {1000000000, 10000000}, {0, 5}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t rare = cases[i][0], rounds = cases[i][1], samples[TOY_MAX] = {0};
		struct mp_profile profile;
		AUTO(mp_counts_fini) struct mp_counts counts = {0};

		program();
		count_loop(rare, rounds, samples, &profile);
		ck_assert_int_eq(mp_counts_build(&toy.cfg, &profile, NULL, &counts, NULL, NULL), 0);
		ck_assert(counts.exact && counts.complete);
		for (uint32_t b = 0; b < 7; b++)
			ck_assert_msg(counts.block[b] * toy.blocks[b].nr_insns ==
					      (double)samples[b],
				      "%zu: block %u: %f", i, b, counts.block[b]);
		ck_assert(counts.edge[1] == (double)rare);
		ck_assert(counts.edge[2] == (double)(rounds - rare / 100));
		ck_assert(counts.edge[4] == (double)(rare - rare / 100));
		check_conserved(&counts);
	}
}

TEST(counts_of_which_one_does_not_fit_give_that_up)
{
	/* Block 3 was left in its middle: exit() in one of its calls. */
	uint64_t samples[TOY_MAX] = {0};
	struct mp_profile profile;
	AUTO(mp_counts_fini) struct mp_counts counts = {0};

	program();
	count_loop(10000, 500, samples, &profile);
	samples[3] /= 2;
	ck_assert_int_eq(mp_counts_build(&toy.cfg, &profile, NULL, &counts, NULL, NULL), 0);
	ck_assert(counts.block[3] == 100 && counts.block[0] == 500 && counts.block[1] == 10400 &&
		  counts.block[2] == 10000);
	check_conserved(&counts);
}

TEST(counts_of_transfers_of_some_runs_alone_are_not_believed)
{
	/*
	 * The block counts include as many runs again without transfers: 1 does not go to 2
	 * each time that it does not go to 4.
	 */
	uint64_t samples[TOY_MAX] = {0}, transfers[] = {0, 0, 400, 0, 9900};
	uint64_t leavings[TOY_MAX] = {0};
	uint32_t leavers[TOY_MAX] = {0};
	struct mp_profile profile;
	AUTO(mp_counts_fini) struct mp_counts counts = {0};

	program();
	count_loop(20000, 1000, samples, &profile);
	profile.edge_transfers = transfers;
	profile.block_leavings = leavings;
	profile.block_leavers = leavers;
	profile.nr_transfers = 10300;
	ck_assert_int_eq(mp_counts_build(&toy.cfg, &profile, NULL, &counts, NULL, NULL), 0);
	ck_assert(counts.edge[1] == 20000 && counts.edge[2] == 800 && counts.edge[4] == 19800);
	check_conserved(&counts);
}

TEST(counts_let_flow_leave_where_a_branch_leaves_the_function)
{
	/* Block 1's taken way goes to another function: a conditional tail call. */
	uint64_t samples[] = {600, 600, 0, 0, 0, 0, 0};
	struct mp_profile profile = {.block_samples = samples, .nr_blocks = 7};
	AUTO(mp_counts_fini) struct mp_counts counts = {0};

	program();
	toy.blocks[1].nr_edges = 1;
	ck_assert_int_eq(mp_counts_build(&toy.cfg, &profile, NULL, &counts, NULL, NULL), 0);
	ck_assert(counts.block[1] > 50);
	ck_assert(counts.block[2] == 0);
}

TEST(counts_listen_to_the_call_graph)
{
	/*
	 * f calls h from 1, which has few samples, and g from 2, which has more. But h has many
	 * samples, and g none.
	 */
	uint64_t samples[] = {600, 60, 240, 600, 0, 600};
	struct mp_profile profile = {.block_samples = samples, .nr_blocks = 6};
	struct mp_counts_options options = {.estimator = MP_ESTIMATE_POISSON};
	double without = 0;

	for (int with = 0; with < 2; with++) {
		AUTO(mp_counts_fini) struct mp_counts counts = {0};

		toy_start(&toy, "f");
		toy_blocks(&toy, {MP_TERM_COND, 0}, {MP_TERM_JUMP, 0}, {MP_TERM_FALL, 0},
			   {MP_TERM_RET, 0});
		toy_func(&toy, "g");
		toy_block(&toy, MP_TERM_RET, 0);
		toy_func(&toy, "h");
		toy_block(&toy, MP_TERM_RET, 0);
		toy_edges(&toy, {0, 1, MP_EDGE_FALL, 0}, {0, 2, MP_EDGE_TAKEN, 0},
			  {1, 3, MP_EDGE_JUMP, 0}, {2, 3, MP_EDGE_FALL, 0});
		toy_call(&toy, 1, 2);
		toy_call(&toy, 2, 1);
		toy_finish(&toy);
		options.call_graph = with;
		ck_assert_int_eq(mp_counts_build(&toy.cfg, &profile, &options, &counts, NULL, NULL),
				 0);
		check_conserved(&counts);
		if (with)
			ck_assert(counts.block[1] > 1.5 * without);
		else
			without = counts.block[1];
		ck_assert(without > 0);
	}
}

TEST(counts_avoid_calls_of_functions_without_samples)
{
	/*
	 * f goes from 0 to 4 by 1 and 2, or by 3, which is shorter and calls g. None of
	 * these three has samples, nor has g.
	 */
	uint64_t samples[] = {60, 0, 0, 0, 60, 0};
	struct mp_profile profile = {.block_samples = samples, .nr_blocks = 6};
	struct mp_counts_options options = {.estimator = MP_ESTIMATE_POISSON};

	for (int with = 0; with < 2; with++) {
		uint8_t unknown[] = {0, 0, 0, 0, 0, 1};
		struct mp_counts counts;

		toy_start(&toy, "f");
		toy_blocks(&toy, {MP_TERM_COND, 0}, {MP_TERM_FALL, 0}, {MP_TERM_JUMP, 0},
			   {MP_TERM_JUMP, 0}, {MP_TERM_RET, 0});
		toy_func(&toy, "g");
		toy_block(&toy, MP_TERM_RET, 0);
		toy_edges(&toy, {0, 1, MP_EDGE_FALL, 0}, {0, 3, MP_EDGE_TAKEN, 0},
			  {1, 2, MP_EDGE_FALL, 0}, {2, 4, MP_EDGE_JUMP, 0},
			  {3, 4, MP_EDGE_JUMP, 0});
		toy_call(&toy, 3, 1);
		toy_finish(&toy);
		toy.blocks[5].nr_insns = 40;
		options.call_graph = with;
		ck_assert_int_eq(mp_counts_build(&toy.cfg, &profile, &options, &counts, NULL, NULL),
				 0);
		check_conserved(&counts);
		ck_assert(with ? counts.block[1] > 9 * counts.block[3]
			       : counts.block[3] > 9 * counts.block[1]);
		mp_counts_fini(&counts);
		/* A callee that the profile does not know is no evidence. */
		profile.block_unknown = unknown;
		ck_assert_int_eq(mp_counts_build(&toy.cfg, &profile, &options, &counts, NULL, NULL),
				 0);
		ck_assert(counts.block[3] > 9 * counts.block[1]);
		mp_counts_fini(&counts);
		profile.block_unknown = NULL;
	}
}

/* f ran 6 times, its loop 1,000 times in total; h ran 60 times, without samples. */
static void transfers_fill(struct mp_profile *profile)
{
	static uint64_t edges[8], leavings[8];
	static uint32_t leavers[8];

	for (uint32_t e = 0; e < toy.cfg.nr_edges; e++) {
		edges[e] = 0;
		if (toy.edges[e].from == 2 && toy.edges[e].to == 1)
			edges[e] = 1000;
		if (toy.edges[e].from == 1 && toy.edges[e].to == 4)
			edges[e] = 6;
	}
	leavings[4] = 6;
	leavings[6] = 60;
	leavers[4] = leavers[6] = 1;
	profile->edge_transfers = edges;
	profile->block_leavings = leavings;
	profile->block_leavers = leavers;
	profile->nr_transfers = 1066;
}

TEST(counts_take_transfers_for_samples)
{
	uint64_t samples[7] = {0};
	struct mp_profile profile = {.block_samples = samples, .nr_blocks = 7};
	struct mp_counts_stats stats;
	AUTO(mp_counts_fini) struct mp_counts counts = {0};

	program();
	transfers_fill(&profile);
	ck_assert_int_eq(mp_counts_build(&toy.cfg, &profile, NULL, &counts, &stats, NULL), 0);
	check_conserved(&counts);
	ck_assert_uint_eq(stats.nr_funcs, 2);
	ck_assert(fabs(counts.block[0] - 6) < 0.01 && fabs(counts.block[1] - 1006) < 0.01);
	ck_assert(fabs(counts.block[6] - 60) < 0.01);
	ck_assert(counts.block[5] == 0);
	ck_assert_uint_ge(counts.samples[1], 1000);
	ck_assert_uint_eq(counts.samples[6], 60);
}

TEST(counts_combine_samples_and_transfers)
{
	/* By the samples, the loop iterates twice per call; by the transfers, 167 times. */
	uint64_t samples[] = {300, 900, 600, 0, 300, 0, 0};
	struct mp_profile profile = {.block_samples = samples, .nr_blocks = 7, .nr_samples = 2100};
	struct mp_counts alone, both;

	program();
	ck_assert_int_eq(mp_counts_build(&toy.cfg, &profile, NULL, &alone, NULL, NULL), 0);
	transfers_fill(&profile);
	ck_assert_int_eq(mp_counts_build(&toy.cfg, &profile, NULL, &both, NULL, NULL), 0);
	check_conserved(&both);
	ck_assert(alone.block[1] < 6 * alone.block[0]);
	ck_assert(both.block[1] / both.block[0] > 1.3 * alone.block[1] / alone.block[0]);
	/* It was seen to return, but never sampled. */
	ck_assert(alone.block[6] == 0 && both.block[6] > 0);
	mp_counts_fini(&alone);
	mp_counts_fini(&both);
}

TEST(counts_refuse_a_profile_of_something_else)
{
	uint64_t samples[] = {1};
	struct mp_profile profile = {.block_samples = samples, .nr_blocks = 1};
	struct mp_counts counts;

	program();
	ck_assert_int_eq(mp_counts_build(&toy.cfg, &profile, NULL, &counts, NULL, &err), -EINVAL);
	ck_assert_str_ne(err.msg, "");
}
