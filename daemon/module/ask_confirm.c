// SPDX-License-Identifier: Apache-2.0
/* ask_confirm - runs morph-optimize to verify two files, and reads its answer; see libprof/note/confirm.h. */
#include "daemon/module/ask_confirm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/base/sanitized.h"

#define CPU_MAX_S 60
/* a file of 2^24 blocks needs 4 GiB, half of them for the files */
#define MEMORY_MAX  (UINT64_C(6) << 30)
#define DEADLINE_NS UINT64_C(120000000000)
#define EDITOR	    "morph-optimize"
/* Higher than any descriptor that the process inherits. */
#define SPARE_FD (MP_CONFIRM_CANDIDATES + MP_CONFIRM_MAX)

/*
 * morph-optimize lies beside this program, or in bin if a package installed this program in
 * sbin.
 */
static int open_editor(void)
{
	static const char *const places[] = {"/", "/../bin/"};
	char self[PATH_MAX - 64], path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;
	size_t i;
	int fd = -1;

	if (n <= 0)
		return -1;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return -1;
	*slash = '\0';
	for (i = 0; i < sizeof(places) / sizeof(places[0]) && fd < 0; i++) {
		snprintf(path, sizeof(path), "%s%s%s", self, places[i], EDITOR);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	return fd;
}

static void limit(int resource, rlim_t value)
{
	struct rlimit l = {value, value}, now;

	if (!getrlimit(resource, &now) && now.rlim_max < value)
		return;
	if (setrlimit(resource, &l))
		_exit(1);
}

static void limit_all(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	/* If memory runs out, the kernel should end this process and not the collector. */
	if (fd >= 0) {
		if (write(fd, "1000", 4) < 0)
			errno = 0;
		close(fd);
	}
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, 0);
	limit(RLIMIT_CPU, CPU_MAX_S);
	if (!MP_IS_SANITIZED)
		limit(RLIMIT_AS, MEMORY_MAX);
}

/*
 * Runs after fork(), so it makes async-signal-safe calls only. @fds: answer, output,
 * candidates, in the order of MP_CONFIRM_*.
 */
static void become_editor(int editor, const int *fds, size_t nr, pid_t parent)
{
	char *argv[] = {(char *)MP_CONFIRM_NAME, NULL}, *none[] = {NULL};
	int kept[MP_CONFIRM_MAX + 2], null;
	char path[32];
	sigset_t mask;
	size_t i;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != parent)
		_exit(1);
	setsid();
	sigemptyset(&mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	/* Move the descriptors away from the numbers that they will get. */
	for (i = 0; i < nr; i++) {
		kept[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, SPARE_FD);
		if (kept[i] < 0)
			_exit(1);
	}
	editor = fcntl(editor, F_DUPFD_CLOEXEC, SPARE_FD);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (editor < 0 || null < 0 || dup2(null, 0) < 0 ||
	    (!MP_IS_SANITIZED && dup2(null, 2) < 0) || dup2(kept[0], MP_CONFIRM_ANSWER) < 0)
		_exit(1);
	for (i = 1; i < nr; i++)
		if (dup2(kept[i], MP_CONFIRM_OUTPUT + (int)i - 1) < 0)
			_exit(1);
	for (i = MP_CONFIRM_OUTPUT + nr - 1; i < SPARE_FD; i++)
		close((int)i);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", editor);
	/* Keep no other descriptor open across the exec. */
	if (close_range(SPARE_FD, ~0u, CLOSE_RANGE_CLOEXEC) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		_exit(1);
	limit_all();
	execve(path, argv, none);
	_exit(1);
}

int md_confirm_start(struct md_confirm *confirm, int output, const int *candidates, size_t nr)
{
	int fds[MP_CONFIRM_MAX + 2] = {-1, output}, pipefd[2], editor, ret = 0;
	pid_t parent = getpid();

	*confirm = (struct md_confirm){.answer = -1};
	if (!nr || nr > MP_CONFIRM_MAX)
		return -EINVAL;
	memcpy(fds + 2, candidates, nr * sizeof(*candidates));
	editor = open_editor();
	if (editor < 0)
		return -ENOENT;
	if (pipe2(pipefd, O_CLOEXEC | O_NONBLOCK)) {
		close(editor);
		return -EMFILE;
	}
	fds[0] = pipefd[1];
	confirm->pid = fork();
	if (!confirm->pid)
		become_editor(editor, fds, nr + 2, parent);
	if (confirm->pid < 0) {
		ret = -errno;
		confirm->pid = 0;
		close(pipefd[0]);
	} else {
		confirm->answer = pipefd[0];
		confirm->began_ns = mp_now_ns();
	}
	close(pipefd[1]);
	close(editor);
	return ret;
}

bool md_confirm_poll(struct md_confirm *confirm, int timeout_ms, bool *yes)
{
	struct pollfd p = {.fd = confirm->answer, .events = POLLIN};
	int status = 0;
	ssize_t n;

	*yes = false;
	if (poll(&p, 1, timeout_ms) <= 0 && mp_now_ns() - confirm->began_ns < DEADLINE_NS)
		return false;
	while (confirm->size < sizeof(confirm->got) &&
	       (n = read(confirm->answer, (char *)&confirm->got + confirm->size,
			 sizeof(confirm->got) - confirm->size)) > 0)
		confirm->size += (size_t)n;
	/* The process closed its pipe, or is late. Either way no more of the answer will come. */
	kill(confirm->pid, SIGKILL);
	while (waitpid(confirm->pid, &status, 0) < 0 && errno == EINTR)
		;
	close(confirm->answer);
	confirm->pid = 0;
	*yes = confirm->size == sizeof(confirm->got);
	return true;
}

void md_confirm_stop(struct md_confirm *confirm)
{
	if (!confirm->pid)
		return;
	kill(confirm->pid, SIGKILL);
	while (waitpid(confirm->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(confirm->answer);
	confirm->pid = 0;
}
