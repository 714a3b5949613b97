// SPDX-License-Identifier: Apache-2.0
/* test_audit_tree - processes below another one: their times, mappings and signals. */
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "editor/audit/server/audit_cgroup.h"
#include "editor/audit/server/audit_tree.h"
#include "tests/unit/suite.h"

/* Use the processor for this CPU time. */
static void work(double seconds)
{
	while ((double)clock() / CLOCKS_PER_SEC < seconds)
		;
}

/*
 * A child with two children: one has used @ended seconds and has ended, the other one has used
 * @living seconds. Return: the child; a byte in @ready says that all is done.
 */
static pid_t start_tree(double ended, double living, bool ignore, int *ready)
{
	int to_us[2];
	pid_t pid;

	ck_assert_int_eq(pipe(to_us), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (ignore)
			signal(SIGCHLD, SIG_IGN);
		if (fork() == 0) {
			work(ended);
			_exit(0);
		}
		wait(NULL);
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			work(living);
			if (write(to_us[1], "x", 1) != 1)
				_exit(1);
			pause();
			_exit(0);
		}
		pause();
		_exit(0);
	}
	close(to_us[1]);
	*ready = to_us[0];
	return pid;
}

static void end_tree(pid_t pid, int ready)
{
	me_tree_signal(getpid(), SIGKILL, true);
	waitpid(pid, NULL, 0);
	close(ready);
}

TEST(tree_adds_living_and_ended_processes)
{
	struct me_cpu_time time;
	char byte;
	int ready;
	pid_t pid = start_tree(0.2, 0.1, false, &ready);

	ck_assert_int_eq(read(ready, &byte, 1), 1);
	ck_assert_msg(!me_tree_cpu(getpid(), &time, &err), "%s", err.msg);
	/* Ticks of 10 ms; the upper limit leaves room for starting processes. */
	ck_assert_msg(time.cpu_ns >= 280000000 && time.cpu_ns < 800000000, "%llu ns",
		      (unsigned long long)time.cpu_ns);
	ck_assert_uint_le(time.user_ns, time.cpu_ns + 40000000);
	end_tree(pid, ready);
	ck_assert_uint_eq(me_tree_signal(getpid(), 0, true), 0);
}

TEST(tree_refuses_lost_times)
{
	struct me_cpu_time time;
	char byte;
	int ready;
	pid_t pid = start_tree(0, 0, true, &ready);

	ck_assert_int_eq(read(ready, &byte, 1), 1);
	ck_assert_int_eq(me_tree_cpu(getpid(), &time, &err), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(err.msg, "SIGCHLD"));
	end_tree(pid, ready);
}

TEST(tree_finds_mapped_files)
{
	struct stat own, other;
	char byte;
	int ready;
	pid_t pid = start_tree(0, 0, false, &ready);

	ck_assert_int_eq(read(ready, &byte, 1), 1);
	ck_assert_int_eq(stat("/proc/self/exe", &own), 0);
	ck_assert_int_eq(stat("/etc/passwd", &other), 0);
	ck_assert(me_tree_maps(getpid(), &own));
	ck_assert(!me_tree_maps(getpid(), &other));
	end_tree(pid, ready);
	ck_assert(!me_tree_maps(getpid(), &own));
}

TEST(cgroup_counts_what_ran_in_it)
{
	struct me_cpu_time before, after;
	struct me_cgroup group;
	char path[PATH_MAX];
	pid_t pid;

	if (me_cgroup_open(&group)) {
		puts("skip: no control group can be made here");
		return;
	}
	strcpy(path, group.path);
	ck_assert_int_eq(me_cgroup_cpu(&group, &before), 0);
	pid = fork();
	if (pid == 0) {
		if (me_cgroup_enter(&group))
			_exit(1);
		work(0.1);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	ck_assert_int_eq(me_cgroup_cpu(&group, &after), 0);
	ck_assert_uint_ge(after.cpu_ns - before.cpu_ns, 90000000);
	me_cgroup_close(&group);
	ck_assert_int_ne(access(path, F_OK), 0);
}
