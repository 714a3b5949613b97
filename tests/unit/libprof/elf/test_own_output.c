// SPDX-License-Identifier: Apache-2.0
/* test_own_output - the list of a user's outputs: what it keeps when it becomes long, and after a full disk. */
#include "libprof/elf/own_output.h"

#include <check.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "tests/unit/suite.h"

/* Root's list has one place on the machine, so another user asks. */
static void become_user(char dir[])
{
	ck_assert_ptr_nonnull(mkdtemp(dir));
	if (!geteuid()) {
		ck_assert_int_eq(chown(dir, 65534, 65534), 0);
		ck_assert_int_eq(seteuid(65534), 0);
	}
	ck_assert_int_eq(setenv("XDG_STATE_HOME", dir, 1), 0);
}

static int output_of(const char *bytes)
{
	char name[] = "/tmp/own_output.XXXXXX";
	int fd = mkstemp(name);

	ck_assert_int_ge(fd, 0);
	unlink(name);
	ck_assert_int_eq(write(fd, bytes, strlen(bytes)), (ssize_t)strlen(bytes));
	return fd;
}

static const struct mp_own_proof proof = {.original = {1, 2, 3}, .kind = "optimised"};

static void note(const char *bytes)
{
	int fd = output_of(bytes);

	ck_assert_int_eq(mp_own_output_note(fd, &proof, NULL), 0);
	close(fd);
}

static bool is_known(const char *bytes)
{
	struct mp_own_proof asked = proof;
	int fd = output_of(bytes);

	ck_assert_int_eq(mp_own_output_check(fd, fd, "it", &asked, NULL), 0);
	close(fd);
	return !strcmp(asked.kind, proof.kind);
}

/* With this number of lines, fill() makes a part full. Its lines have 140 bytes; the longest possible ones have 155. */
#define LINES_MAX ((size_t)MP_OWN_OUTPUTS_MAX * 155 / 140 + 1)

/* Appends @nr lines of other outputs, and @rest. */
static void fill(const char *dir, size_t nr, const char *rest)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/morph/backup/outputs", dir);
	f = fopen(path, "a");
	ck_assert_ptr_nonnull(f);
	for (size_t i = 0; i < nr; i++)
		fprintf(f, "%064zx %064zx optimised\n", i, i);
	fputs(rest, f);
	ck_assert_int_eq(fclose(f), 0);
}

static void remove_directory(const char *dir)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

TEST(list_keeps_the_latest_outputs)
{
	char dir[] = "/tmp/own_output.dir.XXXXXX";

	become_user(dir);
	ck_assert(!is_known("first"));
	note("first");
	ck_assert(is_known("first"));
	note("old");
	fill(dir, LINES_MAX, "");
	note("second");
	ck_assert(is_known("old"));
	ck_assert(is_known("first"));
	ck_assert(is_known("second"));
	/* An output that is written again is one of the latest. */
	note("first");
	fill(dir, LINES_MAX, "");
	note("third");
	ck_assert(!is_known("old"));
	ck_assert(is_known("first"));
	ck_assert(is_known("second"));
	ck_assert(is_known("third"));
	remove_directory(dir);
}

TEST(list_drops_a_torn_line)
{
	char dir[] = "/tmp/own_output.dir.XXXXXX";

	become_user(dir);
	note("first");
	fill(dir, 0, "0123abc");
	note("second");
	ck_assert(is_known("first"));
	ck_assert(is_known("second"));
	remove_directory(dir);
}

/* Each of the processes finds its lines, though the parts change under them. */
TEST(list_is_shared)
{
	char dir[] = "/tmp/own_output.dir.XXXXXX", name[16];
	int status;

	become_user(dir);
	note("first");
	fill(dir, LINES_MAX - 8, "");
	for (int i = 0; i < 4; i++)
		if (!fork()) {
			for (int n = 0; n < 8; n++) {
				snprintf(name, sizeof(name), "%d.%d", i, n);
				note(name);
				if (!is_known(name))
					_exit(1);
			}
			_exit(0);
		}
	for (int i = 0; i < 4; i++) {
		ck_assert_int_gt(wait(&status), 0);
		ck_assert_int_eq(status, 0);
	}
	for (int i = 0; i < 32; i++) {
		snprintf(name, sizeof(name), "%d.%d", i / 8, i % 8);
		ck_assert(is_known(name));
	}
	remove_directory(dir);
}
