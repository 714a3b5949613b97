// SPDX-License-Identifier: Apache-2.0
/* run_tool - a child process whose standard output is read; see run_tool.h. */
#include "daemon/morph/run_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/worker/child.h"
#include "libprof/cli/exit_status.h"

/* In the child: the program beside this one goes before one in PATH. */
static _Noreturn void become(char *const *argv, int out)
{
	char program[PATH_MAX];

	if (dup2(out, STDOUT_FILENO) < 0)
		_exit(MP_EXIT_NOT_EXECUTABLE);
	if (!md_child_find(argv[0], program, NULL))
		execv(program, argv);
	execvp(argv[0], argv);
	fprintf(stderr, "morph: %s: %s\n", argv[0], strerror(errno));
	_exit(MP_EXIT_NOT_FOUND);
}

/* Return: all that comes, with a NUL; NULL: no memory. */
static char *read_all(int fd, size_t *size)
{
	char *text = malloc(1), *more;
	ssize_t n = 0;

	for (*size = 0; text; *size += (size_t)n) {
		more = realloc(text, *size + 65537);
		if (!more) {
			free(text);
			return NULL;
		}
		text = more;
		do
			n = read(fd, text + *size, 65536);
		while (n < 0 && errno == EINTR);
		if (n <= 0)
			break;
	}
	if (text)
		text[*size] = '\0';
	return text;
}

int md_run_tool(char *const *argv, json_t **out, struct mp_err *err)
{
	int pipes[2], status;
	size_t size = 0;
	char *text;
	pid_t pid;

	if (out)
		*out = NULL;
	if (pipe2(pipes, O_CLOEXEC))
		return mp_err_set(err, errno, "cannot start %s: %s", argv[0], strerror(errno));
	fflush(stdout);
	pid = fork();
	if (!pid)
		become(argv, pipes[1]);
	close(pipes[1]);
	if (pid < 0) {
		close(pipes[0]);
		return mp_err_set(err, errno, "cannot start %s: %s", argv[0], strerror(errno));
	}
	text = read_all(pipes[0], &size);
	close(pipes[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (out && text)
		*out = json_loadb(text, size, 0, NULL);
	free(text);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
