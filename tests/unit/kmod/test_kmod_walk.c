// SPDX-License-Identifier: Apache-2.0
/*
 * test_kmod_walk - the kernel module's walks, which remember, against the reference's, and its
 * check of rows.
 */
#include <inttypes.h>

#include "tests/support/kmod_walk.h"
#include "tests/support/stack_model.h"
#include "tests/unit/suite.h"

#define NR_BYTES 20000
#define NR_RUNS	 60

static struct stack_model_totals run(unsigned int seed)
{
	struct stack_model_totals totals = {0};
	static uint8_t bytes[NR_BYTES];

	srand(seed);
	bytes[0] = (uint8_t)seed; /* every second program damages its stack */
	for (size_t i = 1; i < NR_BYTES; i++)
		bytes[i] = (uint8_t)(rand() >> 8);
	stack_model_run(bytes, NR_BYTES, &totals);
	return totals;
}

TEST_EACH(remembering_walk_is_the_reference_and_lies_about_no_age, NR_RUNS)
{
	struct stack_model_totals t = run((unsigned int)_i + 1);

	ck_assert_uint_gt(t.samples, 100);
	ck_assert_msg(!t.wrong, "%" PRIu64 " of %" PRIu64 " walks differ", t.wrong, t.samples);
	ck_assert_msg(!t.lied, "%" PRIu64 " calls are old, but said to be new", t.lied);
}

TEST(most_frames_are_read_again_and_most_new_calls_are_told)
{
	struct stack_model_totals sum = {0}, t;

	for (unsigned int i = 0; i < NR_RUNS; i++) {
		t = run(i + 1000);
		sum.samples += t.samples;
		sum.frames += t.frames;
		sum.read_again += t.read_again;
		sum.aged += t.aged;
		sum.new_frames += t.new_frames;
		sum.said_new += t.said_new;
		sum.complete += t.complete;
	}
	printf("%" PRIu64 " samples, %" PRIu64 " complete, %" PRIu64 " aged; %" PRIu64
	       " frames, %" PRIu64 " read again; %" PRIu64 " of %" PRIu64 " new calls told\n",
	       sum.samples, sum.complete, sum.aged, sum.frames, sum.read_again, sum.said_new,
	       sum.new_frames);
	ck_assert_uint_gt(sum.complete * 4, sum.samples);
	ck_assert_uint_gt(sum.aged * 2, sum.samples);
	ck_assert_uint_gt(sum.read_again * 4, sum.frames);
	ck_assert_uint_gt(sum.said_new * 2, sum.new_frames);
}
