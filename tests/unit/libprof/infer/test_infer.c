// SPDX-License-Identifier: Apache-2.0
/*
 * test_infer - flow inference: conserves flow in any graph, finds the optimum, and recognises
 * false zeros.
 */
#include <math.h>

#include "libprof/infer/infer.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define NO_GROUP UINT32_MAX

/* Of two arrays, and other fields. */
#define FLOW(all_blocks, all_edges, ...)                                                           \
	{                                                                                          \
		.blocks = (all_blocks), .nr_blocks = sizeof(all_blocks) / sizeof((all_blocks)[0]), \
		.edges = (all_edges), .nr_edges = sizeof(all_edges) / sizeof((all_edges)[0]),      \
		__VA_ARGS__                                                                        \
	}

static struct mp_flow_edge edge(uint32_t from, uint32_t to)
{
	return (struct mp_flow_edge){.from = from, .to = to, .group = NO_GROUP};
}

static void check_near(double a, double b)
{
	double tolerance = 1e-9 * (fabs(a) + fabs(b)) + 1e-9;

	ck_assert_msg(fabs(a - b) <= tolerance, "%.12g is not %.12g", a, b);
}

static void check_conserved(const struct mp_flow *flow, const double *block, const double *edges)
{
	AUTO_FREE double *in = calloc(flow->nr_blocks + 1, sizeof(*in));
	AUTO_FREE double *out = calloc(flow->nr_blocks + 1, sizeof(*out));
	double entered = 0, left = 0;

	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		ck_assert(edges[e] >= 0);
		in[flow->edges[e].to] += edges[e];
		out[flow->edges[e].from] += edges[e];
	}
	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		ck_assert(block[b] >= 0);
		if (flow->blocks[b].entry)
			ck_assert(in[b] <= block[b] * (1 + 1e-9) + 1e-9);
		else
			check_near(in[b], block[b]);
		if (flow->blocks[b].exit)
			ck_assert(out[b] <= block[b] * (1 + 1e-9) + 1e-9);
		else
			check_near(out[b], block[b]);
		entered += block[b] - in[b];
		left += block[b] - out[b];
	}
	check_near(entered, left);
}

TEST(infer_conserves_on_random_graphs)
{
	enum {
		MAX_BLOCKS = 60,
		MAX_EDGES = 200
	};
	struct mp_flow_block blocks[MAX_BLOCKS];
	struct mp_flow_edge edges[MAX_EDGES];
	double block[MAX_BLOCKS], count[MAX_EDGES];

	/*
	 * Any graph: irreducible loops, self loops, parallel edges, unreachable blocks, loops
	 * without exit, incomplete tables, no entry at all.
	 */
	seed = 7;
	for (int round = 0; round < 1500; round++) {
		struct mp_flow flow = {.blocks = blocks, .edges = edges};

		flow.nr_blocks = 1 + random_below(MAX_BLOCKS);
		flow.nr_edges = random_below(MAX_EDGES);
		flow.layout_prior = round % 3 == 0;
		for (uint32_t b = 0; b < flow.nr_blocks; b++)
			blocks[b] = (struct mp_flow_block){
				.samples = random_below(2) ? random_below(100000) / 7.0 : 0,
				.nr_insns = random_below(30),
				.entry = b == 0 || random_below(20) == 0,
				.exit = random_below(6) == 0,
				.entry_cost = random_below(3) ? 0 : 64,
			};
		for (uint32_t e = 0; e < flow.nr_edges; e++) {
			edges[e] = edge(random_below(flow.nr_blocks), random_below(flow.nr_blocks));
			edges[e].group = random_below(4) ? NO_GROUP : random_below(3);
			edges[e].taken = random_below(2);
			edges[e].backward = random_below(2);
			edges[e].counted = edges[e].taken;
			edges[e].transfers = random_below(3) ? random_below(5000) : 0;
		}
		flow.transfer_weight = round % 4 == 0 ? 0.5 + random_below(9) : 0;
		flow.unsampled = false;
		ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
		check_conserved(&flow, block, count);
	}
}

