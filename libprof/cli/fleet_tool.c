// SPDX-License-Identifier: Apache-2.0
/* fleet_tool - see fleet_tool.h. */
#include "libprof/cli/fleet_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/child.h"
#include "libprof/cli/exit_status.h"

#define ARGUMENTS_MAX 32

static const char tool[] = "morph-fleet";

void mp_fleet_tool_remove(const char *path)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	char name[PATH_MAX + 8], *slash;

	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		unlink(name);
	}
	snprintf(name, sizeof(name), "%s", path);
	slash = strrchr(name, '/');
	if (slash) {
		*slash = '\0';
		rmdir(name);
	}
}

static int run(const char *connection, char *const *argv)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (setenv("MORPH_FLEET", connection, 1) || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
			_exit(MP_EXIT_FAILED);
		mp_child_exec(argv);
		_exit(MP_EXIT_NOT_FOUND);
	}
	if (pid < 0 || mp_child_wait(pid, &status))
		return MP_EXIT_FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : MP_EXIT_FAILED;
}

/*
 * Runs the tool, writes its exit status to @out, and removes @path when the other end of @alive is closed:
 * then the program that wanted the database has ended.
 */
static _Noreturn void keep(const char *connection, char *const *argv, const char *path, int out,
			   int alive)
{
	unsigned char status = (unsigned char)run(connection, argv);
	char byte;

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	if (write(out, &status, 1) != 1 || close(out))
		status = 1;
	while (read(alive, &byte, 1) < 0 && errno == EINTR)
		;
	mp_fleet_tool_remove(path);
	_exit(0);
}

static int start(const char *connection, char *const *argv, const char *path, int *from)
{
	int out[2], alive[2];
	pid_t pid;

	if (pipe2(out, O_CLOEXEC))
		return -errno;
	if (pipe2(alive, O_CLOEXEC)) {
		close(out[0]);
		close(out[1]);
		return -ENFILE;
	}
	pid = fork();
	if (!pid) {
		close(out[0]);
		close(alive[1]);
		keep(connection, argv, path, out[1], alive[0]);
	}
	close(out[1]);
	close(alive[0]);
	*from = out[0];
	/* alive[1] stays open until this process ends. */
	return pid < 0 ? -EAGAIN : 0;
}

static int judge(int status, struct mp_err *err)
{
	if (!status)
		return 0;
	if (status == MP_EXIT_NOT_FOUND)
		return mp_err_set(
			err, ENOENT,
			"morph-fleet is not installed: --fleet needs it, and PostgreSQL's "
			"client library");
	return status == MP_EXIT_NO_PROFILE ? -ENODATA : -EIO;
}

int mp_fleet_tool_pull(const char *connection, const char *const *arguments, char *path,
		       size_t size, struct mp_err *err)
{
	const char *tmp = getenv("TMPDIR"), *argv[ARGUMENTS_MAX + 5] = {tool, "pull", "--output"};
	unsigned char status = 1;
	int n = 4, from = -1, r;

	if (snprintf(path, size, "%s/morph-fleet.XXXXXX", tmp && *tmp ? tmp : "/tmp") + 16 >=
	    (int)size)
		return mp_err_set(err, ENAMETOOLONG, "TMPDIR: too long");
	if (!mkdtemp(path))
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	strcat(path, "/fleet.db");
	argv[3] = path;
	for (; *arguments && n < ARGUMENTS_MAX + 4; arguments++)
		argv[n++] = *arguments;
	fflush(stdout);
	r = start(connection, (char *const *)argv, path, &from);
	if (r) {
		mp_fleet_tool_remove(path);
		return mp_err_set(err, -r, "cannot start morph-fleet: %s", strerror(-r));
	}
	while (read(from, &status, 1) < 0 && errno == EINTR)
		;
	close(from);
	r = judge(status, err);
	if (r)
		mp_fleet_tool_remove(path);
	return r;
}
