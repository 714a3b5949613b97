// SPDX-License-Identifier: Apache-2.0
/* test_process - mappings, free ranges, status and files of processes. */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "daemon/live/process.h"
#include "tests/unit/suite.h"

static struct md_process process;

static pid_t new_child(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	ck_assert_int_gt(pid, 0);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(mappings_of_this_process_are_found)
{
	int local = 0;
	const struct md_mapping *m;

	ck_assert_int_eq(md_process_open(getpid(), &process, &err), 0);
	m = md_process_mapping(&process, (uint64_t)&local);
	ck_assert_ptr_nonnull(m);
	ck_assert_str_eq(m->path, "[stack]");
	ck_assert(m->read && m->write && !m->exec && !m->shared);
	m = md_process_mapping(&process, (uint64_t)md_process_open);
	ck_assert_ptr_nonnull(m);
	ck_assert(m->exec && !m->write && m->path[0] == '/');
	ck_assert_ptr_null(md_process_mapping(&process, 1));
	ck_assert_ptr_null(md_process_mapping(&process, UINT64_MAX));
	ck_assert_uint_eq(process.start_time, md_process_start_time(getpid()));
	ck_assert_uint_ne(process.start_time, 0);
	md_process_close(&process);
}

TEST(no_process_is_an_error)
{
	ck_assert_int_eq(md_process_open(INT32_MAX, &process, &err), -ESRCH);
	md_process_close(&process);
	ck_assert_uint_eq(md_process_start_time(INT32_MAX), 0);
}

TEST(the_mapped_file_is_opened)
{
	struct stat a, b;
	const struct md_mapping *m;
	int fd;

	ck_assert_int_eq(md_process_open(getpid(), &process, &err), 0);
	m = md_process_mapping(&process, (uint64_t)md_process_open);
	fd = md_process_open_file(&process, m, &err);
	ck_assert_msg(fd >= 0, "%s", err.msg);
	ck_assert_int_eq(fstat(fd, &a), 0);
	ck_assert_int_eq(stat("/proc/self/exe", &b), 0);
	ck_assert_uint_eq(a.st_ino, b.st_ino);
	close(fd);
	md_process_close(&process);
}

TEST(status_has_values_and_no_others)
{
	char value[64];

	ck_assert(md_process_status(getpid(), "Tgid", value, sizeof(value)));
	ck_assert_int_eq(atoi(value), getpid());
	ck_assert(!md_process_status(getpid(), "Tgi", value, sizeof(value)));
}

static void *wait_there(void *arg)
{
	pause();
	return arg;
}

TEST(all_threads_are_listed)
{
	pthread_t thread;
	pid_t *tids;
	size_t nr;

	ck_assert_int_eq(pthread_create(&thread, NULL, wait_there, NULL), 0);
	ck_assert_int_eq(md_process_threads(getpid(), &tids, &nr), 0);
	ck_assert_uint_eq(nr, 2);
	ck_assert(tids[0] == getpid() || tids[1] == getpid());
	free(tids);
	ck_assert_int_eq(md_process_threads(INT32_MAX, &tids, &nr), -ESRCH);
}

TEST(a_process_that_shares_nothing_may_be_changed)
{
	pid_t child = new_child();

	ck_assert_int_eq(md_process_check_shared(getpid(), &err), 0);
	ck_assert_int_eq(md_process_open(child, &process, &err), 0);
	ck_assert_int_eq(md_process_check_shared(child, &err), 0);
	md_process_close(&process);
	end_child(child);
}

TEST(a_stopped_or_traced_process_is_refused)
{
	pid_t child = new_child();
	int status;

	ck_assert_int_eq(md_process_open(child, &process, &err), 0);
	kill(child, SIGSTOP);
	waitpid(child, &status, WUNTRACED);
	ck_assert_int_eq(md_process_check(&process, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "stopped"));
	kill(child, SIGCONT);
	ck_assert_int_eq(ptrace(PTRACE_SEIZE, child, 0, 0), 0);
	ck_assert_int_eq(md_process_check(&process, &err), -EPERM);
	md_process_close(&process);
	end_child(child);
}

/* As in a kernel without it. */
static void lose_kcmp(void)
{
	struct sock_filter code[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0,
				      offsetof(struct seccomp_data, nr)},
				     {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_kcmp},
				     {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
				     {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
	const struct sock_fprog filter = {sizeof(code) / sizeof(*code), code};

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

TEST(a_process_is_refused_if_nobody_can_tell_who_shares_its_memory)
{
	pid_t child = new_child();

	ck_assert_int_eq(md_process_open(child, &process, &err), 0);
	lose_kcmp();
	ck_assert_int_eq(md_process_check(&process, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "cannot be told"));
	/* The child is one that might. */
	ck_assert_int_eq(md_process_check_shared(getpid(), &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "cannot be told"));
	ck_assert_int_eq(md_process_check_shared(child, &err), 0);
	md_process_close(&process);
	end_child(child);
}

TEST(this_command_itself_is_refused)
{
	ck_assert_int_eq(md_process_open(getpid(), &process, &err), 0);
	ck_assert_int_eq(md_process_check(&process, &err), -EPERM);
	md_process_close(&process);
}