/* The piecewise linear cost that infer minimises, evaluated for any flow. */
static double cost_of(const struct mp_flow *flow, const double *count)
{
	static const double cuts[] = {0, 0.125, 0.25, 0.5, 0.75, 1, 4.0 / 3, 2, 4, 8};
	double sum = 0;

	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		double c = flow->blocks[b].nr_insns + 2.0, w = flow->blocks[b].samples / c;

		if (!flow->blocks[b].samples) {
			sum += c * count[b];
			continue;
		}
		for (int i = 0; i < 10; i++) {
			double from = cuts[i] * w, to = i < 9 ? cuts[i + 1] * w : INFINITY;
			double slope =
				i == 0	 ? -11
				: i == 9 ? 0.9
					 : 1 - log(cuts[i + 1] / cuts[i]) / (cuts[i + 1] - cuts[i]);

			if (count[b] > from)
				sum += c * slope * (fmin(count[b], to) - from);
		}
	}
	return sum;
}

/*
 * A convex cost is minimal if no cycle or path change makes it lower. In graphs with forward
 * edges only, every change adds a path from an entry to an exit, or removes one.
 */
TEST(infer_finds_no_way_to_improve)
{
	enum {
		NR = 7,
		MAX_EDGES = NR * NR
	};
	struct mp_flow_block blocks[NR];
	struct mp_flow_edge edges[MAX_EDGES];
	double block[NR], count[MAX_EDGES];

	seed = 3;
	for (int round = 0; round < 400; round++) {
		struct mp_flow flow = {.blocks = blocks, .edges = edges, .nr_blocks = NR};
		double best;

		for (uint32_t b = 0; b < NR; b++)
			blocks[b] = (struct mp_flow_block){
				.samples = random_below(3) ? 1 + random_below(1000) : 0,
				.nr_insns = 1 + random_below(9),
				.entry = b == 0,
				.exit = b == NR - 1,
			};
		for (uint32_t a = 0; a < NR; a++)
			for (uint32_t b = a + 1; b < NR; b++)
				if (b == a + 1 || random_below(3) == 0)
					edges[flow.nr_edges++] = edge(a, b);
		ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
		best = cost_of(&flow, block);
		/*
		 * Try each path through a subset of the inner blocks with a small step up or
		 * down, and each exchange of two paths.
		 */
		for (unsigned up = 0; up < 1u << (NR - 2); up++)
			for (unsigned down = 0; down < 1u << (NR - 2); down++) {
				double changed[NR], step = 1e-3;
				bool ok = true;

				memcpy(changed, block, sizeof(block));
				for (int side = 0; side < 2 && ok; side++) {
					unsigned way = (side ? down : up) << 1 | 1 | 1u << (NR - 1);
					uint32_t at = 0;

					/* 0 means that this side changes nothing. */
					if (!(side ? down : up))
						continue;
					for (uint32_t b = 1; b < NR && ok; b++) {
						bool linked = false;

						if (!(way >> b & 1))
							continue;
						for (uint32_t e = 0; e < flow.nr_edges; e++)
							if (edges[e].from == at && edges[e].to == b)
								linked = !side || count[e] > step;
						ok = linked;
						at = b;
					}
					for (uint32_t b = 0; b < NR && ok; b++)
						if (way >> b & 1)
							changed[b] += side ? -step : step;
				}
				if (ok)
					ck_assert(cost_of(&flow, changed) >=
						  best - 1e-4 * (1 + fabs(best) * 1e-6));
			}
	}
}

TEST(infer_keeps_consistent_counts)
{
	/*
	 * entry 0 -> loop 1 <-> 2 -> exit 3; the samples are those of a profile without noise,
	 * where a block costs n + 2.
	 */
	struct mp_flow_block blocks[] = {
		{.samples = 10 * 5, .nr_insns = 3, .entry = true},
		{.samples = 1000 * 6, .nr_insns = 4},
		{.samples = 990 * 10, .nr_insns = 8},
		{.samples = 10 * 3, .nr_insns = 1, .exit = true},
	};
	struct mp_flow_edge edges[] = {edge(0, 1), edge(1, 2), edge(2, 1), edge(1, 3)};
	struct mp_flow flow = FLOW(blocks, edges);
	double block[4], count[4];

	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
	ck_assert(fabs(block[0] - 10) < 1e-4);
	ck_assert(fabs(block[1] - 1000) < 1e-3);
	ck_assert(fabs(block[2] - 990) < 1e-3);
	ck_assert(fabs(count[2] - 990) < 1e-3);
	ck_assert(fabs(count[3] - 10) < 1e-4);
}

