// SPDX-License-Identifier: Apache-2.0
/*
 * test_cpu_time - two copies of a program have sums of their own, which are those of wait4(): of short and long
 * processes, of threads, of forks, of a process that executes another file; crashes and quick exits are counted.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/everyday/cpu_time.h"
#include "tests/support/compile.h"
#include "tests/unit/scratch.h"

#define MS 1000000.0

static struct md_cpu_time *ct;
static char first[256], second[sizeof(first) + 8], overlays[sizeof(first) + 8];
static int one, two;
/* What wait4() says of the children that have ended, and how many. */
static double waited_ms, waited_user_ms;
/* What a process may take after the kernel has told of it: on some virtual machines, much of its end. */
static double end_ms;

static int watch(const char *path)
{
	dev_t dev;
	ino_t ino;

	ck_assert_int_eq(md_cpu_time_number(path, &dev, &ino), 0);
	return md_cpu_time_watch(ct, dev, ino);
}

/* Starts @file with up to four arguments, the last one NULL. @in: its standard input, or -1. @out: the same. */
static pid_t start(int in, int out, const char *file, ...)
{
	char *argv[8] = {(char *)(uintptr_t)file};
	va_list list;
	pid_t pid;

	va_start(list, file);
	for (int i = 1; i < 7 && (argv[i] = va_arg(list, char *)); i++)
		;
	va_end(list);
	pid = vfork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		if (in >= 0)
			dup2(in, 0);
		if (out >= 0)
			dup2(out, 1);
		execv(file, argv);
		_exit(127);
	}
	return pid;
}

