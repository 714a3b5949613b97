// SPDX-License-Identifier: Apache-2.0
/*
 * sandbox_reader - the processes on the other side of sandbox: the reader and its workers.
 * Nothing here interprets a file; @work does that, in a worker.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/module/sandbox.h"
#include "daemon/module/sandbox_private.h"
#include "libprof/base/child.h"
#include "libprof/base/confine.h"

static void answer(enum md_sandbox_step step, int value)
{
	struct md_sandbox_answer a = {step, value};

	if (write(MD_SANDBOX_SOCK, &a, sizeof(a)) != sizeof(a))
		_exit(1); /* morphd is gone */
}

/* ---- confinement -------------------------------------------------------------------------- */

static int limit(int resource, rlim_t value)
{
	struct rlimit l = {value, value}, now;

	/* The limit may already be lower. */
	if (!getrlimit(resource, &now) && now.rlim_max < value)
		return 0;
	return setrlimit(resource, &l);
}

static int limit_reader(void)
{
	FILE *f;

	/* If memory runs out, the kernel should end this process and not morphd. */
	f = fopen("/proc/self/oom_score_adj", "we");
	if (f) {
		fputs("1000", f);
		fclose(f);
	}
	return limit(RLIMIT_CORE, 0) || limit(RLIMIT_FSIZE, 0) ||
			       limit(RLIMIT_NOFILE, MD_SANDBOX_SOCK + 4)
		       ? -errno
		       : 0;
}

/* Call after changing the user, since that resets these settings. */
static int drop_privileges(pid_t parent)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

static void confine(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE};
	pid_t parent = getppid();
	size_t i;
	int ret;

	/* morphd handles signals of the service or terminal; it may still have files to read. */
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], SIG_IGN);
	setsid();
	prctl(PR_SET_NAME, "morphd-reader", 0, 0, 0);
	ret = limit_reader();
	if (ret) {
		answer(MD_SANDBOX_LIMITS, -ret);
		_exit(1);
	}
	ret = mp_confine_privileges();
	if (ret) {
		answer(MD_SANDBOX_CAPABILITIES, -ret);
		_exit(1);
	}
	ret = drop_privileges(parent);
	if (ret) {
		answer(MD_SANDBOX_PRIVILEGES, -ret);
		_exit(1);
	}
	ret = md_sandbox_filter_reader();
	if (ret) {
		answer(MD_SANDBOX_FILTER, -ret);
		_exit(1);
	}
}

/* ---- files -------------------------------------------------------------------------------- */

static int confine_worker(pid_t reader)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != reader)
		return -1;
	if (limit(RLIMIT_CPU, MD_SANDBOX_CPU) || limit(RLIMIT_NPROC, 0) || limit(RLIMIT_NOFILE, 0))
		return -1;
	if (!MD_SANDBOX_ASAN && limit(RLIMIT_AS, MD_SANDBOX_AS))
		return -1;
	return md_sandbox_filter_worker();
}

static void work_and_exit(pid_t reader, const int fds[2], uint64_t size, md_sandbox_work *work)
{
	struct md_buf reply = {0};
	size_t done = 0;
	ssize_t n;

	close(MD_SANDBOX_SOCK);
	if (confine_worker(reader))
		_exit(MD_SANDBOX_UNREADY);
	if (work(fds[0], size, &reply))
		_exit(MD_SANDBOX_GAVE_UP);
	while (done < reply.size) {
		n = write(fds[1], reply.data + done, reply.size - done);
		if (n < 0 && errno != EINTR)
			_exit(MD_SANDBOX_GAVE_UP);
		done += n > 0 ? (size_t)n : 0;
	}
	_exit(MD_SANDBOX_DONE);
}

/* Return: number of descriptors received; -1: morphd is gone. */
static int receive(struct md_sandbox_request *request, int fds[2])
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec iov = {request, sizeof(*request)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	ssize_t n;

	do {
		n = recvmsg(MD_SANDBOX_SOCK, &msg, 0);
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(*request))
		return -1;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(2 * sizeof(int)))
		return 0;
	memcpy(fds, CMSG_DATA(c), 2 * sizeof(int));
	return 2;
}

static void serve(pid_t self, md_sandbox_work *work)
{
	struct md_sandbox_request request;
	int fds[2], nr, status;
	pid_t pid;

	while ((nr = receive(&request, fds)) >= 0) {
		if (nr != 2) {
			answer(MD_SANDBOX_FORK, EMFILE);
			continue;
		}
		pid = fork();
		if (!pid)
			work_and_exit(self, fds, request.size, work);
		status = errno;
		close(fds[0]);
		close(fds[1]);
		if (pid < 0) {
			answer(MD_SANDBOX_FORK, status);
			continue;
		}
		answer(MD_SANDBOX_STARTED, pid);
		mp_child_wait(pid, &status);
		answer(MD_SANDBOX_ENDED, status);
	}
}

void md_sandbox_reader(char **argv, const char *name, md_sandbox_work *work)
{
	pid_t self = getpid(); /* the filter forbids getpid() later */

	if (!argv[0] || strcmp(argv[0], name))
		return;
	confine();
	answer(MD_SANDBOX_READY, 0);
	serve(self, work);
	_exit(0);
}
