// SPDX-License-Identifier: Apache-2.0
/*
 * test_counts_doubt - counts with doubt: shares of branches are doubted, less so with more
 * evidence.
 */
#include "libprof/infer/counts_doubt.h"

#include <math.h>

#include "tests/unit/suite.h"
#include "tests/support/toycfg.h"

static struct toy toy;

/* 0 goes to 1 (10) or 2 (0), which return. Each has four instructions: 40 samples. */
static void fork_of(bool exact)
{
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 10}, {MP_TERM_RET, 10}, {MP_TERM_RET, 0});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 10}, {0, 2, MP_EDGE_TAKEN, 0});
	toy_finish(&toy);
	toy.counts.exact = exact;
}

/* Return: count of the way that was never seen. */
static double doubted(double doubt)
{
	struct mp_counts out;
	double rare;

	ck_assert_int_eq(mp_counts_add_doubt(&toy.cfg, &toy.counts, doubt, &out), 0);
	ck_assert(fabs(out.edge[0] + out.edge[1] - 10) < 1e-12);
	ck_assert_ptr_eq(out.block, toy.counts.block);
	rare = out.edge[1];
	free(out.edge);
	return rare;
}

TEST(counts_doubt_is_worth_so_many_samples)
{
	fork_of(false);
	ck_assert(doubted(0) == 0);
	ck_assert(fabs(doubted(2) - 10 * 1.0 / 42) < 1e-12);
	ck_assert(fabs(doubted(30) - 10 * 15.0 / 70) < 1e-12);
}

TEST(counts_doubt_counts_paths_and_transfers)
{
	uint64_t paths_over_edge[] = {28, 0};

	fork_of(false);
	toy.counts.paths_over_edge = paths_over_edge;
	ck_assert(fabs(doubted(2) - 10 * 1.0 / 70) < 1e-12);
	toy.counts.paths_over_edge = NULL;
	toy.counts.transfer_weight = 4;
	ck_assert(fabs(doubted(2) - 10 * 1.0 / 82) < 1e-12);
	/* Without samples, the lack of samples is no evidence. */
	toy.counts.unsampled = true;
	toy.counts.transfer_weight = 1;
	ck_assert(fabs(doubted(2) - 10 * 1.0 / 12) < 1e-12);
}

TEST(counts_doubt_leaves_counted_counts_alone)
{
	fork_of(true);
	ck_assert(doubted(2) == 0);
}