/* Return: the status of waitpid(). */
static int end(pid_t pid)
{
	struct rusage usage;
	int status;

	ck_assert_int_eq(wait4(pid, &status, 0, &usage), pid);
	waited_user_ms +=
		(double)usage.ru_utime.tv_sec * 1e3 + (double)usage.ru_utime.tv_usec / 1e3;
	waited_ms += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
		     (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
	return status;
}

static void setup(void)
{
	char command[600];

	ck_assert_int_eq(compile_run("gcc", "-O1 -pthread", "tests/data/takes_time.c", first), 0);
	snprintf(second, sizeof(second), "%s.two", first);
	snprintf(overlays, sizeof(overlays), "%s.dir", first);
	snprintf(command, sizeof(command), "cp %s %s", first, second);
	ck_assert_int_eq(system(command), 0);
	waited_ms = 0;
	for (int i = 0; i < 40; i++)
		end(start(-1, -1, first, "quit", NULL));
	end_ms = fmax(0.2, waited_ms / 40 / 4);
	waited_ms = waited_user_ms = 0;
	ct = md_cpu_time_open(&err);
	if (!ct)
		return;
	one = watch(first);
	two = watch(second);
}

static void teardown(void)
{
	md_cpu_time_close(ct);
	unlink(first);
	unlink(second);
	umount2(overlays, MNT_DETACH);
	rmdir(overlays);
}

FIXTURE(setup, teardown);

static struct md_cpu_sum read_sum(int index)
{
	struct md_cpu_sum sum;

	ck_assert_int_eq(md_cpu_time_read(ct, index, &sum), 0);
	ck_assert(!sum.incomplete);
	return sum;
}

/*
 * At most a quarter of what a process takes that does nothing comes, for each of the @nr ends, after the kernel has told,
 * and half a tick is not known if the process slept. Ticks are sampled, and on a busy machine far off.
 */
static void equals(const struct md_cpu_sum *sum, double ms, double nr)
{
	double cpu = (double)sum->cpu_ns / MS, ticks = (double)(sum->user_ns + sum->system_ns) / MS;

	if (getenv("SHOW"))
		printf("nr %g wait4 %.1f cpu %+.2f %% ticks %+.2f %% left %.3f ms each\n", nr, ms,
		       100 * (cpu / ms - 1), 100 * (ticks / ms - 1), (ms - cpu) / nr);
	ck_assert_double_le(fabs(cpu - ms), 0.02 * ms + end_ms * nr);
	ck_assert_double_ge(ticks, ms / 4 - 40);
	ck_assert_double_le(ticks, ms * 2 + 40);
}

#define NEEDS_RIGHTS                                                                               \
	if (!ct)                                                                                   \
	MORPH_SKIP("%s", err.msg)

TEST(cpu_time_of_short_processes)
{
	struct md_cpu_sum sums[2];
	double ms[2];

	NEEDS_RIGHTS;
	for (int which = 0; which < 2; which++) {
		waited_ms = 0;
		for (int i = 0; i < 60; i++)
			end(start(-1, -1, which ? second : first, "spin", which ? "40" : "20",
				  NULL));
		ms[which] = waited_ms;
	}
	for (int which = 0; which < 2; which++) {
		sums[which] = read_sum(which ? two : one);
		equals(&sums[which], ms[which], 60);
		ck_assert_uint_eq(sums[which].nr_exited, 60);
		ck_assert_uint_eq(sums[which].nr_killed, 0);
		ck_assert_uint_eq(sums[which].nr_live, 0);
	}
	ck_assert_uint_gt(sums[1].cpu_ns, sums[0].cpu_ns * 3 / 2);
}

/* A process that runs is counted while it runs, and what it took is not counted again when it ends. */
TEST(cpu_time_of_a_process_that_runs)
{
	struct md_cpu_sum before, then, last;
	int in[2], out[2];
	char byte;
	pid_t pid;

	NEEDS_RIGHTS;
	ck_assert_int_eq(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	pid = start(in[0], out[1], first, "waits", "300", NULL);
	ck_assert_int_eq(read(out[0], &byte, 1), 1);
	before = read_sum(one);
	ck_assert_uint_eq(before.nr_live, 1);
	ck_assert_uint_eq(before.nr_exited, 0);
	ck_assert_double_ge((double)before.cpu_ns / MS, 290);
	then = before;
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(write(in[1], "x", 1), 1);
		last = read_sum(one);
		ck_assert_uint_ge(last.cpu_ns, then.cpu_ns);
		ck_assert_uint_ge(last.user_ns, then.user_ns);
		ck_assert_uint_ge(last.system_ns, then.system_ns);
		then = last;
	}
	close(in[1]);
	end(pid);
	last = read_sum(one);
	ck_assert_uint_eq(last.nr_live, 0);
	ck_assert_uint_eq(last.nr_exited, 1);
	equals(&last, waited_ms, 1);
	ck_assert_double_ge((double)last.cpu_ns / MS, 490);
	ck_assert_uint_eq(read_sum(two).cpu_ns, 0);
	close(in[0]);
	close(out[0]);
	close(out[1]);
}

TEST(cpu_time_of_threads_and_forks)
{
	struct md_cpu_sum sum;

	NEEDS_RIGHTS;
	end(start(-1, -1, first, "threads", "4", "60", NULL));
	sum = read_sum(one);
	equals(&sum, waited_ms, 5);
	ck_assert_uint_eq(sum.nr_exited, 1);
	/* wait4() includes the children that this one waited for. */
	end(start(-1, -1, first, "forks", "5", "60", NULL));
	sum = read_sum(one);
	equals(&sum, waited_ms, 5 + 6);
	ck_assert_uint_eq(sum.nr_exited, 1 + 6);
}

/* The first thread is gone: /proc/PID/exe cannot tell the file any more. */
TEST(cpu_time_of_a_process_without_its_first_thread)
{
	struct md_cpu_sum sum;
	uint64_t seen = 0;
	pid_t pid;

	NEEDS_RIGHTS;
	pid = start(-1, -1, first, "leaves", "400", NULL);
	for (int i = 0; i < 200 && !seen; i++) {
		usleep(10000);
		sum = read_sum(one);
		seen = sum.nr_exited ? 0 : sum.cpu_ns / 100000000;
	}
	ck_assert_uint_gt(seen, 0);
	end(pid);
	sum = read_sum(one);
	ck_assert_uint_eq(sum.nr_exited, 1);
	equals(&sum, waited_ms, 2);
}

/* What was seen of a process before it executes another file stays with the first file. */
TEST(cpu_time_of_a_process_that_executes_another_file)
{
	struct md_cpu_sum old, new;
	pid_t pid;

	NEEDS_RIGHTS;
	pid = start(-1, -1, first, "exec", "400", second, "spin", "600", NULL);
	do
		old = read_sum(one);
	while (old.cpu_ns < 50 * 1000000 && usleep(10000) == 0);
	end(pid);
	new = read_sum(two);
	ck_assert_uint_eq(new.nr_exited, 1);
	ck_assert_uint_ge(read_sum(one).cpu_ns, old.cpu_ns);
	ck_assert_uint_eq(read_sum(one).nr_exited, 0);
	old = read_sum(one);
	new.cpu_ns += old.cpu_ns;
	new.user_ns += old.user_ns;
	new.system_ns += old.system_ns;
	equals(&new, waited_ms, 1);
}

TEST(cpu_time_counts_crashes)
{
	struct md_cpu_sum sum;
	uint64_t crashes;

	NEEDS_RIGHTS;
	for (int i = 0; i < 7; i++)
		ck_assert(WIFSIGNALED(end(start(-1, -1, second, "crash", NULL))));
	for (int i = 0; i < 3; i++)
		ck_assert(WIFEXITED(end(start(-1, -1, second, "quit", NULL))));
	ck_assert_int_eq(md_cpu_time_crashes(ct, two, &crashes), 0);
	ck_assert_uint_eq(crashes, 7);
	sum = read_sum(two);
	ck_assert_uint_eq(sum.nr_killed, 7);
	ck_assert_uint_eq(sum.nr_exited, 10);
	sum = read_sum(one);
	ck_assert_uint_eq(sum.nr_exited, 0);
}

TEST(cpu_time_counts_2000_quick_exits)
{
	struct md_cpu_sum sum;

	NEEDS_RIGHTS;
	for (int i = 0; i < 2000; i++) {
		end(start(-1, -1, i % 4 ? first : second, "quit", NULL));
		if (i % 500 == 0)
			ck_assert_int_eq(md_cpu_time_poll(ct), 0);
	}
	sum = read_sum(one);
	ck_assert_uint_eq(sum.nr_exited, 1500);
	equals(&sum, waited_ms * 0.75, 1500);
	ck_assert_uint_eq(read_sum(two).nr_exited, 500);
}

/* The kernel drops what finds no room. The next read says so, and the one after that is whole again. */
TEST(cpu_time_says_that_messages_were_lost)
{
	struct md_cpu_sum sum;
	int small = 0;

	NEEDS_RIGHTS;
	for (int fd = 3; fd < 64; fd++)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &small, sizeof(small));
	for (int i = 0; i < 100; i++)
		end(start(-1, -1, first, "quit", NULL));
	ck_assert_int_eq(md_cpu_time_read(ct, one, &sum), 0);
	ck_assert(sum.incomplete);
	ck_assert_uint_lt(sum.nr_exited, 100);
	ck_assert(!read_sum(one).incomplete);
	ck_assert_int_eq(md_cpu_time_read(ct, two, &sum), 0);
	ck_assert(sum.incomplete);
}

