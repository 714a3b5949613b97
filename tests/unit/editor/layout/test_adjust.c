// SPDX-License-Identifier: Apache-2.0
/* test_adjust - what adjustments of single functions change in a plan, and how their text is read. */
#include "tests/unit/suite.h"

#include "editor/layout/adjust.h"
#include "editor/layout/adjust_text.h"
#include "tests/support/toycfg.h"

static struct toy toy;
static struct me_plan plan;
static struct me_instrumentation added;
static struct me_adjustment wishes[TOY_MAX];

/*
 * f is blocks 0 to 5: 2 is the head of a loop to 4; 3 is a loop inside; 5 returns. g is 6, h is 7.
 * In the plan, 5 is warm.
 */
static void build(double inner, double outer)
{
	static const uint32_t hot[] = {0, 1, 2, 3, 4, 6, 7}, warm[] = {5};

	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_FALL, 1}, {MP_TERM_FALL, 1}, {MP_TERM_FALL, outer},
		   {MP_TERM_COND, inner}, {MP_TERM_COND, outer}, {MP_TERM_RET, 1});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 1}, {1, 2, MP_EDGE_FALL, 1},
		  {2, 3, MP_EDGE_FALL, outer}, {3, 3, MP_EDGE_TAKEN, inner},
		  {3, 4, MP_EDGE_FALL, outer}, {4, 2, MP_EDGE_TAKEN, outer},
		  {4, 5, MP_EDGE_FALL, 1});
	toy_func(&toy, "g");
	toy_block(&toy, MP_TERM_RET, 1);
	toy_func(&toy, "h");
	toy_block(&toy, MP_TERM_RET, 1);
	toy_finish(&toy);
	memset(wishes, 0, sizeof(wishes));
	plan = (struct me_plan){.line_log2 = 6};
	plan.blocks = calloc(TOY_MAX, sizeof(*plan.blocks));
	for (size_t i = 0; i < 7; i++)
		plan.blocks[plan.nr_blocks++] = (struct me_plan_block){
			.block = hot[i], .align_log2 = hot[i] % 6 == 0 ? 4 : 0, .run = 2};
	plan.blocks[plan.nr_blocks++] =
		(struct me_plan_block){.block = warm[0], .zone = ME_ZONE_WARM};
}

static void want(uint32_t func, enum me_adjust_kind kind, uint16_t bytes)
{
	ck_assert_int_eq(me_adjustment_add(&wishes[func], kind, bytes), 0);
}

static void adjust(bool counted)
{
	ck_assert_int_eq(me_adjust_plan(&toy.cfg, counted ? &toy.counts : NULL, wishes, &plan,
					&added, &err),
			 0);
}

/* Is the plan's order @want? w before a number: in the warm zone; s: a stub. */
static void ck_order(const char *want)
{
	char got[200] = "";

	for (uint32_t i = 0; i < plan.nr_blocks; i++)
		sprintf(got + strlen(got), "%s%s%s%u", i ? " " : "",
			plan.blocks[i].zone == ME_ZONE_WARM ? "w" : "",
			plan.blocks[i].stub ? "s" : "", plan.blocks[i].block);
	ck_assert_str_eq(got, want);
}

static void ck_place(uint32_t i, uint8_t align_log2, uint8_t offset, uint8_t new_line)
{
	const struct me_plan_block *b = &plan.blocks[i];

	ck_assert_msg(b->align_log2 == align_log2 && b->align_offset == offset &&
			      b->new_line == new_line,
		      "%u: %u plus %u, line %u", i, b->align_log2, b->align_offset, b->new_line);
}

TEST(adjust_without_wishes_changes_nothing)
{
	struct me_plan_block before[8];

	build(9, 3);
	memcpy(before, plan.blocks, sizeof(before));
	adjust(true);
	ck_order("0 1 2 3 4 6 7 w5");
	ck_assert_int_eq(memcmp(before, plan.blocks, sizeof(before)), 0);
	ck_assert_uint_eq(added.nr_stubs, 0);
	ck_assert_uint_eq(wishes[0].loop, MP_NONE);
	me_plan_fini(&plan);
	me_instrumentation_fini(&added);
}

TEST(adjust_places_the_start_and_the_hottest_loop)
{
	build(9, 3);
	want(0, ME_ADJUST_START, 16);
	want(0, ME_ADJUST_LOOP, 40);
	want(2, ME_ADJUST_START, 0);
	adjust(true);
	ck_order("0 1 2 3 4 6 7 w5");
	ck_place(0, 6, 16, 0);
	ck_place(3, 6, 40, 0);
	ck_place(5, 4, 0, 0);
	ck_place(6, 6, 0, 0);
	ck_assert_uint_eq(plan.blocks[0].run + plan.blocks[3].run + plan.blocks[6].run, 0);
	ck_assert_uint_eq(plan.blocks[1].run, 2);
	ck_assert_uint_eq(wishes[0].done, wishes[0].kinds);
	ck_assert_uint_eq(wishes[0].loop, 3);
	ck_assert_uint_eq(wishes[2].loop, MP_NONE);
	me_plan_fini(&plan);
	me_instrumentation_fini(&added);

	build(2, 3);
	want(0, ME_ADJUST_LOOP, 1);
	adjust(true);
	ck_assert_uint_eq(wishes[0].loop, 2);
	ck_place(2, 6, 1, 0);
	me_plan_fini(&plan);
	me_instrumentation_fini(&added);
}

