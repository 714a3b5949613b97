// SPDX-License-Identifier: Apache-2.0
/* audit_child - forks, connects and executes; waits so that signals may interrupt. */
#include "editor/audit/run/audit_child.h"

#include <stdatomic.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "editor/audit/run/audit_run.h"
#include "libprof/base/child.h"
#include "libprof/base/clock.h"
#include "libprof/cli/exit_status.h"

/* In the child: undo our signal handling, connect the streams, and execute. */
static int child_exec(const struct me_child *child)
{
	static const int reset[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	int i;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; i < (int)(sizeof(reset) / sizeof(reset[0])); i++)
		signal(reset[i], SIG_DFL);
	for (i = 0; i < 3; i++)
		if (dup2(child->fds[i], i) < 0)
			return errno;
	sigprocmask(SIG_SETMASK, child->mask, NULL);
	if (child->cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET((size_t)child->cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			return errno;
	}
	if (child->before_exec) {
		int ret = child->before_exec();

		if (ret)
			return -ret;
	}
	execve(child->path, child->argv, child->envp);
	return errno;
}

int me_child_start(const struct me_child *child, pid_t *pid, struct mp_err *err)
{
	int report[2], error = 0;
	pid_t forked;

	*pid = -1;
	if (pipe2(report, O_CLOEXEC))
		return mp_err_set(err, errno, "pipe: %s", strerror(errno));
	/* The child must not write to *@pid, which may lie in shared memory. */
	forked = fork();
	if (forked == 0) {
		error = child_exec(child);
		if (write(report[1], &error, sizeof(error)) < 0)
			_exit(MP_EXIT_NOT_EXECUTABLE);
		_exit(MP_EXIT_NOT_FOUND);
	}
	close(report[1]);
	if (forked < 0) {
		error = errno;
		close(report[0]);
		return mp_err_set(err, error, "fork: %s", strerror(error));
	}
	setpgid(forked, forked);
	while (read(report[0], &error, sizeof(error)) < 0 && errno == EINTR)
		;
	close(report[0]);
	if (!error) {
		*pid = forked;
		return 0;
	}
	waitpid(forked, NULL, 0);
	return mp_err_set(err, error, "cannot be executed: %s", strerror(error));
}

int me_child_shell(struct me_child child, const char *command, pid_t *pid, struct mp_err *err)
{
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};

	child.path = "/bin/sh";
	child.argv = argv;
	return me_child_start(&child, pid, err);
}

int me_child_wait(pid_t pid, uint64_t deadline_ns, const sigset_t *mask, int *status)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), cancelled = me_run_cancelled(), ret = 0;
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};

	if (pidfd < 0)
		return -errno;
	while (!ret && !ended.revents) {
		uint64_t now = mp_now_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
		struct timespec wait = {.tv_sec = (time_t)(left / ME_NS_PER_SEC),
					.tv_nsec = (long)(left % ME_NS_PER_SEC)};

		if (ppoll(&ended, 1, deadline_ns ? &wait : NULL, mask) < 0 && errno != EINTR)
			ret = -errno;
		else if (me_run_cancelled() != cancelled)
			ret = -ECANCELED;
		else if (!ended.revents && deadline_ns && !left)
			ret = -ETIMEDOUT;
	}
	close(pidfd);
	while (!ret && waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			ret = -errno;
	return ret;
}

void me_child_kill(pid_t pid)
{
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	mp_child_wait(pid, NULL);
}

void me_child_describe(int status, char *to, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(to, size, "killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(to, size, "exit status %d", WEXITSTATUS(status));
}

static atomic_int run_cancelled;

void me_run_cancel(void)
{
	atomic_fetch_add(&run_cancelled, 1);
}

int me_run_cancelled(void)
{
	return atomic_load(&run_cancelled);
}
