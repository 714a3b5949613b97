// SPDX-License-Identifier: Apache-2.0
/* test_last_paths - the address inside of what looks old, of the same thread and program only. */
#include "daemon/context/last_paths.h"

#include "tests/unit/suite.h"

static struct md_last_paths *paths;
static const struct morph_task task = {.tgid = 7, .tid = 9, .exec_id = 3};
static const uint64_t path[] = {40, 30, 20, 10}; /* innermost first */
static bool is_sample;

static void setup(void)
{
	paths = md_last_paths_new();
	ck_assert_ptr_nonnull(paths);
	md_last_paths_put(paths, &task, path, 4);
}

static void teardown(void)
{
	md_last_paths_free(paths);
}

FIXTURE(setup, teardown);

TEST(address_inside_of_the_old_ones_is_found)
{
	const uint64_t now[] = {50, 31, 20, 10};

	ck_assert_uint_eq(md_last_paths_inner(paths, &task, now, 4, 2, &is_sample), 30);
	ck_assert(!is_sample);
	ck_assert_uint_eq(md_last_paths_inner(paths, &task, now, 4, 1, &is_sample), 20);
	ck_assert_uint_eq(md_last_paths_inner(paths, &task, path, 4, 3, &is_sample), 40);
	ck_assert(is_sample);
	/* All of the last path looks old: nothing was inside of it. */
	ck_assert_uint_eq(md_last_paths_inner(paths, &task, path, 4, 4, &is_sample), 0);
}

TEST(another_path_outside_says_that_a_record_is_missing)
{
	const uint64_t now[] = {50, 30, 20, 11};

	ck_assert_uint_eq(md_last_paths_inner(paths, &task, now, 4, 2, &is_sample), 0);
	ck_assert_uint_eq(md_last_paths_inner(paths, &task, now, 4, 5, &is_sample), 0);
}

TEST(another_thread_or_program_is_not_known)
{
	struct morph_task other = task;

	other.tid++;
	ck_assert_uint_eq(md_last_paths_inner(paths, &other, path, 4, 2, &is_sample), 0);
	other = task;
	other.tgid++;
	ck_assert_uint_eq(md_last_paths_inner(paths, &other, path, 4, 2, &is_sample), 0);
	other = task;
	other.exec_id++;
	ck_assert_uint_eq(md_last_paths_inner(paths, &other, path, 4, 2, &is_sample), 0);
}

TEST(forgotten_path_is_not_known)
{
	md_last_paths_put(paths, &task, path, 0);
	ck_assert_uint_eq(md_last_paths_inner(paths, &task, path, 4, 2, &is_sample), 0);
}

/* Threads with the deepest stacks come and go: what is remembered stays within its limit. */
TEST(paths_stay_within_their_bytes)
{
	static uint64_t deep[8000];
	struct morph_task other = task;
	uint32_t known = 0;

	for (uint32_t i = 0; i < 8000; i++)
		deep[i] = i + 1;
	for (uint32_t i = 0; i < 500; i++) {
		other.tid = 1000 + i;
		md_last_paths_put(paths, &other, deep, 8000 - i);
	}
	for (uint32_t i = 0; i < 500; i++) {
		other.tid = 1000 + i;
		known += md_last_paths_inner(paths, &other, deep, 8000 - i, 1, &is_sample) != 0;
	}
	ck_assert_uint_ge(known, 5);
	ck_assert_uint_le(known, MD_LAST_PATHS_BYTES / (7500 * 8));
	/* Shallow stacks take the room back. */
	for (uint32_t i = 0; i < 500; i++) {
		other.tid = 1000 + i;
		md_last_paths_put(paths, &other, path, 4);
		ck_assert_uint_eq(md_last_paths_inner(paths, &other, path, 4, 2, &is_sample), 30);
	}
}