TEST(adjust_takes_an_innermost_loop_where_nothing_was_counted)
{
	for (int counted = 0; counted < 2; counted++) {
		build(0, 0);
		want(0, ME_ADJUST_LOOP, 8);
		adjust(counted);
		ck_assert_uint_eq(wishes[0].loop, 3);
		ck_place(3, 6, 8, 0);
		me_plan_fini(&plan);
		me_instrumentation_fini(&added);
	}
}

TEST(adjust_says_where_there_is_no_loop_to_place)
{
	build(9, 3);
	want(1, ME_ADJUST_LOOP, 8);
	want(1, ME_ADJUST_START, 9);
	adjust(true);
	ck_assert_uint_eq(wishes[1].done, 1 << ME_ADJUST_START);
	ck_place(5, 6, 9, 0);
	me_plan_fini(&plan);
	me_instrumentation_fini(&added);
	/* The loop of g begins where g begins. */
	build(9, 3);
	toy.blocks[6].nr_edges = 1;
	toy.blocks[6].first_edge = toy.cfg.nr_edges;
	toy.edges[toy.cfg.nr_edges] = (struct mp_edge){.from = 6, .to = 6};
	want(1, ME_ADJUST_LOOP, 8);
	want(1, ME_ADJUST_START, 9);
	adjust(false);
	ck_assert_uint_eq(wishes[1].loop, 6);
	ck_assert_uint_eq(wishes[1].done, 1 << ME_ADJUST_START);
	ck_place(5, 6, 9, 0);
	me_plan_fini(&plan);
	me_instrumentation_fini(&added);
}

TEST(adjust_restores_the_original_order)
{
	build(9, 3);
	/* The order of the plan: 0 3 4(clone) 2 1 4, then 5 in the warm zone. */
	plan.blocks[1].block = 3;
	plan.blocks[2].block = 4;
	plan.blocks[2].clone = true;
	plan.blocks[3].block = 2;
	memmove(&plan.blocks[5], &plan.blocks[4], 4 * sizeof(*plan.blocks));
	plan.blocks[4].block = 1;
	plan.nr_blocks++;
	want(0, ME_ADJUST_ORIGINAL, 0);
	want(0, ME_ADJUST_START, 5);
	adjust(true);
	ck_order("0 1 2 3 4 5 6 7");
	ck_place(0, 6, 5, 0);
	for (uint32_t i = 0; i < 6; i++) {
		ck_assert_uint_eq(plan.blocks[i].why, ME_WHY_ORIGINAL);
		ck_assert_uint_eq(plan.blocks[i].run, 0);
	}
	ck_assert_uint_eq(wishes[0].done, wishes[0].kinds);
	me_plan_fini(&plan);
	me_instrumentation_fini(&added);
}

TEST(adjust_puts_a_function_alone_at_the_end_of_its_zone)
{
	build(9, 3);
	want(0, ME_ADJUST_END, 0);
	adjust(true);
	ck_order("6 7 0 1 2 3 4 w5");
	ck_place(0, 4, 0, 0);
	ck_place(2, 6, 0, 1);
	ck_place(7, 0, 0, 1); /* begins another line, for the end to be alone */
	me_plan_fini(&plan);
	me_instrumentation_fini(&added);
	/* Two at the end, one of them with a start. */
	build(9, 3);
	want(0, ME_ADJUST_END, 0);
	want(1, ME_ADJUST_END, 0);
	want(1, ME_ADJUST_START, 48);
	adjust(true);
	ck_order("7 0 1 2 3 4 6 w5");
	ck_place(1, 6, 0, 1);
	ck_place(6, 6, 48, 1);
	ck_place(7, 0, 0, 1);
	me_plan_fini(&plan);
	me_instrumentation_fini(&added);
}

TEST(adjust_waits_in_each_round_or_at_the_entry)
{
	build(9, 3);
	plan.blocks[4].clone = true;
	want(0, ME_ADJUST_WAIT, 100);
	want(0, ME_ADJUST_LOOP, 7);
	want(1, ME_ADJUST_WAIT, 5);
	adjust(true);
	ck_order("0 1 2 s3 3 s6 6 7 w5");
	ck_assert_uint_eq(added.nr_stubs, 2);
	ck_assert_uint_eq(added.stubs[0].does, ME_STUB_WAITS);
	ck_assert_uint_eq(added.stubs[0].arrivals, ME_STUB_ALL);
	ck_assert_int_eq(added.stubs[0].value, 100);
	ck_assert_int_eq(added.stubs[1].value, 5);
	ck_place(3, 6, 7, 0); /* the loop begins with its nops */
	ck_place(4, 0, 0, 0);
	ck_place(5, 4, 0, 0);
	ck_place(6, 0, 0, 0);
	me_plan_fini(&plan);
	me_instrumentation_fini(&added);
}

