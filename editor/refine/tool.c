// SPDX-License-Identifier: Apache-2.0
/* tool - finds and runs programs; see tool.h. */
#include "editor/refine/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "editor/audit/run/audit_run.h"
#include "editor/audit/run/audit_slot.h"
#include "editor/refine/interrupt.h"
#include "libprof/base/child.h"

extern char **environ;

int me_tool_find(const char *name, struct me_tool *out, struct mp_err *err)
{
	if (!mp_child_find(name, out->path, NULL) || mp_child_find_in_path(name, out->path))
		return 0;
	return mp_err_set(err, ENOENT, "%s: is not installed", name);
}

int me_tool_run(char *const *argv, bool quiet)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int rc, status;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	for (int fd = STDOUT_FILENO; quiet && fd <= STDERR_FILENO; fd++)
		posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
	rc = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (rc)
		return -rc;
	rc = me_interrupt_wait(pid, &status);
	return rc ? rc : status;
}

static size_t count(char *const *argv)
{
	size_t nr = 0;

	while (argv[nr])
		nr++;
	return nr;
}

char **me_tool_with_command(char *const *first, char *const *command)
{
	size_t a = count(first), b = count(command);
	char **argv = calloc(a + b + 1, sizeof(*argv));

	if (argv) {
		memcpy(argv, first, a * sizeof(*argv));
		memcpy(argv + a, command, b * sizeof(*argv));
	}
	return argv;
}

struct outcome {
	int rc;
	struct me_in_place_result result;
	struct mp_err err;
};

static int run_here(const struct me_in_place *in, struct outcome *out)
{
	struct me_run_spec spec = {
		.path = in->program, .argv = in->argv, .envp = environ, .cpu = -1};
	struct me_program program;
	struct me_run run = {0};
	struct me_slot slot;
	int rc = me_program_open(&program, in->version, &out->err);

	if (rc)
		return rc;
	rc = me_slot_open(&slot, in->dir, "slot", in->at, &out->err);
	if (!rc) {
		rc = me_slot_put(&slot, &program, &out->err);
		if (!rc)
			rc = me_run(&spec, &run, &out->err);
		me_slot_close(&slot);
	}
	me_program_close(&program);
	out->result = (struct me_in_place_result){.cpu_s = (double)run.cpu_ns / 1e9,
						  .wall_s = (double)run.wall_ns / 1e9,
						  .status = run.status};
	snprintf(out->result.last_stderr, sizeof(out->result.last_stderr), "%s",
		 run.last_stderr_line);
	return rc;
}

/* Return: false: the child ended without an answer. */
static bool read_outcome(int fd, pid_t pid, struct outcome *out)
{
	bool signalled = false;
	ssize_t n;

	while ((n = read(fd, out, sizeof(*out))) < 0 && errno == EINTR)
		if (me_interrupted() && !signalled) {
			kill(pid, SIGTERM);
			signalled = true;
		}
	return n == (ssize_t)sizeof(*out);
}

int me_in_place_run(const struct me_in_place *run, struct me_in_place_result *result,
		    struct mp_err *err)
{
	struct outcome out = {.rc = -EIO};
	int fds[2], status;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return mp_err_set(err, errno, "pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0) {
		int rc = mp_err_set(err, errno, "fork: %s", strerror(errno));

		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	if (!pid) {
		out.rc = run_here(run, &out);
		_exit(write(fds[1], &out, sizeof(out)) != sizeof(out));
	}
	close(fds[1]);
	if (!read_outcome(fds[0], pid, &out)) {
		out.rc = -EIO;
		snprintf(out.err.msg, sizeof(out.err.msg), "%s: could not be run", run->argv[0]);
	}
	close(fds[0]);
	me_interrupt_wait(pid, &status);
	*result = out.result;
	if (out.rc)
		*err = out.err;
	return out.rc;
}