TEST(infer_false_zero_does_not_cut_a_hot_path)
{
	/* 1 lies on the only path from 0 to 2, and has no sample. */
	struct mp_flow_block blocks[] = {
		{.samples = 500, .nr_insns = 5, .entry = true},
		{.samples = 0, .nr_insns = 3},
		{.samples = 700, .nr_insns = 7, .exit = true},
	};
	struct mp_flow_edge edges[] = {edge(0, 1), edge(1, 2)};
	struct mp_flow flow = FLOW(blocks, edges);
	double block[3], count[2];

	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
	ck_assert(block[1] > 50);
	check_near(block[0], block[1]);
	check_near(block[2], count[1]);
}

TEST(infer_unsampled_detour_stays_empty)
{
	/* 0 -> 3 directly, or through 1 and 2, which have no samples. */
	struct mp_flow_block blocks[] = {
		{.samples = 500, .nr_insns = 5, .entry = true},
		{.samples = 0, .nr_insns = 9},
		{.samples = 0, .nr_insns = 9},
		{.samples = 700, .nr_insns = 7, .exit = true},
	};
	struct mp_flow_edge edges[] = {edge(0, 1), edge(1, 2), edge(2, 3), edge(0, 3)};
	struct mp_flow flow = FLOW(blocks, edges);
	double block[4], count[4];

	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
	check_near(block[1], 0);
	check_near(block[2], 0);
	ck_assert(count[3] > 50);
}

TEST(infer_does_not_mend_hot_time_in_cold_code)
{
	/* 0 has 1.5 times the samples that it should have; 1 is hot, 2 cold. */
	struct mp_flow_block blocks[] = {
		{.samples = 15000, .nr_insns = 10, .entry = true},
		{.samples = 9000, .nr_insns = 10, .exit = true},
		{.samples = 100, .nr_insns = 10, .exit = true},
	};
	struct mp_flow_edge edges[] = {edge(0, 1), edge(0, 2)};
	struct mp_flow flow = FLOW(blocks, edges);
	double block[3], count[2], cold;

	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
	cold = block[2];
	ck_assert(cold > 1.1 * 100 / 12);
	for (uint32_t b = 0; b < 3; b++)
		blocks[b].before = block[b];
	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
	ck_assert(block[2] < 0.95 * cold);
	ck_assert(block[1] > 9000.0 / 12);
	check_conserved(&flow, block, count);
	blocks[0].before = INFINITY;
	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), -EINVAL);
}

TEST(infer_shared_table_splits_alike_for_every_jump)
{
	/* Two handlers 1 and 2 of an interpreter, each with its own jump through a shared table. */
	struct mp_flow_block blocks[] = {
		{.samples = 3, .nr_insns = 1, .entry = true},
		{.samples = 6000, .nr_insns = 4},
		{.samples = 3000, .nr_insns = 4},
		{.samples = 3, .nr_insns = 1, .exit = true},
	};
	struct mp_flow_edge edges[9];
	struct mp_flow flow = FLOW(blocks, edges);
	double block[4], count[9];

	for (uint32_t from = 0; from < 3; from++)
		for (uint32_t to = 1; to < 4; to++) {
			edges[3 * from + to - 1] = edge(from, to);
			edges[3 * from + to - 1].group = 5;
		}
	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
	check_conserved(&flow, block, count);
	ck_assert(fabs(block[1] - 1000) < 10);
	ck_assert(fabs(block[2] - 500) < 10);
	check_near(count[3] / block[1], count[6] / block[2]); /* 1 -> 1, 2 -> 1 */
	check_near(count[5] / block[1], count[8] / block[2]); /* 1 -> 3, 2 -> 3 */
}

TEST(infer_takes_waits_for_time)
{
	/* Equal samples: one side waits for memory, the other does not. */
	struct mp_flow_block blocks[] = {
		{.samples = 1200, .nr_insns = 10, .entry = true},
		{.samples = 100, .nr_insns = 2, .wait = 8},
		{.samples = 100, .nr_insns = 2, .wait = 0.2},
		{.samples = 1200, .nr_insns = 10, .exit = true},
	};
	struct mp_flow_edge edges[] = {edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 3)};
	struct mp_flow flow = FLOW(blocks, edges);
	double block[4], count[4];

	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
	ck_assert(block[2] > 2 * block[1]);
	check_near(block[1] + block[2], block[0]);
}

