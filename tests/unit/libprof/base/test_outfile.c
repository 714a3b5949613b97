// SPDX-License-Identifier: Apache-2.0
/*
 * test_outfile - an output appears whole or not at all, and never in place of an input.
 */
#include "tests/unit/files.h"
#include "tests/unit/scratch.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "libprof/base/outfile.h"

static void setup(void)
{
	scratch_make();
	ck_assert_int_eq(chdir(dir), 0);
}

static void put(const char *name, const char *text)
{
	struct mp_outfile out;

	ck_assert_msg(!mp_outfile_open(name, NULL, &out, &err), "%s", err.msg);
	fputs(text, out.file);
	ck_assert_int_eq(mp_outfile_commit(&out, &err), 0);
}

FIXTURE(setup, scratch_remove);

TEST(outfile_without_room_leaves_the_old_file)
{
	struct rlimit no_room = {.rlim_cur = 8, .rlim_max = RLIM_INFINITY};
	struct mp_outfile out;

	put("file", "old");
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &no_room), 0);
	ck_assert_int_eq(mp_outfile_open("file", NULL, &out, &err), 0);
	fputs("more than eight bytes", out.file);
	ck_assert_int_eq(mp_outfile_commit(&out, &err), -EFBIG);
	ck_assert_str_eq(err.msg, "file: File too large");
	file_holds("file", "old");
	ck_assert_int_eq(nr_files_below("."), 1);
	ck_assert_int_eq(mp_outfile_open("file", NULL, &out, &err), 0);
	fputs("new", out.file);
	mp_outfile_abandon(&out);
	file_holds("file", "old");
	ck_assert_int_eq(nr_files_below("."), 1);
}

TEST(outfile_never_is_an_input)
{
	static const char *const names[] = {"input", "./input", "hard", "soft"};
	const char *inputs[] = {"missing", "input", NULL};

	put("input", "precious");
	ck_assert_int_eq(link("input", "hard"), 0);
	ck_assert_int_eq(symlink("input", "soft"), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ck_assert_int_eq(mp_outfile_check(names[i], inputs, &err), -EINVAL);
		ck_assert_ptr_nonnull(strstr(err.msg, "is the input input itself"));
	}
	/* Neither exists yet, but both are one file. */
	ck_assert_int_eq(mp_outfile_check("missing", inputs, &err), -EINVAL);
	ck_assert_int_eq(mp_outfile_check("other", inputs, &err), 0);
	ck_assert_int_eq(mp_outfile_check(NULL, inputs, &err), 0);
	/* A device may be both. */
	inputs[0] = "/dev/null";
	ck_assert_int_eq(mp_outfile_check("/dev/null", inputs, &err), 0);
	ck_assert_int_eq(nr_files_below("."), 3);
	file_holds("input", "precious");
}

TEST(outfile_check_finds_what_would_fail_later)
{
	const char *inputs[] = {NULL};
	char longest[512];

	ck_assert_int_eq(mp_outfile_check(".", inputs, &err), -EISDIR);
	ck_assert_int_eq(mp_outfile_check("none/file", inputs, &err), -ENOENT);
	ck_assert_str_eq(err.msg, "none/file: No such file or directory");
	ck_assert_int_eq(mp_outfile_check("", inputs, &err), -ENOENT);
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	ck_assert_int_eq(mp_outfile_check(longest, inputs, &err), -ENAMETOOLONG);
	ck_assert_int_eq(nr_files_below("."), 0);
}

TEST(outfile_waits_for_no_reader)
{
	struct mp_outfile out;

	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	ck_assert_int_eq(mp_outfile_open("fifo", NULL, &out, &err), -ENXIO);
	ck_assert_str_eq(err.msg, "fifo: a FIFO that no program reads");
}
