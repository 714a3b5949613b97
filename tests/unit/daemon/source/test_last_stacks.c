// SPDX-License-Identifier: Apache-2.0
/* test_last_stacks - which activations of a thread's stack are certainly new since its last one. */
#include "daemon/source/last_stacks.h"

#include "tests/unit/suite.h"

static struct md_last_stacks *last;

static void setup(void)
{
	last = md_last_stacks_new();
	ck_assert_ptr_nonnull(last);
}

static void teardown(void)
{
	md_last_stacks_free(last);
}

#define UNKNOWN (-1)

/* Compares a stack of {slot, address} pairs, innermost first. Return: how many look old. */
static int compare(uint32_t tid, const uint64_t (*frames)[2], size_t nr, bool is_complete)
{
	uint64_t slots[1024], ips[1024];
	size_t nr_old;

	for (size_t i = 0; i < nr; i++) {
		slots[i] = frames[i][0];
		ips[i] = frames[i][1];
	}
	if (!md_last_stacks_compare(last, tid, &(struct md_stack){slots, ips, nr, is_complete},
				    &nr_old))
		return UNKNOWN;
	return (int)nr_old;
}

#define COMPARE(tid, complete, ...)                                                                \
	compare(tid, (const uint64_t[][2]){__VA_ARGS__},                                           \
		sizeof((const uint64_t[][2]){__VA_ARGS__}) / sizeof(uint64_t[2]), complete)

FIXTURE(setup, teardown);

TEST(first_stack_of_a_thread_tells_nothing)
{
	ck_assert_int_eq(COMPARE(1, true, {0x80, 5}, {0x100, 1}), UNKNOWN);
	ck_assert_int_eq(COMPARE(2, true, {0x80, 5}, {0x100, 1}), UNKNOWN);
	ck_assert_int_eq(COMPARE(1, true, {0x80, 5}, {0x100, 1}), 2);
}

TEST(frames_up_to_the_first_difference_look_old)
{
	COMPARE(1, true, {0x40, 9}, {0x60, 7}, {0x80, 5}, {0x100, 1});
	/* Another return address in the same slot, and one more call. */
	ck_assert_int_eq(COMPARE(1, true, {0x20, 3}, {0x40, 9}, {0x60, 8}, {0x80, 5}, {0x100, 1}),
			 2);
	/* The stack is shorter: nothing is new. */
	ck_assert_int_eq(COMPARE(1, true, {0x80, 5}, {0x100, 1}), 2);
	ck_assert_int_eq(COMPARE(1, true, {0x60, 8}, {0x80, 5}, {0x100, 1}), 2);
}

TEST(frames_below_a_new_frame_are_new_though_they_look_alike)
{
	/* main calls f from another site; f calls x, and x calls h, as before. */
	COMPARE(1, true, {0x40, 9}, {0x60, 7}, {0x80, 5}, {0x100, 1});
	ck_assert_int_eq(COMPARE(1, true, {0x40, 9}, {0x60, 7}, {0x80, 6}, {0x100, 1}), 1);
}

TEST(frame_of_another_size_is_new)
{
	COMPARE(1, true, {0x40, 9}, {0x80, 5}, {0x100, 1});
	ck_assert_int_eq(COMPARE(1, true, {0x38, 9}, {0x80, 5}, {0x100, 1}), 2);
}

TEST(another_stack_tells_nothing)
{
	COMPARE(1, true, {0x40, 9}, {0x100, 1});
	ck_assert_int_eq(COMPARE(1, true, {0x5040, 9}, {0x5100, 1}), UNKNOWN);
	ck_assert_int_eq(COMPARE(1, false, {0x40, 9}, {0x80, 1}), UNKNOWN);
}

TEST(stacks_that_were_cut_are_compared_by_their_slots)
{
	COMPARE(1, false, {0x40, 9}, {0x60, 7}, {0x80, 5}, {0x100, 1});
	ck_assert_int_eq(COMPARE(1, false, {0x20, 2}, {0x40, 9}, {0x60, 7}, {0x80, 5}), 3);
	/* 0x70 lies where the last walk looked, and was no frame's. */
	ck_assert_int_eq(COMPARE(1, false, {0x40, 9}, {0x70, 7}), 0);
	/* The last walk did not reach 0x100. */
	ck_assert_int_eq(COMPARE(1, false, {0x40, 9}, {0x100, 1}), UNKNOWN);
}

TEST(walk_without_callers_is_the_last_one_too)
{
	size_t nr_old;

	COMPARE(1, true, {0x80, 5}, {0x100, 1});
	ck_assert(!md_last_stacks_compare(last, 1, &(struct md_stack){0}, &nr_old));
	/* What that walk would have met is not known. */
	ck_assert_int_eq(COMPARE(1, true, {0x80, 6}, {0x100, 1}), UNKNOWN);
	ck_assert_int_eq(COMPARE(1, true, {0x80, 6}, {0x100, 1}), 2);
}

TEST(memory_stays_within_its_limit)
{
	static uint64_t frames[1024][2];

	for (size_t i = 0; i < 1024; i++)
		frames[i][0] = 8 * i;
	for (uint32_t tid = 1; tid < 500; tid++)
		compare(tid, frames, 1024, true);
	/* The first stacks fill it; later threads are not remembered, and no stack is misjudged. */
	ck_assert_int_eq(compare(1, frames, 1024, true), 1024);
	ck_assert_int_eq(compare(499, frames, 1024, true), UNKNOWN);
	ck_assert_int_eq(compare(499, frames, 1024, true), UNKNOWN);
}