TEST(infer_hints_decide_where_nothing_else_does)
{
	struct mp_flow_block blocks[] = {
		{.samples = 500, .nr_insns = 5, .entry = true},
		{.nr_insns = 4},
		{.nr_insns = 4},
		{.samples = 500, .nr_insns = 5, .exit = true},
	};
	struct mp_flow_edge edges[] = {edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 3)};
	struct mp_flow flow = FLOW(blocks, edges, .layout_prior = true);
	double block[4], count[4];

	flow.hinted = true;
	/* A hint replaces the prior of the layout. */
	edges[1].taken = true;
	edges[0].against = 1;
	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
	check_near(block[1], 0);
	check_near(block[2], block[0]);
	/* Samples outweigh the hint. */
	blocks[1].samples = 400;
	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
	ck_assert(block[1] > 0.9 * block[0]);
}

TEST(infer_prior_prefers_the_fall_through)
{
	/* A diamond without evidence for either side. */
	struct mp_flow_block blocks[] = {
		{.samples = 500, .nr_insns = 5, .entry = true},
		{.nr_insns = 4},
		{.nr_insns = 4},
		{.samples = 500, .nr_insns = 5, .exit = true},
	};
	struct mp_flow_edge edges[] = {edge(0, 2), edge(0, 1), edge(1, 3), edge(2, 3)};
	struct mp_flow flow = FLOW(blocks, edges, .layout_prior = true);
	double block[4], count[4];

	edges[0].taken = true;
	edges[2].taken = true;
	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
	/* Falling into 1 and jumping to 3, or jumping to 2 and falling into 3: one jump each. */
	check_near(block[1] + block[2], block[0]);
	edges[2].taken = false;
	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
	check_near(block[2], 0);
	ck_assert(block[1] > 10);
}

TEST(infer_holds_exact_counts_of_a_long_run)
{
	/* 10^14 executions beside a block that ran once. */
	struct mp_flow_block blocks[] = {
		{.samples = 3e14, .nr_insns = 1, .entry = true},
		{.samples = 3, .nr_insns = 1, .exit = true},
		{.samples = 3e14, .nr_insns = 1, .exit = true},
	};
	struct mp_flow_edge edges[] = {edge(0, 1), edge(0, 2)};
	struct mp_flow flow = FLOW(blocks, edges);
	double block[3], count[2];

	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
	check_conserved(&flow, block, count);
	ck_assert(fabs(block[2] - 1e14) < 1e10);
}

TEST(infer_scaled_divides_by_length)
{
	struct mp_flow_block blocks[] = {
		{.samples = 50, .nr_insns = 5, .entry = true},
		{.samples = 60, .nr_insns = 2, .exit = true},
		{.samples = 10, .nr_insns = 1, .exit = true},
		{.nr_insns = 0},
	};
	struct mp_flow_edge edges[] = {edge(0, 1), edge(0, 2)};
	struct mp_flow flow = FLOW(blocks, edges);
	double block[4], count[2];

	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_SCALED, block, count, NULL), 0);
	check_near(block[0], 10);
	check_near(block[1], 30);
	check_near(count[0], 7.5);
	check_near(count[1], 2.5);
	check_near(block[3], 0);
}

TEST(infer_refuses_nonsense)
{
	struct mp_flow_block block = {.samples = 1, .nr_insns = 1, .entry = true, .exit = true};
	struct mp_flow_edge bad = edge(0, 1);
	struct mp_flow flow = {.blocks = &block,
			       .nr_blocks = 1,
			       .edges = &bad,
			       .nr_edges = 1,
			       .layout_prior = false};
	double b, e;

	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, &b, &e, &err), -EINVAL);
	ck_assert_str_ne(err.msg, "");
	flow.nr_edges = 0;
	block.samples = NAN;
	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, &b, &e, &err), -EINVAL);
	block.samples = 1;
	flow.transfer_weight = NAN;
	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, &b, &e, &err), -EINVAL);
	flow.transfer_weight = 0;
	block.samples = -1;
	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, &b, &e, &err), -EINVAL);
	flow.nr_blocks = 0;
	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, &b, &e, &err), 0);
}

