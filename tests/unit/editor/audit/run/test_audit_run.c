// SPDX-License-Identifier: Apache-2.0
/*
 * test_audit_run - one measured run and its directory: a program's results must be recorded
 * exactly, and nothing may be left behind.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "editor/audit/run/audit_run.h"
#include "editor/audit/run/audit_slot.h"
#include "tests/unit/scratch.h"

static sigset_t no_signals;

static void setup(void)
{
	sigemptyset(&no_signals);
	scratch_make();
}

static struct me_run_spec shell(const char *script)
{
	static char *argv[4] = {"sh", "-c"};
	static char *envp[] = {"PATH=/usr/bin:/bin", NULL};

	argv[2] = (char *)script;
	return (struct me_run_spec){
		.path = "/bin/sh", .argv = argv, .envp = envp, .cpu = -1, .mask = &no_signals};
}

static struct me_run run_ok(const struct me_run_spec *spec)
{
	struct me_run run;

	ck_assert_msg(!me_run(spec, &run, &err), "%s", err.msg);
	return run;
}

static struct me_run run_script(const char *script)
{
	struct me_run_spec spec = shell(script);

	return run_ok(&spec);
}

static bool same(const struct me_run_output *a, const struct me_run_output *b)
{
	return !memcmp(a, b, sizeof(*a));
}

FIXTURE(setup, scratch_remove);

TEST(run_hashes_what_is_written)
{
	struct me_run a = run_script("echo one; echo two"), b = run_script("printf 'one\\ntwo\\n'");
	struct me_run c = run_script("echo one; echo tow");

	ck_assert_uint_eq(a.out.size_bytes, 8);
	ck_assert(same(&a.out, &b.out));
	ck_assert(!same(&a.out, &c.out));
	ck_assert_uint_eq(c.out.size_bytes, 8);
}

TEST(run_reads_all_of_a_large_output)
{
	struct me_run run = run_script("head -c 20000000 /dev/zero");

	ck_assert_uint_eq(run.out.size_bytes, 20000000);
}

TEST(run_tells_status_signal_and_last_stderr_line)
{
	struct me_run run = run_script("echo first >&2; echo why >&2; exit 3");

	ck_assert(WIFEXITED(run.status));
	ck_assert_int_eq(WEXITSTATUS(run.status), 3);
	ck_assert_str_eq(run.last_stderr_line, "why");
	run = run_script("kill -SEGV $$");
	ck_assert(WIFSIGNALED(run.status));
	ck_assert_int_eq(WTERMSIG(run.status), SIGSEGV);
}

TEST(run_measures_children_too)
{
	/* The time of a child counts. */
	struct me_run run = run_script("(i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done)");

	ck_assert_uint_gt(run.cpu_ns, 0);
	ck_assert_uint_ge(run.cpu_ns, run.user_ns);
	ck_assert_uint_gt(run.wall_ns, 0);
}

TEST(run_ends_what_does_not_end)
{
	struct me_run_spec spec = shell("echo started; sleep 1000");
	struct me_run run;

	/* Allow for a busy machine, on which the program starts late. */
	for (spec.timeout_ns = 200000000;; spec.timeout_ns *= 4) {
		run = run_ok(&spec);
		ck_assert(run.timed_out);
		if (run.out.size_bytes || spec.timeout_ns > 10000000000)
			break;
	}
	ck_assert_uint_eq(run.out.size_bytes, 8);
}

TEST(run_kills_what_is_left_behind)
{
	struct me_run run = run_script("sleep 1000 & echo $!; exit 0");

	ck_assert_int_eq(run.status, 0);
	ck_assert_uint_gt(run.out.size_bytes, 0);
}

TEST(run_filters_the_output)
{
	struct me_run_spec spec = shell("echo 12 apples");
	struct me_run a, b;

	spec.filter = "tr -d 0-9";
	a = run_ok(&spec);
	spec = shell("echo 345 apples");
	spec.filter = "tr -d 0-9";
	b = run_ok(&spec);
	ck_assert(same(&a.out, &b.out));
	ck_assert_uint_eq(a.out.size_bytes, 8);
	ck_assert_int_eq(b.status, 0);
}

TEST(run_goes_on_when_the_filter_ends_early)
{
	/* More than a pipe holds, so that a closed pipe would kill the program. */
	struct me_run_spec spec = shell("seq 200000; echo last >&2");
	struct me_run run;

	spec.filter = "head -n 1";
	run = run_ok(&spec);
	ck_assert_int_eq(run.status, 0);
	ck_assert_uint_eq(run.out.size_bytes, 2);
	ck_assert_str_eq(run.last_stderr_line, "last");
	spec.filter = "exec true";
	run = run_ok(&spec);
	ck_assert_int_eq(run.status, 0);
	ck_assert_uint_eq(run.out.size_bytes, 0);
}

TEST(run_removes_files_only)
{
	struct me_run_spec spec = shell("echo x");
	char *files[] = {dir, NULL};
	struct me_run run;
	char path[sizeof(dir) + 8];

	spec.files = files;
	ck_assert_int_lt(me_run(&spec, &run, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "not a regular file"));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	files[0] = path;
	ck_assert_int_lt(me_run(&spec, &run, &err), 0);
	ck_assert_int_eq(access(path, F_OK), 0);
}

TEST(run_refuses_a_filter_that_is_not_there)
{
	struct me_run_spec spec = shell("echo x");
	struct me_run run;

	spec.filter = "/nonexistent/filter 2>/dev/null";
	ck_assert_int_lt(me_run(&spec, &run, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "/nonexistent/filter"));
}

