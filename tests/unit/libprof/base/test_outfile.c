// SPDX-License-Identifier: Apache-2.0
/*
 * test_outfile - an output appears whole or not at all, and never in place of an input.
 */
#include "tests/unit/suite.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/outfile.h"

static char dir[4096];

static void setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%s/outfile-test.XXXXXX", tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(chdir(dir), 0);
}

static void teardown(void)
{
	char command[sizeof(dir) + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(command), 0);
}

static int nr_files(void)
{
	DIR *d = opendir(".");
	int nr = 0;

	ck_assert_ptr_nonnull(d);
	for (struct dirent *e; (e = readdir(d));)
		nr += e->d_name[0] != '.' || strlen(e->d_name) > 2;
	closedir(d);
	return nr;
}

static void put(const char *name, const char *text)
{
	struct mp_outfile out;
	struct mp_err err = {""};

	ck_assert_msg(!mp_outfile_open(name, NULL, &out, &err), "%s", err.msg);
	fputs(text, out.file);
	ck_assert_int_eq(mp_outfile_commit(&out, &err), 0);
}

static void holds(const char *name, const char *text)
{
	char found[64] = "";
	FILE *in = fopen(name, "r");

	ck_assert_ptr_nonnull(in);
	ck_assert_uint_eq(fread(found, 1, sizeof(found) - 1, in), strlen(text));
	fclose(in);
	ck_assert_str_eq(found, text);
}

START_TEST(outfile_without_room_leaves_the_old_file)
{
	struct rlimit no_room = {.rlim_cur = 8, .rlim_max = RLIM_INFINITY};
	struct mp_outfile out;
	struct mp_err err = {""};

	put("file", "old");
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &no_room), 0);
	ck_assert_int_eq(mp_outfile_open("file", NULL, &out, &err), 0);
	fputs("more than eight bytes", out.file);
	ck_assert_int_eq(mp_outfile_commit(&out, &err), -EFBIG);
	ck_assert_str_eq(err.msg, "file: File too large");
	holds("file", "old");
	ck_assert_int_eq(nr_files(), 1);
	ck_assert_int_eq(mp_outfile_open("file", NULL, &out, &err), 0);
	fputs("new", out.file);
	mp_outfile_abandon(&out);
	holds("file", "old");
	ck_assert_int_eq(nr_files(), 1);
}
END_TEST

START_TEST(outfile_never_is_an_input)
{
	static const char *const names[] = {"input", "./input", "hard", "soft"};
	const char *inputs[] = {"missing", "input", NULL};
	struct mp_err err = {""};

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
	ck_assert_int_eq(nr_files(), 3);
	holds("input", "precious");
}
END_TEST

START_TEST(outfile_check_finds_what_would_fail_later)
{
	const char *inputs[] = {NULL};
	char longest[512];
	struct mp_err err = {""};

	ck_assert_int_eq(mp_outfile_check(".", inputs, &err), -EISDIR);
	ck_assert_int_eq(mp_outfile_check("none/file", inputs, &err), -ENOENT);
	ck_assert_str_eq(err.msg, "none/file: No such file or directory");
	ck_assert_int_eq(mp_outfile_check("", inputs, &err), -ENOENT);
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	ck_assert_int_eq(mp_outfile_check(longest, inputs, &err), -ENAMETOOLONG);
	ck_assert_int_eq(nr_files(), 0);
}
END_TEST

START_TEST(outfile_waits_for_no_reader)
{
	struct mp_outfile out;
	struct mp_err err = {""};

	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	ck_assert_int_eq(mp_outfile_open("fifo", NULL, &out, &err), -ENXIO);
	ck_assert_str_eq(err.msg, "fifo: a FIFO that no program reads");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("outfile");
	TCase *tc = tcase_create("outfile");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, outfile_without_room_leaves_the_old_file);
	tcase_add_test(tc, outfile_never_is_an_input);
	tcase_add_test(tc, outfile_check_finds_what_would_fail_later);
	tcase_add_test(tc, outfile_waits_for_no_reader);
	suite_add_tcase(s, tc);
	return s;
}

MORPH_SUITE_MAIN(suite)
