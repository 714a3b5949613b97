// SPDX-License-Identifier: Apache-2.0
/* test_child - programs are found in the order of PATH, and children are waited for. */
#include "libprof/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/remove_tree.h"
#include "tests/unit/suite.h"

static char dir[] = "/tmp/morph-test-child.XXXXXX";

static void make_dir(const char *name)
{
	ck_assert(!mkdir(name, 0700));
}

static void make_file(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

TEST(path_gives_the_first_program)
{
	char out[PATH_MAX], real[PATH_MAX];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert(!chdir(dir));
	make_dir("a");
	make_dir("b");
	make_dir("c");
	make_dir("a/tool");	   /* a directory */
	make_file("b/tool", 0600); /* no program */
	make_file("c/tool", 0700);
	setenv("PATH", "a:b:c", 1);
	ck_assert(mp_child_find_in_path("tool", out));
	ck_assert_ptr_nonnull(realpath("c/tool", real));
	ck_assert_str_eq(out, real);
	ck_assert(!mp_child_find_in_path("other", out));
	/* A name with a slash is a file, whatever PATH says. */
	ck_assert(!mp_child_find_in_path("b/tool", out));
	ck_assert(mp_child_find_in_path("c/../c/tool", out));
	ck_assert_str_eq(out, real);
	ck_assert(!chdir("/"));
	mp_remove_tree(dir, 3);
}

TEST(own_programs_lie_beside_this_one)
{
	char out[PATH_MAX], self[PATH_MAX];
	struct mp_err err = {0};

	ck_assert_ptr_nonnull(realpath("/proc/self/exe", self));
	ck_assert_int_eq(mp_child_find(basename(self), out, &err), 0);
	ck_assert_str_eq(out, self);
	ck_assert_int_eq(mp_child_find("no-such-program", out, &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.msg, "no-such-program"));
}

TEST(a_child_is_waited_for)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(7);
	ck_assert_int_eq(mp_child_wait(pid, &status), 0);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 7);
	ck_assert_int_eq(mp_child_wait(pid, NULL), -ECHILD);
}

TEST(a_program_that_is_nowhere_is_not_become)
{
	char *argv[] = {(char *)"no-such-program", NULL};

	mp_child_exec(argv);
	ck_assert_int_eq(errno, ENOENT);
}