TEST(run_says_what_cannot_be_executed)
{
	struct me_run_spec spec = shell("");
	struct me_run run;

	spec.path = "/nonexistent/program";
	ck_assert_int_eq(me_run(&spec, &run, &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.msg, "cannot be executed"));
}

TEST(run_reads_stdin_from_the_file_each_time)
{
	struct me_run_spec spec = shell("cat");
	char path[sizeof(dir) + 16];
	int i, fd;

	snprintf(path, sizeof(path), "%s/input", dir);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	ck_assert_int_eq(write(fd, "hello", 5), 5);
	close(fd);
	spec.stdin_path = path;
	for (i = 0; i < 2; i++)
		ck_assert_uint_eq(run_ok(&spec).out.size_bytes, 5);
	spec.stdin_path = NULL;
	ck_assert_uint_eq(run_ok(&spec).out.size_bytes, 0);
}

TEST(run_compares_and_removes_files)
{
	char script[2 * sizeof(dir)], path[sizeof(dir) + 16];
	char *files[] = {path, NULL};
	struct me_run_spec spec;
	struct me_run a, b, none;

	snprintf(path, sizeof(path), "%s/made", dir);
	snprintf(script, sizeof(script), "echo one > '%s'", path);
	spec = shell(script);
	spec.files = files;
	a = run_ok(&spec);
	ck_assert_int_ne(access(path, F_OK), 0);
	snprintf(script, sizeof(script), "echo two > '%s'", path);
	b = run_ok(&spec);
	ck_assert(!same(&a.files, &b.files));
	snprintf(script, sizeof(script), ": > '%s'", path);
	a = run_ok(&spec);
	snprintf(script, sizeof(script), ":");
	none = run_ok(&spec);
	/* an empty file differs from a missing one */
	ck_assert(!same(&a.files, &none.files));
}

static void cancel(int sig)
{
	(void)sig;
	me_run_cancel();
}

TEST(run_can_be_cancelled)
{
	struct me_run_spec spec = shell("kill -USR1 $PPID; sleep 1000");
	struct sigaction action = {.sa_handler = cancel};
	struct me_run run;
	sigset_t block;

	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	sigprocmask(SIG_BLOCK, &block, NULL);
	sigaction(SIGUSR1, &action, NULL);
	ck_assert_int_eq(me_run(&spec, &run, &err), -ECANCELED);
}

static void make_program(char *path, size_t size, const char *name, const char *text)
{
	int fd;

	snprintf(path, size, "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

TEST(slot_holds_now_one_now_the_other_under_one_path)
{
	char a[sizeof(dir) + 16], b[sizeof(dir) + 16], first[PATH_MAX + 256];
	struct me_program pa, pb;
	struct stat st1, st2;
	struct me_slot slot;
	ino_t ino;
	int fd;

	make_program(a, sizeof(a), "a", "#!/bin/sh\necho a\n");
	make_program(b, sizeof(b), "b", "#!/bin/sh\necho bb\n");
	ck_assert_int_eq(me_program_open(&pa, a, &err), 0);
	ck_assert_int_eq(me_program_open(&pb, b, &err), 0);
	ck_assert_int_eq(me_slot_open(&slot, dir, "prog", NULL, &err), 0);
	ck_assert_int_eq(me_slot_put(&slot, &pa, &err), 0);
	snprintf(first, sizeof(first), "%s", me_slot_path(&slot));
	fd = open(first, O_RDONLY); /* keeps the inode number from being reused */
	ck_assert_int_eq(fstat(fd, &st1), 0);
	ck_assert_int_eq((int)st1.st_size, 17);
	ino = st1.st_ino;
	ck_assert_int_eq(me_slot_put(&slot, &pb, &err), 0);
	ck_assert_str_eq(me_slot_path(&slot), first);
	ck_assert_int_eq(stat(first, &st2), 0);
	ck_assert_int_eq((int)st2.st_size, 18);
	ck_assert(st2.st_mode & 0100);
	ck_assert(st2.st_ino != ino);
	close(fd);
	me_slot_close(&slot);
	ck_assert_int_ne(stat(first, &st2), 0);
	me_program_close(&pa);
	me_program_close(&pb);
}

TEST(slot_refuses_a_program_that_changes)
{
	char a[sizeof(dir) + 16];
	AUTO(me_program_close) struct me_program pa = {0};
	AUTO(me_slot_close) struct me_slot slot = {0};
	int fd;

	make_program(a, sizeof(a), "a", "#!/bin/sh\n");
	ck_assert_int_eq(me_program_open(&pa, a, &err), 0);
	ck_assert_int_eq(me_slot_open(&slot, dir, "prog", NULL, &err), 0);
	ck_assert_int_eq(me_slot_put(&slot, &pa, &err), 0);
	fd = open(a, O_WRONLY | O_APPEND);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	close(fd);
	ck_assert_int_eq(me_slot_put(&slot, &pa, &err), -EBUSY);
	ck_assert_ptr_nonnull(strstr(err.msg, "changed"));
}

TEST(slot_refuses_what_is_no_program)
{
	struct me_program program;
	struct me_slot slot;

	ck_assert_int_eq(me_program_open(&program, "/nonexistent", &err), -ENOENT);
	ck_assert_int_eq(me_program_open(&program, dir, &err), -EINVAL);
	ck_assert_int_eq(me_slot_open(&slot, "/nonexistent", "a", NULL, &err), -ENOENT);
	ck_assert_int_eq(me_slot_open(&slot, dir, "a/b", NULL, &err), -EINVAL);
	ck_assert_int_eq(me_slot_open(&slot, dir, "a", "/nonexistent", &err), -ENOENT);
}
