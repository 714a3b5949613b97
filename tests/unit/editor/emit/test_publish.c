// SPDX-License-Identifier: Apache-2.0
/* test_publish - publish and output_parts: an output appears complete or not at all. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "editor/emit/publish.h"
#include "tests/unit/suite.h"

static char dir[64], input[96], output[96];

static void put_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

static void setup(void)
{
	strcpy(dir, "/tmp/test_publish.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(input, sizeof(input), "%s/in", dir);
	snprintf(output, sizeof(output), "%s/out", dir);
	put_file(input, "original", 04751);
}

static void teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static int nr_files(void)
{
	char command[128];
	FILE *p;
	int n = -1;

	snprintf(command, sizeof(command), "ls -A %s | wc -l", dir);
	p = popen(command, "r");
	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(fscanf(p, "%d", &n), 1);
	pclose(p);
	return n;
}

START_TEST(parts_keep_offsets_and_fill_gaps_with_zeros)
{
	struct me_output_parts parts = {0};
	uint64_t off;
	char bytes[32];
	int fd;

	ck_assert_int_eq(me_output_parts_add(&parts, (const uint8_t *)"abc", 3, 1, 0, &off), 0);
	ck_assert_uint_eq(off, 0);
	ck_assert_int_eq(me_output_parts_add(&parts, (const uint8_t *)"de", 2, 8, 0, &off), 0);
	ck_assert_uint_eq(off, 8);
	ck_assert_uint_eq(parts.size_bytes, 10);
	fd = open(output, O_RDWR | O_CREAT | O_TRUNC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(me_output_parts_write(&parts, fd), 0);
	ck_assert_int_eq(pread(fd, bytes, sizeof(bytes), 0), 10);
	ck_assert_mem_eq(bytes, "abc\0\0\0\0\0de", 10);
	close(fd);
	me_output_parts_fini(&parts);
}
END_TEST

START_TEST(publish_shows_nothing_before_commit)
{
	struct me_output_parts parts = {0};
	struct me_publish publish;
	struct mp_err err;
	struct stat st;

	ck_assert_int_eq(me_output_parts_add(&parts, (const uint8_t *)"new", 3, 1, 0, NULL), 0);
	ck_assert_int_eq(me_publish_begin(&publish, input, output, &err), 0);
	ck_assert_int_eq(me_publish_write(&publish, &parts, &err), 0);
	ck_assert_int_eq(access(output, F_OK), -1);
	ck_assert_int_eq(me_publish_commit(&publish, &err), 0);
	me_publish_end(&publish);
	ck_assert_int_eq(stat(output, &st), 0);
	ck_assert_int_eq(st.st_size, 3);
	ck_assert_int_eq(st.st_mode & 07777, 0751); /* without set-user-id */
	ck_assert_int_eq(nr_files(), 2);
	me_output_parts_fini(&parts);
}
END_TEST

START_TEST(publish_leaves_nothing_behind_without_commit)
{
	struct me_publish publish;
	struct mp_err err;

	put_file(output, "older output", 0644);
	ck_assert_int_eq(me_publish_begin(&publish, input, output, &err), 0);
	ck_assert_int_eq(nr_files(), 3);
	me_publish_end(&publish);
	ck_assert_int_eq(nr_files(), 2);
}
END_TEST

START_TEST(publish_refuses_to_overwrite_its_input)
{
	struct me_publish publish;
	struct mp_err err;
	char alias[128];

	snprintf(alias, sizeof(alias), "%s/alias", dir);
	ck_assert_int_eq(link(input, alias), 0);
	ck_assert_int_eq(me_publish_begin(&publish, input, alias, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "input itself"));
	ck_assert_int_eq(nr_files(), 2);
}
END_TEST

/* Otherwise `-o /dev/null` as root would replace the device by a file. */
START_TEST(publish_replaces_regular_files_only)
{
	struct me_publish publish;
	struct mp_err err;
	struct stat st;

	ck_assert_int_eq(mkfifo(output, 0600), 0);
	ck_assert_int_eq(me_publish_begin(&publish, input, output, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "not a regular file"));
	ck_assert_int_eq(lstat(output, &st), 0);
	ck_assert(S_ISFIFO(st.st_mode));
	unlink(output);
	ck_assert_int_eq(symlink("elsewhere", output), 0);
	ck_assert_int_eq(me_publish_begin(&publish, input, output, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "symbolic link"));
	unlink(output);
	ck_assert_int_eq(me_publish_begin(&publish, input, dir, &err), -EISDIR);
	ck_assert_int_eq(nr_files(), 1);
}
END_TEST

START_TEST(publish_tells_of_a_limit_on_the_size_of_files)
{
	struct rlimit before, limit;
	struct me_output_parts parts = {0};
	struct me_publish publish;
	struct mp_err err;

	ck_assert_int_eq(me_output_parts_add(&parts, (const uint8_t *)"12345678", 8, 1, 0, NULL),
			 0);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){4, before.rlim_max};
	ck_assert_int_eq(me_publish_begin(&publish, input, output, &err), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(me_publish_write(&publish, &parts, &err), -EFBIG);
	me_publish_end(&publish);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
	ck_assert_int_eq(nr_files(), 1);
	me_output_parts_fini(&parts);
}
END_TEST

START_TEST(publish_says_which_directory_is_missing)
{
	struct me_publish publish;
	struct mp_err err;

	ck_assert_int_eq(me_publish_begin(&publish, input, "/nowhere/at/all", &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.msg, "/nowhere/at/all"));
}
END_TEST

static Suite *publish_suite(void)
{
	Suite *s = suite_create("publish");
	TCase *tc = tcase_create("publish");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, parts_keep_offsets_and_fill_gaps_with_zeros);
	tcase_add_test(tc, publish_shows_nothing_before_commit);
	tcase_add_test(tc, publish_leaves_nothing_behind_without_commit);
	tcase_add_test(tc, publish_refuses_to_overwrite_its_input);
	tcase_add_test(tc, publish_replaces_regular_files_only);
	tcase_add_test(tc, publish_tells_of_a_limit_on_the_size_of_files);
	tcase_add_test(tc, publish_says_which_directory_is_missing);
	suite_add_tcase(s, tc);
	return s;
}

MORPH_SUITE_MAIN(publish_suite)
