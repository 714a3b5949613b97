// SPDX-License-Identifier: Apache-2.0
/* command - a child process that waits for our signal to start; see command.h. */
#include "daemon/morphd/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/cli/exit_status.h"

static volatile sig_atomic_t target;

/*
 * A terminal sends its signals to the whole group, so the program has them already. Pass on
 * only those that a process sent.
 */
static void pass_on(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (target && info->si_code <= 0)
		kill(target, sig);
}

static void on_child(int sig)
{
	(void)sig; /* the handler exists only to interrupt poll() */
}

static void catch_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
	struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction child = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};
	struct sigaction now;
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		/* A SIGHUP that nohup ignores stays ignored, in morphd and in the program. */
		if (!sigaction(signals[i], NULL, &now) && now.sa_handler == SIG_IGN)
			continue;
		sigaction(signals[i], &action, NULL);
	}
	sigaction(SIGCHLD, &child, NULL);
}

static void run_child(char **argv, int go, int failed)
{
	ssize_t n;
	char byte;
	int code;

	do {
		n = read(go, &byte, 1);
	} while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(1); /* the parent closed the pipe without a byte */
	execvp(argv[0], argv);
	code = errno;
	n = write(failed, &code, sizeof(code));
	_exit(code == ENOENT ? MP_EXIT_NOT_FOUND : MP_EXIT_NOT_EXECUTABLE);
}

int md_command_start(char **argv, struct md_command *out, struct mp_err *err)
{
	int go[2], failed[2];

	memset(out, 0, sizeof(*out));
	if (pipe2(go, O_CLOEXEC) < 0)
		return mp_err_set(err, errno, "pipe: %s", strerror(errno));
	if (pipe2(failed, O_CLOEXEC) < 0) {
		close(go[0]);
		close(go[1]);
		return mp_err_set(err, errno, "pipe: %s", strerror(errno));
	}
	out->pid = fork();
	if (!out->pid) {
		/*
		 * Close the parent's ends. Otherwise the child would not notice the parent's
		 * death.
		 */
		close(go[1]);
		close(failed[0]);
		run_child(argv, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	out->go = go[1];
	out->failed = failed[0];
	if (out->pid < 0) {
		close(out->go);
		close(out->failed);
		return mp_err_set(err, errno, "fork: %s", strerror(errno));
	}
	return 0;
}

int md_command_go(struct md_command *command, const char *name, struct mp_err *err)
{
	ssize_t n;
	int code = 0;

	target = command->pid;
	catch_signals();
	n = write(command->go, "g", 1);
	close(command->go);
	command->go = -1;
	do {
		n = read(command->failed, &code, sizeof(code));
	} while (n < 0 && errno == EINTR);
	close(command->failed);
	command->failed = -1;
	if (n != sizeof(code))
		return 0; /* the exec closed the pipe: it succeeded */
	return mp_err_set(err, code, "%s: %s", name, strerror(code));
}

bool md_command_has_ended(struct md_command *command)
{
	pid_t pid;

	if (command->ended)
		return true;
	pid = waitpid(command->pid, &command->status, WNOHANG);
	if (pid == command->pid || (pid < 0 && errno == ECHILD)) {
		command->ended = true;
		target = 0;
	}
	return command->ended;
}

int md_command_status(const struct md_command *command)
{
	if (WIFSIGNALED(command->status))
		return 128 + WTERMSIG(command->status);
	return WEXITSTATUS(command->status);
}

void md_command_abandon(struct md_command *command)
{
	if (command->go >= 0)
		close(command->go);
	if (command->failed >= 0)
		close(command->failed);
	command->go = command->failed = -1;
	while (!command->ended && waitpid(command->pid, &command->status, 0) < 0 && errno == EINTR)
		;
	command->ended = true;
	target = 0;
}
