// SPDX-License-Identifier: Apache-2.0
/*
 * test_export_callcost - inclusive costs of calls in hand-made call graphs.
 */
#include "daemon/export/export_callcost.h"
#include "tests/unit/suite.h"
#include "tests/support/toycfg.h"

static struct toy toy;
static struct md_callcost cost;
static const struct md_code code = {.cfg = &toy.cfg};
static const struct md_export_module module = {.code = &code, .inferred = &toy.counts};

static void teardown(void)
{
	md_callcost_fini(&cost);
}

/* Return: cost of the call number @call. No two calls have the same caller and callee. */
static uint64_t cost_of(uint32_t call)
{
	const struct mp_call *made = &toy.calls[call];

	for (size_t i = 0; i < cost.nr_calls; i++)
		if (cost.calls[i].caller == toy.blocks[made->block].func &&
		    cost.calls[i].callee == made->callee)
			return md_callcost_of(&cost, &cost.calls[i]);
	ck_abort_msg("call %u is not there", call);
}

FIXTURE(NULL, teardown);

TEST(callcost_shares_by_how_often_each_calls)
{
	/* main calls a once and b three times; both call leaf: a 10 times, b 30 times. */
	const uint64_t samples[] = {1, 2, 3, 400};
	uint32_t m, a, b;

	toy_start(&toy, "main");
	m = toy_block(&toy, MP_TERM_RET, 1);
	toy_func(&toy, "a");
	a = toy_block(&toy, MP_TERM_RET, 10);
	toy_func(&toy, "b");
	b = toy_block(&toy, MP_TERM_RET, 30);
	toy_func(&toy, "leaf");
	toy_block(&toy, MP_TERM_RET, 40);
	toy_call(&toy, m, 1);
	toy_call(&toy, m, 2);
	toy_call(&toy, a, 3);
	toy_call(&toy, b, 3);
	toy_finish(&toy);
	/* a is entered ten times, nine of them by unknown callers. */
	ck_assert_int_eq(md_callcost_init(&cost, &module, samples), 0);
	ck_assert_uint_eq(cost_of(2), 100);
	ck_assert_uint_eq(cost_of(3), 300);
	ck_assert_uint_eq(cost_of(0), 10); /* a tenth of a's 2 + 100 */
	ck_assert_uint_eq(cost_of(1), 10); /* a thirtieth of b's 3 + 300 */
}

TEST(callcost_takes_cycles_together)
{
	/* main -> even <-> odd -> leaf; calls inside the cycle cost nothing extra. */
	const uint64_t samples[] = {5, 10, 20, 100};
	uint32_t m, even, odd;

	toy_start(&toy, "main");
	m = toy_block(&toy, MP_TERM_RET, 2);
	toy_func(&toy, "even");
	even = toy_block(&toy, MP_TERM_RET, 8);
	toy_func(&toy, "odd");
	odd = toy_block(&toy, MP_TERM_RET, 6);
	toy_func(&toy, "leaf");
	toy_block(&toy, MP_TERM_RET, 6);
	toy_call(&toy, m, 1);
	toy_call(&toy, even, 2);
	toy_call(&toy, odd, 1);
	toy_call(&toy, odd, 3);
	toy_finish(&toy);
	ck_assert_int_eq(md_callcost_init(&cost, &module, samples), 0);
	ck_assert_uint_eq(cost_of(0), 130);
	ck_assert_uint_eq(cost_of(1), 0);
	ck_assert_uint_eq(cost_of(2), 0);
	ck_assert_uint_eq(cost_of(3), 100);
}

TEST(callcost_survives_a_deep_chain_and_itself)
{
	static uint64_t samples[TOY_MAX];
	uint32_t nr = TOY_MAX - 2;

	toy_init(&toy);
	for (uint32_t i = 0; i < nr; i++) {
		toy_func(&toy, "f");
		toy_block(&toy, MP_TERM_RET, 1);
		samples[i] = 1;
	}
	for (uint32_t i = 0; i + 1 < nr; i++)
		toy_call(&toy, i, i + 1);
	toy_call(&toy, nr - 1, nr - 1);
	toy_finish(&toy);
	ck_assert_int_eq(md_callcost_init(&cost, &module, samples), 0);
	ck_assert_uint_eq(cost_of(0), nr - 1);
	ck_assert_uint_eq(cost_of(nr - 2), 1);
	ck_assert_uint_eq(cost_of(nr - 1), 0);
}

TEST(callcost_knows_calls_that_lead_nowhere)
{
	const uint64_t samples[] = {7};
	uint32_t m;

	toy_start(&toy, "main");
	m = toy_block(&toy, MP_TERM_RET, 2);
	toy_call(&toy, m, MP_NONE);
	toy_finish(&toy);
	ck_assert_int_eq(md_callcost_init(&cost, &module, samples), 0);
	ck_assert_uint_eq(cost.nr_calls, 0);
}
