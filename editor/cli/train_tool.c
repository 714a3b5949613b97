// SPDX-License-Identifier: Apache-2.0
/*
 * train_tool - finds and runs the programs that a training needs: Morph's own and the command.
 * Called by train.c and train_keep.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "editor/audit/audit_run.h"
#include "editor/audit/audit_slot.h"
#include "editor/cli/train_private.h"

extern char **environ;

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

bool me_train_find_program(const char *name, char *out)
{
	const char *path = getenv("PATH"), *end;

	if (strchr(name, '/'))
		return is_program(name) && realpath(name, out);
	for (; path && *path; path = *end ? end + 1 : end) {
		char candidate[PATH_MAX];

		end = strchrnul(path, ':');
		if (snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)(end - path), path,
			     name) < (int)sizeof(candidate) &&
		    is_program(candidate))
			return realpath(candidate, out);
	}
	return false;
}

int me_train_find_tool(const struct me_trainer *t, const char *name, struct me_train_path *out)
{
	static const char *const places[] = {"%.*s/%s", "%.*s/../sbin/%s"};
	char self[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = 0;
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		char candidate[PATH_MAX];

		if (snprintf(candidate, sizeof(candidate), places[i], (int)(slash - self), self,
			     name) < (int)sizeof(candidate) &&
		    is_program(candidate) && realpath(candidate, out->text))
			return 0;
	}
	if (me_train_find_program(name, out->text))
		return 0;
	return mp_err_set(t->err, ENOENT, "%s: is not installed", name);
}

int me_train_run_tool(char *const *argv, bool quiet)
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
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status;
}

static size_t count(char *const *argv)
{
	size_t nr = 0;

	while (argv[nr])
		nr++;
	return nr;
}

char **me_train_with_command(const struct me_trainer *t, char *const *first)
{
	size_t a = count(first), b = count(t->options->command);
	char **argv = calloc(a + b + 1, sizeof(*argv));

	if (argv) {
		memcpy(argv, first, a * sizeof(*argv));
		memcpy(argv + a, t->options->command, b * sizeof(*argv));
	}
	return argv;
}

/* Runs in a child process, whose view of the file system changes. */
static int run_in_place(struct me_trainer *t, const char *in_place, double *cpu_s, double *wall_s)
{
	struct me_run_spec spec = {
		.path = t->program, .argv = t->options->command, .envp = environ, .cpu = -1};
	struct me_program program;
	struct me_run run = {0};
	struct me_slot slot;
	int rc;

	rc = me_program_open(&program, in_place, t->err);
	if (rc)
		return rc;
	rc = me_slot_open(&slot, t->dir, "slot", t->file, t->err);
	if (!rc) {
		rc = me_slot_put(&slot, &program, t->err);
		if (!rc)
			rc = me_run(&spec, &run, t->err);
		me_slot_close(&slot);
	}
	me_program_close(&program);
	*cpu_s = (double)run.cpu_ns / 1e9;
	*wall_s = (double)run.wall_ns / 1e9;
	if (!rc && WIFSIGNALED(run.status))
		rc = mp_err_set(t->err, EIO, "%s: died of signal %d: %s", t->options->command[0],
				WTERMSIG(run.status), run.last_stderr_line);
	return rc;
}

struct outcome {
	int rc;
	double cpu_s, wall_s;
	struct mp_err err;
};

int me_train_run(struct me_trainer *t, const char *in_place, double *cpu_s, double *wall_s)
{
	struct outcome out = {.rc = -EIO};
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return mp_err_set(t->err, errno, "pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		return mp_err_set(t->err, errno, "fork: %s", strerror(errno));
	if (!pid) {
		out.rc = run_in_place(t, in_place, &out.cpu_s, &out.wall_s);
		out.err = *t->err;
		_exit(write(fds[1], &out, sizeof(out)) != sizeof(out));
	}
	close(fds[1]);
	if (read(fds[0], &out, sizeof(out)) != sizeof(out))
		snprintf(out.err.msg, sizeof(out.err.msg), "%s: could not be run",
			 t->options->command[0]);
	close(fds[0]);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	*cpu_s = out.cpu_s;
	*wall_s = out.wall_s;
	if (out.rc)
		*t->err = out.err;
	return out.rc;
}