TEST(cpu_time_watches_a_file_once)
{
	NEEDS_RIGHTS;
	ck_assert_int_eq(one, 0);
	ck_assert_int_eq(two, 1);
	ck_assert_int_eq(watch(first), one);
	/* In any order of numbers, and the same number on another device. */
	for (unsigned int i = 0; i < 500; i++)
		ck_assert_int_eq(md_cpu_time_watch(ct, 1 + i % 2, 1 + i / 2 * 7 % 250), 2 + (int)i);
	for (unsigned int i = 0; i < 500; i++)
		ck_assert_int_eq(md_cpu_time_watch(ct, 1 + i % 2, 1 + i / 2 * 7 % 250), 2 + (int)i);
	ck_assert_int_eq(watch(second), two);
}

/* An overlay of several file systems gives stat() another device than the one that the kernel's accounts name. */
TEST(cpu_time_of_a_file_in_an_overlay_of_several_file_systems)
{
	char path[sizeof(overlays) + 32], command[900];
	struct md_cpu_sum sum;
	struct stat st;
	dev_t dev;
	ino_t ino;
	int file;

	NEEDS_RIGHTS;
	ck_assert_int_eq(mkdir(overlays, 0700), 0);
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", overlays, "tmpfs", 0, NULL))
		MORPH_SKIP("no mount namespace");
	snprintf(command, sizeof(command),
		 "cd %s && mkdir lower upper all && mount -t tmpfs none lower && mkdir lower/l && "
		 "cp %s lower/l/file && mkdir upper/u upper/w && "
		 "mount -t overlay -o lowerdir=lower/l,upperdir=upper/u,workdir=upper/w none all",
		 overlays, first);
	if (system(command))
		MORPH_SKIP("no overlay");
	snprintf(path, sizeof(path), "%s/all/file", overlays);
	ck_assert_int_eq(md_cpu_time_number(path, &dev, &ino), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_ne(st.st_dev, dev);
	file = md_cpu_time_watch(ct, dev, ino);
	end(start(-1, -1, path, "spin", "40", NULL));
	sum = read_sum(file);
	ck_assert_uint_eq(sum.nr_exited, 1);
	equals(&sum, waited_ms, 1);
}

TEST(cpu_time_of_no_file)
{
	dev_t dev;
	ino_t ino;

	ck_assert_int_eq(md_cpu_time_number("/nowhere/at/all", &dev, &ino), -ENOENT);
}

/* Without the right, or in a network of its own, there is a reason, and no object. */
TEST(cpu_time_needs_rights)
{
	struct md_cpu_time *none;

	NEEDS_RIGHTS;
	if (unshare(CLONE_NEWNET))
		MORPH_SKIP("no network namespace");
	none = md_cpu_time_open(&err);
	ck_assert_ptr_null(none);
	ck_assert_msg(strstr(err.msg, "network namespace") != NULL, "%s", err.msg);
	ck_assert_int_eq(setuid(65534), 0);
	none = md_cpu_time_open(&err);
	ck_assert_ptr_null(none);
	ck_assert_msg(strstr(err.msg, "CAP_NET_ADMIN") != NULL, "%s", err.msg);
}

/* The service has a network of its own, may open no netlink socket, and gets two of the first network from systemd. */
TEST(cpu_time_with_the_sockets_of_systemd)
{
	struct sockaddr_nl any = {.nl_family = AF_NETLINK};
	struct md_cpu_sum sum;
	char pid[16], byte;
	int fds[2];

	NEEDS_RIGHTS;
	md_cpu_time_close(ct);
	for (int i = 0; i < 2; i++) {
		fds[i] = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
		ck_assert_int_ge(fds[i], 0);
		ck_assert_int_eq(bind(fds[i], (struct sockaddr *)&any, sizeof(any)), 0);
		fds[i] = fcntl(fds[i], F_DUPFD, 10);
	}
	ck_assert_int_eq(dup2(fds[0], 3), 3);
	ck_assert_int_eq(dup2(fds[1], 4), 4);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "2", 1);
	if (unshare(CLONE_NEWNET))
		MORPH_SKIP("no network namespace");
	ct = md_cpu_time_open(&err);
	ck_assert_msg(ct != NULL, "%s", err.msg);
	one = watch(first);
	end(start(-1, -1, first, "spin", "50", NULL));
	sum = read_sum(one);
	ck_assert_uint_eq(sum.nr_exited, 1);
	equals(&sum, waited_ms, 1);
	/* Nothing comes to the socket when it is not used. */
	md_cpu_time_close(ct);
	ct = NULL;
	end(start(-1, -1, first, "quit", NULL));
	ck_assert_int_eq(recv(3, &byte, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
}

TEST(cpu_time_tells_of_filters)
{
	static struct sock_filter allow[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
	const struct sock_fprog program = {1, allow};
	int in[2], out[2];
	pid_t plain, filtered;
	char byte;

	NEEDS_RIGHTS;
	ck_assert_int_eq(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	plain = start(in[0], out[1], second, "waits", "1", NULL);
	ck_assert_int_eq(read(out[0], &byte, 1), 1);
	filtered = fork();
	ck_assert_int_ge(filtered, 0);
	if (!filtered) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
		    !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
			execl(first, first, "waits", "1", NULL);
		_exit(127);
	}
	ck_assert_int_eq(read(out[0], &byte, 1), 1);
	read_sum(one);
	ck_assert(md_cpu_time_is_filtered(ct, one));
	ck_assert(!md_cpu_time_is_filtered(ct, two));
	close(in[1]);
	end(plain);
	end(filtered);
	read_sum(one);
	ck_assert(!md_cpu_time_is_filtered(ct, one));
}

/* Of two processes, the first one is older than a second; children are as old as the process that made them. */
TEST(cpu_time_tells_which_part_old_processes_took)
{
	int in[2], out[2], of[2];
	pid_t old, young;
	double part;
	char byte;

	NEEDS_RIGHTS;
	ck_assert_int_eq(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC) | pipe2(of, O_CLOEXEC), 0);
	ck_assert_double_eq(md_cpu_time_of_old(ct, one, 1), 0);
	old = start(in[0], out[1], first, "waits", "300", NULL);
	ck_assert_int_eq(read(out[0], &byte, 1), 1);
	usleep(2500000);
	young = start(in[0], of[1], first, "waits", "100", NULL);
	ck_assert_int_eq(read(of[0], &byte, 1), 1);
	read_sum(one);
	/* Some tenths of a second are between the start of the young one and this look. */
	part = md_cpu_time_of_old(ct, one, 2.5);
	ck_assert_double_ge(part, 0.6);
	ck_assert_double_le(part, 0.9);
	ck_assert_double_eq(md_cpu_time_of_old(ct, one, 1000), 0);
	ck_assert_double_eq(md_cpu_time_of_old(ct, one, 0), 1);
	ck_assert_double_eq(md_cpu_time_of_old(ct, two, 0), 0);
	close(in[1]);
	end(old);
	end(young);
}

TEST(cpu_time_children_are_as_old_as_their_parent)
{
	int in[2], out[2];
	pid_t parent;
	char byte;

	NEEDS_RIGHTS;
	ck_assert_int_eq(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	parent = start(in[0], out[1], first, "grows", "300", NULL);
	ck_assert_int_eq(read(out[0], &byte, 1), 1);
	usleep(2500000);
	/* Only the child takes time. */
	ck_assert_int_eq(write(in[1], "x", 1), 1);
	ck_assert_int_eq(read(out[0], &byte, 1), 1);
	read_sum(one);
	ck_assert_double_ge(md_cpu_time_of_old(ct, one, 2.5), 0.9);
	close(in[1]);
	end(parent);
}
