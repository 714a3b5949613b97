// SPDX-License-Identifier: Apache-2.0
/*
 * test_infile - whatever a name leads to, opening it does not wait, and reading its lines ends.
 */
#include "tests/unit/files.h"
#include "tests/unit/scratch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "libprof/base/infile.h"

static void setup(void)
{
	scratch_make();
	ck_assert_int_eq(chdir(dir), 0);
}

FIXTURE(setup, scratch_remove);

TEST(infile_refuses_what_would_wait_or_is_no_file)
{
	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	ck_assert_int_eq(mp_infile_open("fifo", &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "fifo: a FIFO"));
	ck_assert_int_eq(mp_infile_open(".", &err), -EISDIR);
	ck_assert_str_eq(err.msg, ".: Is a directory");
	ck_assert_int_eq(mp_infile_open("none", &err), -ENOENT);
	ck_assert_str_eq(err.msg, "none: No such file or directory");
}

TEST(infile_takes_files_devices_and_pipes_of_a_shell)
{
	char name[32], c;
	int fds[2], fd;

	write_file("file", "x", 1);
	fd = mp_infile_open("file", &err);
	ck_assert_int_ge(fd, 0);
	close(fd);
	fd = mp_infile_open("/dev/null", &err);
	ck_assert_int_ge(fd, 0);
	close(fd);
	/* As <(COMMAND) is named. Reading waits for the writer, as it should. */
	ck_assert_int_eq(pipe(fds), 0);
	snprintf(name, sizeof(name), "/dev/fd/%d", fds[0]);
	fd = mp_infile_open(name, &err);
	ck_assert_msg(fd >= 0, "%s", err.msg);
	ck_assert_int_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_eq(write(fds[1], "y", 1), 1);
	ck_assert_int_eq(read(fd, &c, 1), 1);
	ck_assert_int_eq(c, 'y');
	close(fd);
	close(fds[0]);
	close(fds[1]);
}

TEST(infile_regular_takes_only_files)
{
	uint64_t size = 1;
	int fd;

	ck_assert_int_eq(mp_infile_regular("/dev/zero", &size, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "/dev/zero: not a regular file");
	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	ck_assert_int_eq(mp_infile_regular("fifo", &size, &err), -EINVAL);
	write_file("file", "abc", 3);
	fd = mp_infile_regular("file", &size, &err);
	ck_assert_int_ge(fd, 0);
	ck_assert_uint_eq(size, 3);
	close(fd);
}

TEST(infile_reads_lines)
{
	static const char text[] = "one\r\n\ntwo";
	AUTO_FREE char *line = NULL;
	size_t room = 0;
	FILE *in;

	write_file("file", text, strlen(text));
	ck_assert_int_eq(mp_infile_stream("file", &in, &err), 0);
	ck_assert_int_eq(mp_infile_line(in, &line, &room), 1);
	ck_assert_str_eq(line, "one");
	ck_assert_int_eq(mp_infile_line(in, &line, &room), 1);
	ck_assert_str_eq(line, "");
	ck_assert_int_eq(mp_infile_line(in, &line, &room), 1);
	ck_assert_str_eq(line, "two");
	ck_assert_int_eq(mp_infile_line(in, &line, &room), 0);
	fclose(in);
}

TEST(infile_line_ends_where_no_text_has_a_line)
{
	char *line = NULL, *much;
	size_t room = 0;
	FILE *in;

	ck_assert_int_eq(mp_infile_stream("/dev/zero", &in, &err), 0);
	ck_assert_int_eq(mp_infile_line(in, &line, &room), -EILSEQ);
	ck_assert_str_eq(mp_infile_why(-EILSEQ), "not text");
	fclose(in);
	much = malloc(MP_LINE_MAX + 2);
	ck_assert_ptr_nonnull(much);
	memset(much, 'x', MP_LINE_MAX + 2);
	much[MP_LINE_MAX - 1] = '\n';
	write_file("long", much, MP_LINE_MAX + 2);
	much[MP_LINE_MAX - 1] = 'x';
	write_file("longer", much, MP_LINE_MAX + 2);
	free(much);
	ck_assert_int_eq(mp_infile_stream("long", &in, &err), 0);
	ck_assert_int_eq(mp_infile_line(in, &line, &room), 1);
	ck_assert_uint_eq(strlen(line), MP_LINE_MAX - 1);
	fclose(in);
	ck_assert_int_eq(mp_infile_stream("longer", &in, &err), 0);
	ck_assert_int_eq(mp_infile_line(in, &line, &room), -EFBIG);
	fclose(in);
	free(line);
}