TEST(adjust_concerns_warm_copies_of_functions_that_have_no_others)
{
	build(9, 3);
	plan.blocks[6].zone = ME_ZONE_WARM; /* h */
	want(2, ME_ADJUST_START, 3);
	want(2, ME_ADJUST_END, 0);
	adjust(true);
	ck_order("0 1 2 3 4 6 w5 w7");
	ck_place(7, 6, 3, 1);
	me_plan_fini(&plan);
	me_instrumentation_fini(&added);
}

TEST(adjust_takes_no_contradictions)
{
	struct me_adjustment a = {0}, b = {0};

	ck_assert_int_eq(me_adjustment_add(&a, ME_ADJUST_START, 64), -EINVAL);
	ck_assert_int_eq(me_adjustment_add(&a, ME_ADJUST_LOOP, 64), -EINVAL);
	ck_assert_int_eq(me_adjustment_add(&a, ME_ADJUST_WAIT, 0), -EINVAL);
	ck_assert_int_eq(me_adjustment_add(&a, ME_ADJUST_WAIT, ME_ADJUST_WAIT_MAX + 1), -EINVAL);
	ck_assert_int_eq(me_adjustment_add(&a, ME_ADJUST_END, 1), -EINVAL);
	ck_assert_int_eq(me_adjustment_add(&a, ME_NR_ADJUSTS, 0), -EINVAL);
	ck_assert_uint_eq(a.kinds, 0);
	ck_assert_int_eq(me_adjustment_add(&a, ME_ADJUST_START, 63), 0);
	ck_assert_int_eq(me_adjustment_add(&a, ME_ADJUST_START, 63), 0);
	ck_assert_int_eq(me_adjustment_add(&a, ME_ADJUST_START, 0), -EINVAL);
	ck_assert_int_eq(me_adjustment_add(&a, ME_ADJUST_STAY, 0), -EINVAL);
	ck_assert_int_eq(me_adjustment_add(&a, ME_ADJUST_WAIT, ME_ADJUST_WAIT_MAX), 0);
	ck_assert_int_eq(me_adjustment_add(&b, ME_ADJUST_STAY, 0), 0);
	ck_assert_int_eq(me_adjustment_add(&b, ME_ADJUST_STAY, 0), 0);
	ck_assert_int_eq(me_adjustment_add(&b, ME_ADJUST_END, 0), -EINVAL);
	ck_assert_uint_eq(a.bytes[ME_ADJUST_START], 63);
}

TEST(adjust_text_is_read_and_written)
{
	static const struct {
		const char *text;
		size_t name_len;
		enum me_adjust_kind kind;
		uint16_t bytes;
	} good[] = {
		{"f:start=0", 1, ME_ADJUST_START, 0},
		{"0x10:loop=63", 4, ME_ADJUST_LOOP, 63},
		{"*:order=original", 1, ME_ADJUST_ORIGINAL, 0},
		{"a:b:end", 3, ME_ADJUST_END, 0},
		{"x=1:stay", 3, ME_ADJUST_STAY, 0},
		{"f:wait=4096", 1, ME_ADJUST_WAIT, 4096},
	};
	static const char *const bad[] = {
		"",	      "f",	     "f:",
		":start=1",   "f:start",     "f:start=",
		"f:start=64", "f:start=-1",  "f:start= 1",
		"f:start=1x", "f:start=0x1", "f:loop=99999",
		"f:wait=0",   "f:wait=4097", "f:wait=65537",
		"f:end=1",    "f:order=",    "f:order=ph",
		"f:Stay",     "f:stay ",     "f:start=18446744073709551617",
	};
	char out[ME_ADJUST_TEXT_MAX];
	struct me_adjust wish;
	size_t len;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct me_adjustment a = {0};

		ck_assert_int_eq(me_adjust_parse(good[i].text, &len, &wish, &err), 0);
		ck_assert_uint_eq(len, good[i].name_len);
		ck_assert_uint_eq(wish.kind, good[i].kind);
		ck_assert_uint_eq(wish.bytes, good[i].bytes);
		ck_assert_int_eq(me_adjustment_add(&a, wish.kind, wish.bytes), 0);
		ck_assert_str_eq(me_adjust_format(&a, wish.kind, out), good[i].text + len + 1);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(me_adjust_parse(bad[i], &len, &wish, &err) == -EINVAL, "%s", bad[i]);
}
