// SPDX-License-Identifier: Apache-2.0
/* test_srcfile - lines of source files, and which files are not shown. */
#include <fcntl.h>
#include <sys/stat.h>

#include "daemon/code/srcfile.h"
#include "tests/unit/files.h"

static char path[] = "/tmp/morph-srcfile-XXXXXX";
static struct md_srcfiles files;

static void setup(void)
{
	int fd;

	strcpy(path + sizeof(path) - 7, "XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void teardown(void)
{
	md_srcfiles_fini(&files);
	memset(&files, 0, sizeof(files));
	unlink(path);
}

static void expect_line(int line, const char *want)
{
	size_t len = 0;
	const char *text = md_srcfile_line(md_srcfiles_get(&files, path), line, &len);

	if (!want) {
		ck_assert_ptr_null(text);
		return;
	}
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_eq(len, strlen(want));
	ck_assert_int_eq(memcmp(text, want, len), 0);
}

FIXTURE(setup, teardown);

TEST(srcfile_gives_each_line_without_its_end)
{
	write_file(path, "one\ntwo\r\n\nlast", 14);
	expect_line(0, NULL);
	expect_line(-1, NULL);
	expect_line(1, "one");
	expect_line(2, "two");
	expect_line(3, "");
	expect_line(4, "last");
	expect_line(5, NULL);
}

TEST(srcfile_may_be_empty_or_a_single_end)
{
	write_file(path, "", 0);
	expect_line(1, NULL);
	md_srcfiles_fini(&files);
	write_file(path, "\n", 1);
	expect_line(1, "");
	expect_line(2, NULL);
}

TEST(srcfile_written_after_the_build_is_not_shown)
{
	struct stat st;

	write_file(path, "one\n", 4);
	ck_assert_int_eq(stat(path, &st), 0);
	files.built_s = st.st_mtime - 1;
	expect_line(1, NULL);
	ck_assert_ptr_nonnull(md_srcfiles_get(&files, path)->why);
	md_srcfiles_fini(&files);
	files.built_s = st.st_mtime;
	expect_line(1, "one");
	ck_assert_ptr_null(md_srcfiles_get(&files, path)->why);
}

TEST(srcfile_that_is_no_file_is_not_read)
{
	const struct md_srcfile *file;

	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0); /* a FIFO without a writer */
	file = md_srcfiles_get(&files, path);
	ck_assert_ptr_nonnull(file);
	ck_assert_ptr_null(file->text);
	ck_assert_ptr_nonnull(file->why);
	file = md_srcfiles_get(&files, "/no/such/source.c");
	ck_assert_ptr_null(file->text);
	ck_assert_ptr_null(file->why);
	file = md_srcfiles_get(&files, "/");
	ck_assert_ptr_null(file->text);
}