/* Walks a random graph: the taken transfers alone determine all counts. */
TEST(infer_finds_all_counts_from_transfers_alone)
{
	enum {
		NR = 30
	};
	struct mp_flow_block blocks[NR];
	struct mp_flow_edge edges[2 * NR];
	double block[NR], count[2 * NR], true_block[NR], true_edge[2 * NR];

	seed = 11;
	for (int round = 0; round < 100; round++) {
		struct mp_flow flow = {.blocks = blocks,
				       .nr_blocks = NR,
				       .edges = edges,
				       .nr_edges = 2 * (NR - 1),
				       .layout_prior = round % 2,
				       .unsampled = true,
				       .transfer_weight = 1};

		memset(true_block, 0, sizeof(true_block));
		memset(true_edge, 0, sizeof(true_edge));
		/* Each block but the last falls through or branches to a random block. */
		for (uint32_t b = 0; b < NR; b++)
			blocks[b] = (struct mp_flow_block){
				.nr_insns = 5, .entry = b == 0, .exit = b == NR - 1};
		for (uint32_t b = 0; b < NR - 1; b++) {
			edges[2 * b] = edge(b, b + 1);
			edges[2 * b + 1] = edge(b, random_below(NR));
			edges[2 * b + 1].taken = edges[2 * b + 1].counted = true;
		}
		for (int run = 0; run < 50; run++) {
			for (uint32_t at = 0;; at = edges[2 * at + random_below(3) / 2].to) {
				true_block[at]++;
				if (at == NR - 1)
					break;
				/* Choose the edge by the same random number as the step. */
				uint64_t before = seed;

				true_edge[2 * at + random_below(3) / 2]++;
				seed = before;
			}
		}
		/* The entry runs 50 times, as a call count would show. */
		blocks[0].samples = true_block[0];
		blocks[0].more_insns = 1;
		for (uint32_t e = 0; e < flow.nr_edges; e++)
			edges[e].transfers = edges[e].counted ? true_edge[e] : 0;
		ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
		check_conserved(&flow, block, count);
		for (uint32_t b = 0; b < NR; b++)
			check_near(block[b], true_block[b]);
		for (uint32_t e = 0; e < flow.nr_edges; e++)
			check_near(count[e], true_edge[e]);
	}
}

TEST(infer_believes_transfers_over_noisy_samples)
{
	/* 0 -> 1 or 2 -> 3: the samples are even, but 900 of 1,000 transfers go to 2. */
	struct mp_flow_block blocks[] = {
		{.samples = 1000, .nr_insns = 9, .entry = true},
		{.samples = 500, .nr_insns = 9},
		{.samples = 500, .nr_insns = 9},
		{.samples = 1000, .nr_insns = 9, .exit = true},
	};
	struct mp_flow_edge edges[] = {edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 3)};
	struct mp_flow flow = FLOW(blocks, edges, .layout_prior = true);
	double block[4], count[4];

	edges[1].taken = edges[1].counted = true;
	edges[1].transfers = 90000;
	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
	ck_assert_msg(count[1] <= 51, "%g without a weight", count[1]);
	flow.transfer_weight = 1000;
	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
	ck_assert_msg(count[1] > 80 && count[1] < 95, "%g", count[1]);
}

/* Two paths from the first block to the last, a long and a short one, without samples. */
TEST(infer_goes_through_a_block_of_which_nothing_is_known)
{
	struct mp_flow_block blocks[] = {
		{.samples = 100, .nr_insns = 10, .entry = true},
		{.nr_insns = 20},
		{.nr_insns = 5},
		{.samples = 100, .nr_insns = 10, .exit = true},
	};
	const struct mp_flow_edge edges[] = {edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 3)};
	const struct mp_flow flow = FLOW(blocks, edges);
	double block[4], count[4];

	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
	ck_assert(block[1] == 0 && block[2] > 1);
	/* The short one was known before and had no samples; nothing is known of the long one. */
	blocks[1].unknown = true;
	ck_assert_int_eq(mp_infer_flow(&flow, MP_ESTIMATE_POISSON, block, count, NULL), 0);
	ck_assert(block[1] > 1 && block[2] == 0);
	check_conserved(&flow, block, count);
}
