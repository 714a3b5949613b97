// SPDX-License-Identifier: Apache-2.0
/* test_entries - counts of arrivals at old addresses, and the decisions that follow from them. */
#include <math.h>

#include "editor/layout/entries.h"
#include "editor/layout/predict.h"
#include "tests/unit/suite.h"
#include "tests/support/toycfg.h"

static struct toy toy;
static struct me_entries entries;
static const struct mp_entry_samples *samples;
static uint8_t redirected[TOY_MAX];

/*
 * f: 0 -> 1 (30) or 2 (70); 1 jumps to 3; 2 falls into 3; 3 returns. The order 0 2 3 1 has 60
 * taken branches instead of 100. g calls f @calls times.
 */
static void program(double calls)
{
	samples = NULL;
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 100}, {MP_TERM_JUMP, 30}, {MP_TERM_FALL, 70},
		   {MP_TERM_RET, 100});
	toy_func(&toy, "g");
	toy_block(&toy, MP_TERM_RET, calls);
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 30}, {0, 2, MP_EDGE_TAKEN, 70},
		  {1, 3, MP_EDGE_JUMP, 30}, {2, 3, MP_EDGE_FALL, 70});
	toy_call(&toy, 4, 0);
	toy_finish(&toy);
	toy.funcs[0].flags = MP_FUNC_ADDRESS_TAKEN;
	for (uint32_t i = 0; i < TOY_MAX; i++)
		redirected[i] = 0;
}

static void arrivals_are(double f, double g)
{
	ck_assert_int_eq(me_entries_count(&toy.cfg, &toy.counts, samples, redirected, NULL,
					  &entries, &err),
			 0);
	ck_assert(fabs(entries.arrivals[0] - f) < 1e-9);
	ck_assert(fabs(entries.arrivals[1] - g) < 1e-9);
}

/* Return: true if a plan of both functions keeps f. */
static bool stays_planned(void)
{
	struct me_plan_block list[] = {
		{.block = 0}, {.block = 2}, {.block = 3}, {.block = 1}, {.block = 4}};
	struct me_plan plan = {.blocks = list, .nr_blocks = 5};

	ck_assert_int_eq(me_entries_drop_costly(&toy.cfg, &toy.counts, &entries, &plan, &err), 0);
	ck_assert(!entries.dropped[1]);
	ck_assert_uint_eq(plan.nr_blocks, entries.dropped[0] ? 1 : 5);
	ck_assert_uint_eq(plan.blocks[plan.nr_blocks - 1].block, 4);
	me_entries_fini(&entries);
	return !plan.blocks[0].block;
}

TEST(entries_are_what_no_direct_call_explains)
{
	program(75);
	arrivals_are(25, 0);
	ck_assert(stays_planned());
	program(100);
	arrivals_are(0, 0);
	ck_assert(stays_planned());
	/* More calls than entries: an error of the counts; no arrivals by pointer. */
	program(130);
	arrivals_are(0, 0);
	me_entries_fini(&entries);
}

TEST(entries_by_pointers_outweigh_what_a_copy_saves)
{
	program(50);
	arrivals_are(50, 0);
	ck_assert(!stays_planned());
	/* They cost as much as the copy saves: there is no gain. */
	program(60);
	arrivals_are(40, 0);
	ck_assert(!stays_planned());
}

TEST(entries_cost_nothing_where_no_old_address_is_left)
{
	program(0);
	redirected[0] = 1;
	arrivals_are(0, 0);
	ck_assert(stays_planned());
	program(0);
	toy.funcs[0].flags = 0;
	arrivals_are(0, 0);
	ck_assert(stays_planned());
	program(0);
	toy.funcs[0].flags = MP_FUNC_POINTED;
	arrivals_are(100, 0);
	ck_assert(!stays_planned());
}

TEST(entries_of_functions_with_few_samples_stay_old)
{
	for (uint64_t samples = 4; samples <= 400; samples *= 10) {
		program(90);
		toy.counts.exact = false;
		toy.samples[0] = samples;
		arrivals_are(10, 0);
		/* By the counts it saves 40. Close to this, few samples may be wrong by chance. */
		ck_assert(stays_planned());
		program(75);
		toy.counts.exact = false;
		toy.samples[0] = samples;
		arrivals_are(25, 0);
		ck_assert(stays_planned() == (samples > 4));
	}
}

TEST(entries_are_at_most_what_callers_in_samples_show)
{
	double direct[TOY_MAX] = {0}, other[TOY_MAX] = {0};
	const struct mp_entry_samples seen = {.direct = direct, .other = other};

	/* By the counts, 50 of 100 entries come by pointer. By samples, at most (0 + 1/2) / (24 + 1) do. */
	program(50);
	toy.counts.exact = false;
	toy.samples[0] = 400;
	samples = &seen;
	direct[0] = 24;
	arrivals_are(2, 0);
	ck_assert(stays_planned());
	/* Samples that all came by pointer do not make arrivals of entries that direct calls explain. */
	other[0] = 1000;
	arrivals_are(50, 0);
	ck_assert(!stays_planned());
	/* No sample of f has a caller. */
	direct[0] = other[0] = 0;
	arrivals_are(50, 0);
	me_entries_fini(&entries);
	/* Exact counts need no samples. */
	direct[0] = 24;
	toy.counts.exact = true;
	arrivals_are(50, 0);
	me_entries_fini(&entries);
}

TEST(entries_through_a_table_that_stays_are_counted)
{
	struct mp_table table = {.block = 0, .func = 0, .private_refs = true};
	struct mp_elf elf = {.relinkable = true};

	for (int i = 0; i < 3; i++) {
		program(100);
		toy.cfg.elf = &elf;
		toy.cfg.tables = &table;
		toy.cfg.nr_tables = 1;
		toy.blocks[0].term = MP_TERM_TABLE;
		toy.blocks[0].table = 0;
		toy.edges[0].kind = toy.edges[1].kind = MP_EDGE_TABLE;
		table.private_refs = i != 1;
		table.vaddr = i == 2 ? 0x2002 : 0x2000;
		arrivals_are(i ? 100 : 0, 0);
		me_entries_fini(&entries);
	}
}

TEST(entries_are_predicted)
{
	struct me_plan_block list[] = {{.block = 0}, {.block = 2}, {.block = 3}, {.block = 1}};
	struct me_plan plan = {.blocks = list, .nr_blocks = 4};
	struct me_prediction prediction;

	program(75);
	arrivals_are(25, 0);
	ck_assert_int_eq(me_layout_predict(&toy.cfg, &toy.counts, &plan, entries.arrivals,
					   &prediction, &err),
			 0);
	ck_assert(prediction.taken_after == 85 && fabs(prediction.ratio - 0.85) < 1e-9);
	/* A function that does not move has no patch. */
	plan.nr_blocks = 0;
	ck_assert_int_eq(me_layout_predict(&toy.cfg, &toy.counts, &plan, entries.arrivals,
					   &prediction, &err),
			 0);
	ck_assert(prediction.ratio == 1);
	me_entries_fini(&entries);
}
