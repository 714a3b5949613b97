// SPDX-License-Identifier: Apache-2.0
/*
 * test_choose - the rate derived from the cost of a sample, and measuring with a source that
 * costs nothing.
 */
#include "daemon/morphd/choose.h"

#include "tests/unit/suite.h"

#define PROMISE_PPM 3000 /* 0.3 % */

static const struct md_cost costs[] = {
	{15000, 1500, 500000, 0},
	{1, 0, 0, 0},
	{0, 0, 0, 0},
	{2000, 500, 10000, 0},
	{40000, 1500, 100000, 0},
	{150000, 1500, 0, 0},
	{13999, 1499, 1000000, 0},
	{9, 9, 2399999, 0},
};

static bool is_prime(uint32_t n)
{
	uint32_t d;

	for (d = 2; d < n; d++)
		if (n % d == 0)
			return false;
	return n > 1;
}

TEST_EACH(rate_costs_less_than_what_is_promised, sizeof(costs) / sizeof(costs[0]))
{
	const struct md_cost *cost = &costs[_i];
	uint32_t rate = md_choose_rate(cost);

	ck_assert(is_prime(rate));
	ck_assert_uint_ge(rate, 11);
	ck_assert_uint_le(rate, 1021);
	ck_assert_msg(md_choose_share_ppm(cost, rate) < PROMISE_PPM, "%u Hz take %u ppm", rate,
		      md_choose_share_ppm(cost, rate));
}

/*
 * The rate is not lower than necessary: twice the rate would exceed the promise, unless out of
 * bounds.
 */
TEST(rate_uses_most_of_what_is_promised)
{
	const struct md_cost cost = {15000, 1500, 500000, 0};
	uint32_t rate = md_choose_rate(&cost);

	ck_assert_uint_gt(md_choose_share_ppm(&cost, rate), PROMISE_PPM * 7 / 10);
}

TEST(rate_has_a_floor_where_samples_are_dear)
{
	const struct md_cost dear = {10000000, 0, 0, 0}, busy = {15000, 1500, 900000000, 0};

	ck_assert_uint_eq(md_choose_rate(&dear), 11);
	ck_assert_uint_eq(md_choose_rate(&busy), 11);
}

TEST(rate_falls_when_the_cost_rises)
{
	struct md_cost cost = {500, 1500, 100000, 0};
	uint32_t before = md_choose_rate(&cost), rate;

	for (; cost.interrupt_ns < 1000000; cost.interrupt_ns += 977) {
		rate = md_choose_rate(&cost);
		ck_assert_uint_le(rate, before);
		before = rate;
	}
}

TEST(share_is_of_samples_and_of_waking)
{
	const struct md_cost cost = {14000, 1000, 500000, 0};

	/* 100 x 15 us + 500 us = 2 ms per second */
	ck_assert_uint_eq(md_choose_share_ppm(&cost, 100), 2000);
	ck_assert_uint_eq(md_choose_share_ppm(&cost, 0), 500);
}

TEST(ways_of_branches_are_part_of_the_budget)
{
	const struct md_cost alone = {13000, 500, 500000, 0}, with = {13000, 500, 500000, 400000},
			     dear = {0, 0, 0, 2400000};

	ck_assert_uint_eq(md_choose_rate(&alone), 139);
	ck_assert_uint_eq(md_choose_rate(&with), 109);
	ck_assert_uint_eq(md_choose_share_ppm(&with, 109), 2371);
	ck_assert_uint_eq(md_choose_rate(&dear), 11);
}

TEST(reasons_name_the_rate_and_the_cost)
{
	const struct md_cost cost = {14000, 1000, 500000, 0}, with = {14000, 1000, 500000, 400000};
	char text[200];

	md_choose_describe(&cost, 100, "", text, sizeof(text));
	ck_assert_str_eq(text, "100 Hz, 0.20 % of each CPU: a sample costs 15.0 us");
	md_choose_describe(&cost, 100, "bpf: cheap", text, sizeof(text));
	ck_assert_str_eq(text, "bpf: cheap; 100 Hz, 0.20 % of each CPU: a sample costs 15.0 us");
	md_choose_describe(&with, 100, "", text, sizeof(text));
	ck_assert_str_eq(
		text,
		"100 Hz, 0.24 % of each CPU: a sample costs 15.0 us, ways of branches 0.04 %");
}

/* ---- a source that does nothing, or fails --------------------------------------------------- */

struct fake {
	struct md_source source;
	struct morph_lost record; /* the samples, delivered once */
	bool given, pause_fails;
	unsigned int nr_switches;
};

static int fake_pause(struct md_source *source, bool on, struct mp_err *err)
{
	struct fake *f = (struct fake *)source;

	(void)on;
	f->nr_switches++;
	return f->pause_fails ? mp_err_set(err, EIO, "broken") : 0;
}

static int fake_next(struct md_source *source, int timeout_ms, bool drain, struct md_batch *batch,
		     struct mp_err *err)
{
	struct fake *f = (struct fake *)source;

	(void)timeout_ms;
	(void)err;
	ck_assert(drain);
	*batch = (struct md_batch){0};
	if (!f->given && f->record.nr)
		*batch = (struct md_batch){(uint8_t *)&f->record, sizeof(f->record)};
	f->given = true;
	return 0;
}

static const struct md_source_ops fake_ops = {
	.name = "fake",
	.is_live = true,
	.next = fake_next,
	.pause = fake_pause,
};

static struct fake make_fake(uint64_t nr)
{
	return (struct fake){
		.source = {.ops = &fake_ops},
		.record = {.record = {sizeof(struct morph_lost), MORPH_REC_LOST, 0}, .nr = nr},
	};
}

TEST(measuring_switches_on_and_off_in_turn)
{
	struct fake f = make_fake(100000);
	struct md_cost cost;

	ck_assert_int_eq(md_choose_measure(&f.source, false, &cost, &err), 0);
	ck_assert_uint_eq(cost.ways_ns, 0);
	ck_assert_uint_eq(f.nr_switches % 2, 0);
	ck_assert_uint_ge(f.nr_switches, 10);
	ck_assert_uint_gt(cost.interrupt_ns, 0);
	/* Samples without cost: at most a thousandth of the time. */
	ck_assert_uint_le(cost.interrupt_ns, 1000);
}

TEST(measuring_says_that_no_samples_came)
{
	struct fake f = make_fake(0);
	struct md_cost cost;

	ck_assert_int_eq(md_choose_measure(&f.source, false, &cost, &err), -ENODATA);
	ck_assert_str_eq(err.msg, "no samples arrived");
}

TEST(measuring_passes_on_what_went_wrong)
{
	struct fake f = make_fake(100);
	struct md_cost cost;

	f.pause_fails = true;
	ck_assert_int_eq(md_choose_measure(&f.source, false, &cost, &err), -EIO);
	ck_assert_str_eq(err.msg, "broken");
}
