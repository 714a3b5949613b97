// SPDX-License-Identifier: Apache-2.0
/* confined - see confined.h. */
#include "daemon/fleet/confined.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/module/sandbox.h"

#define UNREADY 125 /* confining it failed; it read nothing */
#define LOOK_MS 2000

/* Puts the two descriptors in their places. Neither place may be overwritten before it is copied. */
static bool keep_files(const struct md_confined *c)
{
	int in = c->in_fd < 0 ? -1 : fcntl(c->in_fd, F_DUPFD, MD_CONFINED_OUT + 1);
	int out = c->out_fd < 0 ? -1 : fcntl(c->out_fd, F_DUPFD, MD_CONFINED_OUT + 1);

	if ((c->in_fd >= 0 && in < 0) || (c->out_fd >= 0 && out < 0) || close_range(0, 4, 0))
		return false;
	return (in < 0 || dup2(in, MD_CONFINED_IN) >= 0) &&
	       (out < 0 || dup2(out, MD_CONFINED_OUT) >= 0) &&
	       !close_range(MD_CONFINED_OUT + 1, ~0U, 0);
}

static _Noreturn void run_child(const struct md_confined *c)
{
	const struct rlimit memory = {c->memory, c->memory}, time = {c->seconds, c->seconds},
			    none = {0, 0};

	/* The connection, the store and all other files are out of reach. */
	if (!keep_files(c) || prctl(PR_SET_PDEATHSIG, SIGKILL) ||
	    (md_sandbox_limits_memory() && setrlimit(RLIMIT_DATA, &memory)) ||
	    setrlimit(RLIMIT_CPU, &time) || setrlimit(RLIMIT_CORE, &none) ||
	    prctl(PR_SET_DUMPABLE, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    md_sandbox_confine())
		_exit(UNREADY);
	_exit(c->work(c->arg));
}

/* Waits until the process has ended. Return: true: @look ended it. */
static bool wait_child(const struct md_confined *c, pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	bool ended = false;

	while (c->look && pidfd >= 0 && !ended && poll(&p, 1, LOOK_MS) <= 0)
		ended = c->look(c->look_arg);
	if (ended)
		kill(pid, SIGKILL);
	if (pidfd >= 0)
		close(pidfd);
	return ended;
}

int md_confined_run(const struct md_confined *c, struct mp_err *err)
{
	bool ended;
	int status;
	pid_t pid = fork();

	if (!pid)
		run_child(c);
	if (pid < 0)
		return mp_err_set(err, errno, "fork: %s", strerror(errno));
	ended = wait_child(c, pid);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (ended)
		return mp_err_set(err, ECANCELED, "the work was stopped");
	if (WIFSIGNALED(status))
		return mp_err_set(err, EBADMSG, "its bytes ended their reader by signal %d",
				  WTERMSIG(status));
	if (WEXITSTATUS(status) == UNREADY)
		return mp_err_set(err, EPERM, "a reader of unknown bytes cannot be confined here");
	return WEXITSTATUS(status);
}

int md_confined_file(const char *dir, struct mp_err *err)
{
	char *path;
	int fd;

	if (asprintf(&path, "%s/answer.XXXXXX", dir) < 0)
		return mp_err_set(err, ENOMEM, "out of memory");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		fd = mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	else
		unlink(path);
	free(path);
	return fd;
}
