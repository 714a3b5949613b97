// SPDX-License-Identifier: Apache-2.0
/* test_delta - deltas come back, damaged ones give an error or the same bytes, and options are checked. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/fleet/builds/build_options.h"
#include "daemon/fleet/builds/delta.h"
#include "tests/unit/suite.h"

#define ORIGINAL_SIZE 40000
#define OUTPUT_SIZE   60000

static uint8_t original[ORIGINAL_SIZE], output[OUTPUT_SIZE];

/* The output is the original, some of it changed, and more behind it. */
static void fill(void)
{
	uint32_t state = 1;

	for (size_t i = 0; i < ORIGINAL_SIZE; i++)
		original[i] = (uint8_t)((state = state * 1664525 + 1013904223) >> 24);
	memcpy(output, original, ORIGINAL_SIZE);
	memcpy(output + ORIGINAL_SIZE, original + 5000, OUTPUT_SIZE - ORIGINAL_SIZE);
	for (size_t i = 100; i < OUTPUT_SIZE; i += 1000)
		output[i] ^= 0x5a;
}

static int apply(const uint8_t *delta, size_t size, size_t output_size, uint8_t *got)
{
	int fd = memfd_create("output", MFD_CLOEXEC);
	struct mp_err err = {""};
	int r = md_delta_apply(original, ORIGINAL_SIZE, delta, size, fd, output_size, &err);

	if (!r)
		ck_assert_int_eq(pread(fd, got, output_size, 0), (ssize_t)output_size);
	else
		ck_assert_str_ne(err.msg, "");
	close(fd);
	return r;
}

START_TEST(delta_comes_back_and_is_small)
{
	uint8_t *delta, got[OUTPUT_SIZE];
	struct mp_err err;
	size_t size;

	fill();
	ck_assert_int_eq(md_delta_make(original, ORIGINAL_SIZE, output, OUTPUT_SIZE, &delta, &size,
				       &err),
			 0);
	/* The original's bytes are random: nothing else could make it so small. */
	ck_assert_uint_lt(size, 2000);
	ck_assert_int_eq(apply(delta, size, OUTPUT_SIZE, got), 0);
	ck_assert_mem_eq(got, output, OUTPUT_SIZE);
	free(delta);
}
END_TEST

START_TEST(damaged_delta_is_an_error_or_changes_nothing)
{
	uint8_t *delta, got[OUTPUT_SIZE + 1];
	size_t size, nr_errors = 0, nr_changed = 0;
	struct mp_err err;

	fill();
	ck_assert_int_eq(md_delta_make(original, ORIGINAL_SIZE, output, OUTPUT_SIZE, &delta, &size,
				       &err),
			 0);
	for (size_t i = 0; i < size; i += 1 + size / 150) {
		int r;

		delta[i] ^= 0x11;
		r = apply(delta, size, OUTPUT_SIZE, got);
		ck_assert(!r || r == -EBADMSG);
		nr_errors += r != 0;
		nr_changed += !r && memcmp(got, output, OUTPUT_SIZE) != 0;
		delta[i] ^= 0x11;
	}
	/* Most changes give other bytes, which the hash tells; some are no frame any more. */
	ck_assert_uint_gt(nr_errors, 0);
	ck_assert_uint_gt(nr_changed, 0);
	ck_assert_int_eq(apply(delta, size - 1, OUTPUT_SIZE, got), -EBADMSG);
	ck_assert_int_eq(apply(delta, size, OUTPUT_SIZE - 1, got), -EBADMSG);
	ck_assert_int_eq(apply(delta, size, OUTPUT_SIZE + 1, got), -EBADMSG);
	ck_assert_int_eq(apply(delta, 3, OUTPUT_SIZE, got), -EBADMSG);
	free(delta);
}
END_TEST

/* A frame that says that it is a gigabyte of zeros, or without its size, writes no byte behind the output. */
START_TEST(delta_that_unpacks_to_more_is_refused)
{
	size_t large = 32 << 20, size;
	uint8_t *zeros = calloc(1, large), *delta, got[1000];
	struct mp_err err;

	fill();
	ck_assert_ptr_nonnull(zeros);
	ck_assert_int_eq(md_delta_make(original, ORIGINAL_SIZE, zeros, large, &delta, &size, &err),
			 0);
	ck_assert_uint_lt(size, 10000);
	ck_assert_int_eq(apply(delta, size, sizeof(got), got), -EBADMSG);
	free(delta);
	free(zeros);
}
END_TEST

START_TEST(options_without_files_are_allowed)
{
	static const char *const good[] = {"",
					   "--all",
					   "--layout=blocks=exttsp,functions=ph",
					   "--only=f,g --min-samples=7",
					   "--stress-layout=3",
					   "  --all  "};
	struct md_build_options o;
	struct mp_err err;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert_msg(!md_build_options_parse(good[i], &o, &err), "%s", good[i]);
	ck_assert_uint_eq(o.nr, 1);
	ck_assert(o.no_profile);
	ck_assert_ptr_null(o.words[1]);
}
END_TEST

START_TEST(other_options_are_refused)
{
	static const char *const bad[] = {
		"--output=x",
		"-o",
		"-ox",
		"prog",
		"--db=/tmp/x",
		"--only=@/etc/passwd",
		"--only=a/b",
		"--all=x",
		"--only",
		"--only=",
		"--",
		"--in-place",
		"--fleet=x",
		"--skip=a;b",
		"--adjust=a\nb",
		"--lay",
		"--layout",
		"--debug-file=auto",
		"--threads=900",
		"--stale=x",
		"--program=x",
		"--audited=x",
		"--layoutx=blocks",
		"verify",
	};
	char *const words[] = {(char *)"--only=a b"};
	struct md_build_options o;
	char text[1001], longest[1100];
	struct mp_err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(md_build_options_parse(bad[i], &o, &err) == -EINVAL, "%s", bad[i]);
	ck_assert_int_eq(md_build_options_join(words, 1, &o, text, &err), -EINVAL);
	memset(longest, 'a', sizeof(longest));
	memcpy(longest, "--only=", 7);
	longest[sizeof(longest) - 1] = '\0';
	ck_assert_int_eq(md_build_options_parse(longest, &o, &err), -EINVAL);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("delta");
	TCase *tc = tcase_create("builds");

	tcase_add_test(tc, delta_comes_back_and_is_small);
	tcase_add_test(tc, damaged_delta_is_an_error_or_changes_nothing);
	tcase_add_test(tc, delta_that_unpacks_to_more_is_refused);
	tcase_add_test(tc, options_without_files_are_allowed);
	tcase_add_test(tc, other_options_are_refused);
	suite_add_tcase(s, tc);
	return s;
}

MORPH_SUITE_MAIN(suite)
