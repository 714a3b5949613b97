// SPDX-License-Identifier: Apache-2.0
/* audit_hooks - runs a hook with the shell, and says how it failed. */
#include "editor/audit/run/audit_hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "editor/audit/run/audit_child.h"

extern char **environ;

/* The environment of a hook: our own, and the side that runs next. Ownership: free(). */
static char **hook_environment(char *side, char *program)
{
	size_t nr = 0, used = 0;
	char **envp;

	while (environ[nr])
		nr++;
	envp = calloc(nr + 3, sizeof(*envp));
	if (!envp)
		return NULL;
	for (size_t i = 0; i < nr; i++)
		if (strncmp(environ[i], "MORPH_AUDIT_", 12))
			envp[used++] = environ[i];
	if (side[0]) {
		envp[used++] = side;
		envp[used++] = program;
	}
	return envp;
}

static int hook_start(const char *command, char *const *envp, const sigset_t *mask, pid_t *pid,
		      struct mp_err *err)
{
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC), ret;

	if (in < 0)
		return mp_err_set(err, errno, "/dev/null: %s", strerror(errno));
	/* Standard output is the audit's own: it may be JSON. */
	ret = me_child_shell((struct me_child){.envp = envp,
					       .fds = {in, STDERR_FILENO, STDERR_FILENO},
					       .cpu = -1,
					       .mask = mask},
			     command, pid, err);
	close(in);
	return ret;
}

int me_hook_run(const char *option, const char *command, char side, const char *program,
		const sigset_t *mask, struct mp_err *err)
{
	char end[80], before[] = " before A", side_is[32] = "", program_is[PATH_MAX + 32] = "";
	struct mp_err cause = {""};
	int status, ret;
	char **envp;
	pid_t pid;

	if (!command)
		return 0;
	if (side) {
		snprintf(side_is, sizeof(side_is), "MORPH_AUDIT_SIDE=%c", side);
		snprintf(program_is, sizeof(program_is), "MORPH_AUDIT_PROGRAM=%s", program);
	}
	envp = hook_environment(side_is, program_is);
	if (!envp)
		return mp_err_set(err, ENOMEM, "out of memory");
	ret = hook_start(command, envp, mask, &pid, &cause);
	free(envp);
	if (ret)
		return mp_err_set(err, -ret, "%s: %s", option, cause.msg);
	ret = me_child_wait(pid, 0, mask, &status);
	if (ret) {
		me_child_kill(pid);
		return ret == -ECANCELED ? mp_err_set(err, ECANCELED, "interrupted")
					 : mp_err_set(err, -ret, "%s: %s", option, strerror(-ret));
	}
	if (!status)
		return 0;
	me_child_describe(status, end, sizeof(end));
	before[sizeof(before) - 2] = side;
	return mp_err_set(err, EINVAL, "%s%s: %s: %s", option, side ? before : "", end, command);
}
