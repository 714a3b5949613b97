// SPDX-License-Identifier: Apache-2.0
/*
 * test_agreement - the measures and draws of scripts/bench/accuracy, compared with values computed by
 * hand.
 */
#include <math.h>

#include "tests/unit/suite.h"
#include "tests/support/agreement.h"
#include "tests/support/draw.h"
#include "tests/support/toycfg.h"

static struct toy toy;
static double blocks[TOY_MAX], edges[TOY_MAX];

/* 0 -> 1 (30) or 2 (70); 1 jumps to 3; 2 falls into 3; 3 returns. */
static void diamond(void)
{
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 100}, {MP_TERM_JUMP, 30}, {MP_TERM_FALL, 70},
		   {MP_TERM_RET, 100});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 30}, {0, 2, MP_EDGE_TAKEN, 70},
		  {1, 3, MP_EDGE_JUMP, 30}, {2, 3, MP_EDGE_FALL, 70});
	toy_finish(&toy);
}

static struct agreement measure(void)
{
	const struct mp_counts estimate = {.block = blocks, .edge = edges};
	struct agreement out;

	ck_assert_int_eq(agreement_measure(&toy.cfg, &estimate, &toy.counts, toy.eligible, &out),
			 0);
	return out;
}

static void is(double a, double b)
{
	ck_assert_msg(fabs(a - b) < 1e-9, "%.12g is not %.12g", a, b);
}

TEST(agreement_of_equal_shares_is_one)
{
	struct agreement a;

	diamond();
	for (uint32_t i = 0; i < 4; i++) {
		blocks[i] = toy.block_counts[i] * 7;
		edges[i] = toy.edge_counts[i] * 7;
	}
	a = measure();
	is(a.blocks, 1);
	is(a.inside, 1);
	is(a.relative, 1);
	is(a.absolute, 1);
	is(a.hot, 1);
}

TEST(agreement_takes_the_smaller_share)
{
	struct agreement a;

	diamond();
	memcpy(blocks, (double[]){4, 2, 2, 4}, 4 * sizeof(double));
	memcpy(edges, (double[]){2, 2, 2, 2}, 4 * sizeof(double));
	a = measure();
	/* Shares of 300: 1/3, 0.1, 0.7/3, 1/3; of 12: 1/3, 1/6, 1/6, 1/3. */
	is(a.blocks, 2 / 3.0 + 0.1 + 1 / 6.0);
	is(a.inside, a.blocks);
	is(a.relative, 1 - fabs(0.5 - 0.7));
	is(a.absolute, 0.3 + 0.5);
}

TEST(agreement_without_an_estimate_is_a_guess)
{
	struct agreement a;

	diamond();
	memset(blocks, 0, sizeof(blocks));
	memset(edges, 0, sizeof(edges));
	a = measure();
	is(a.blocks, 0);
	is(a.absolute, 0);
	is(a.hot, 0);
	is(a.relative, 1 - fabs(0.5 - 0.7));
}

/* If a branch may leave its function, only one of its ways is an edge. */
TEST(agreement_knows_the_way_out)
{
	struct agreement a;

	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 100}, {MP_TERM_RET, 20});
	toy_edge(&toy, 0, 1, MP_EDGE_FALL, 20);
	toy_finish(&toy);
	memcpy(blocks, (double[]){10, 5}, 2 * sizeof(double));
	memcpy(edges, (double[]){5}, sizeof(double));
	a = measure();
	is(a.relative, 1 - fabs(0.5 - 0.8));
	is(a.absolute, 0.2 + 0.5);
}

TEST(agreement_matches_as_many_blocks_as_are_hot)
{
	toy_start(&toy, "f");
	for (uint32_t i = 0; i < 5; i++)
		toy_block(&toy, MP_TERM_RET, (double[]){6000, 4000, 5, 0, 3}[i]);
	toy_finish(&toy);
	memset(edges, 0, sizeof(edges));
	/*
	 * 5 of 10,008 is not hot. Two blocks are hot, and the estimate's two hottest include
	 * one of them.
	 */
	memcpy(blocks, (double[]){9, 1, 0, 8, 0}, 5 * sizeof(double));
	is(measure().hot, 0.6);
	memcpy(blocks, (double[]){1, 9, 0, 8, 0}, 5 * sizeof(double));
	is(measure().hot, 0.4);
	/* A block without an estimate is not found, even if fewer than two are found. */
	memcpy(blocks, (double[]){1, 0, 0, 0, 0}, 5 * sizeof(double));
	is(measure().hot, 0.6);
}

TEST(agreement_is_of_the_functions_asked_for)
{
	struct agreement a;

	diamond();
	toy_func(&toy, "g");
	toy_block(&toy, MP_TERM_RET, 1e6);
	toy_finish(&toy);
	for (uint32_t i = 0; i < 4; i++) {
		blocks[i] = toy.block_counts[i];
		edges[i] = toy.edge_counts[i];
	}
	blocks[4] = 0;
	a = measure();
	ck_assert(a.blocks < 0.001 && a.hot < 0.001);
	is(a.inside, 1);
	toy.eligible[1] = 0;
	a = measure();
	is(a.blocks, 1);
	is(a.hot, 1);
}

TEST(draws_have_their_mean_and_repeat)
{
	static const struct {
		uint64_t n;
		double p;
	} cases[] = {{1000, 0.3}, {20, 0.5}, {1000000000000, 1e-9}, {1000000, 0.4}, {50, 0.99}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double mean = (double)cases[i].n * cases[i].p, sum = 0, squares = 0;
		double variance = mean * (1 - cases[i].p);
		struct draw a, b;

		draw_init(&a, 5 + i);
		draw_init(&b, 5 + i);
		for (int k = 0; k < 4000; k++) {
			uint64_t x = draw_binomial(&a, cases[i].n, cases[i].p);

			ck_assert_uint_eq(x, draw_binomial(&b, cases[i].n, cases[i].p));
			ck_assert_uint_le(x, cases[i].n);
			sum += (double)x - mean;
			squares += ((double)x - mean) * ((double)x - mean);
		}
		/* Six standard errors; the seeds are fixed. */
		ck_assert(fabs(sum / 4000) < 6 * sqrt(variance / 4000));
		ck_assert(fabs(squares / 4000 / variance - 1) < 6 * sqrt(3.0 / 4000));
	}
}

TEST(draws_keep_all_or_nothing)
{
	struct draw d;

	draw_init(&d, 1);
	ck_assert_uint_eq(draw_binomial(&d, 17, 1), 17);
	ck_assert_uint_eq(draw_binomial(&d, 17, 1.5), 17);
	ck_assert_uint_eq(draw_binomial(&d, 17, 0), 0);
	ck_assert_uint_eq(draw_binomial(&d, 0, 0.5), 0);
}
