// SPDX-License-Identifier: Apache-2.0
/* test_publish - publish and output_parts: an output appears complete or not at all. */
#include <check.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "editor/emit/publish.h"
#include "tests/unit/files.h"
#include "tests/unit/scratch.h"

static char input[256], output[256];

static void put_file(const char *path, const char *text, mode_t mode)
{
	write_text(path, text);
	ck_assert_int_eq(chmod(path, mode), 0);
}

static void setup(void)
{
	scratch_make();
	snprintf(input, sizeof(input), "%s/in", dir);
	snprintf(output, sizeof(output), "%s/out", dir);
	put_file(input, "original", 04751);
}

FIXTURE(setup, scratch_remove);

TEST(parts_keep_offsets_and_fill_gaps_with_zeros)
{
	AUTO(me_output_parts_fini) struct me_output_parts parts = {0};
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
}

TEST(publish_shows_nothing_before_commit)
{
	AUTO(me_output_parts_fini) struct me_output_parts parts = {0};
	struct me_publish publish;
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
	ck_assert_int_eq(nr_files_below(dir), 2);
}

TEST(publish_leaves_nothing_behind_without_commit)
{
	struct me_publish publish;

	put_file(output, "older output", 0644);
	ck_assert_int_eq(me_publish_begin(&publish, input, output, &err), 0);
	ck_assert_int_eq(nr_files_below(dir), 3);
	me_publish_end(&publish);
	ck_assert_int_eq(nr_files_below(dir), 2);
}

TEST(publish_refuses_to_overwrite_its_input)
{
	struct me_publish publish;
	char alias[256];

	snprintf(alias, sizeof(alias), "%s/alias", dir);
	ck_assert_int_eq(link(input, alias), 0);
	ck_assert_int_eq(me_publish_begin(&publish, input, alias, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "input itself"));
	ck_assert_int_eq(nr_files_below(dir), 2);
}

/* Otherwise `-o /dev/null` as root would replace the device by a file. */
TEST(publish_replaces_regular_files_only)
{
	struct me_publish publish;
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
	ck_assert_int_eq(nr_files_below(dir), 1);
}

TEST(publish_tells_of_a_limit_on_the_size_of_files)
{
	struct rlimit before, limit;
	AUTO(me_output_parts_fini) struct me_output_parts parts = {0};
	struct me_publish publish;

	ck_assert_int_eq(me_output_parts_add(&parts, (const uint8_t *)"12345678", 8, 1, 0, NULL),
			 0);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){4, before.rlim_max};
	ck_assert_int_eq(me_publish_begin(&publish, input, output, &err), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(me_publish_write(&publish, &parts, &err), -EFBIG);
	me_publish_end(&publish);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
	ck_assert_int_eq(nr_files_below(dir), 1);
}

TEST(publish_says_which_directory_is_missing)
{
	struct me_publish publish;

	ck_assert_int_eq(me_publish_begin(&publish, input, "/nowhere/at/all", &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.msg, "/nowhere/at/all"));
}
