// SPDX-License-Identifier: Apache-2.0
/* child - fork, exec, wait; see child.h. */
#include "daemon/worker/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/worker/idle.h"
#include "libprof/base/clock.h"

#define LOOK_MS	    1000
#define GRACE_S	    15 /* an audit removes its files and control groups */
#define IOPRIO_IDLE (3 << 13)
#define IOPRIO_THIS 1

static volatile sig_atomic_t stopped;
static int lock_fd = -1;

void md_child_share_lock(int fd)
{
	lock_fd = fd;
}

static void on_stop(int sig)
{
	(void)sig;
	stopped = 1;
}

void md_child_catch_signals(void)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
	struct sigaction action = {.sa_handler = on_stop};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

bool md_child_is_stopped(void)
{
	return stopped;
}

void md_child_be_idle(void)
{
	struct sched_param none = {0};

	/* If the machine forbids one of these calls, the child works without it. */
	(void)!nice(19);
	sched_setscheduler(0, SCHED_IDLE, &none);
	syscall(SYS_ioprio_set, IOPRIO_THIS, 0, IOPRIO_IDLE);
}

int md_child_find(const char *name, char *out, struct mp_err *err)
{
	static const char *const places[] = {"", "../sbin/", "../bin/", "../../bin/",
					     "../../sbin/"};
	char self[PATH_MAX], candidate[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = 0;
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		if (snprintf(candidate, sizeof(candidate), "%.*s/%s%s", (int)(slash - self), self,
			     places[i], name) < (int)sizeof(candidate) &&
		    !access(candidate, X_OK) && realpath(candidate, out))
			return 0;
	}
	return mp_err_set(err, ENOENT, "%s: is not installed beside this program", name);
}

/* ---- the child ----------------------------------------------------------------------------- */

static void fail(const char *what)
{
	dprintf(STDERR_FILENO, "morph-worker: %s: %s\n", what, strerror(errno));
	_exit(125);
}

static void put_fd(const char *path, int flags, int to)
{
	int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 || dup2(fd, to) < 0)
		_exit(125);
}

static void become(const char *user)
{
	const struct passwd *pw = getpwnam(user);

	if (!pw) {
		errno = ENOENT;
		fail(user);
	}
	if (pw->pw_uid == geteuid())
		return;
	if (initgroups(user, pw->pw_gid) || setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) ||
	    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid))
		fail(user);
	unsetenv("TMPDIR");
	setenv("HOME", pw->pw_dir, 1);
	setenv("USER", user, 1);
	setenv("LOGNAME", user, 1);
}

static void run_child(const struct md_child *child, pid_t parent)
{
	sigset_t none;

	setsid();
	put_fd("/dev/null", O_RDONLY, STDIN_FILENO);
	put_fd(child->messages, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
	put_fd(child->out ? child->out : "/dev/null",
	       O_WRONLY | (child->out ? O_CREAT | O_TRUNC : 0), STDOUT_FILENO);
	if (child->user)
		become(child->user);
	else if (lock_fd >= 0)
		fcntl(lock_fd, F_SETFD, 0);
	/* A change of the user resets this setting, so it comes last. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (getppid() != parent)
		_exit(125);
	if (child->file_max &&
	    setrlimit(RLIMIT_FSIZE, &(struct rlimit){child->file_max, child->file_max}))
		fail("setrlimit");
	if (chdir(child->directory ? child->directory : "/"))
		fail(child->directory ? child->directory : "/");
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(child->argv[0], child->argv);
	fail(child->argv[0]);
}

/* ---- waiting ------------------------------------------------------------------------------- */

/* Waits until the process can be collected, or @ms are over. */
static bool has_ended(int pidfd, int ms)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, ms) > 0;
}

static void stop_child(pid_t pid, int pidfd)
{
	double until = mp_now_s() + GRACE_S;

	kill(pid, SIGTERM);
	while (!has_ended(pidfd, 200) && mp_now_s() < until)
		;
	/* All processes of the child's session that have not left its process group. */
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
}

/* @looked_s: when @child->look was called last. Return: @why was set; false: the child goes on. */
static bool must_stop(const struct md_child *child, struct md_idle_watch *watch, double start_s,
		      double *looked_s, enum md_child_end *why)
{
	bool look = child->look && mp_now_s() - *looked_s >= MD_CHILD_LOOK_S, stop = true;

	if (stopped)
		*why = MD_CHILD_STOPPED;
	else if (child->limit_s > 0 && mp_now_s() - start_s > child->limit_s)
		*why = MD_CHILD_LATE;
	else if (child->policy && md_idle_is_wanted(watch, child->policy))
		*why = MD_CHILD_WANTED;
	else if (look && child->look(child->look_arg))
		*why = MD_CHILD_ENOUGH;
	else
		stop = false;
	if (look)
		*looked_s = mp_now_s();
	return stop;
}

static void wait_child(const struct md_child *child, pid_t pid, int pidfd,
		       struct md_child_result *result)
{
	enum md_child_end why = MD_CHILD_EXITED;
	struct md_idle_watch watch;
	double start_s = mp_now_s(), looked_s = start_s;
	struct rusage usage;
	bool ended = false;
	int status = 0;

	md_idle_watch_begin(&watch, pid);
	while (!ended) {
		ended = has_ended(pidfd, LOOK_MS);
		if (!ended && must_stop(child, &watch, start_s, &looked_s, &why)) {
			stop_child(pid, pidfd);
			break;
		}
	}
	while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR)
		;
	result->cpu_s = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
			(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	result->end = why;
	if (why == MD_CHILD_EXITED && !WIFEXITED(status))
		result->end = MD_CHILD_DIED;
	result->status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
}

/* Reads the first message, which says what went wrong. */
static void read_reason(const char *path, struct md_child_result *result)
{
	FILE *f = fopen(path, "re");
	char *colon;

	result->reason[0] = 0;
	if (!f)
		return;
	if (!fgets(result->reason, sizeof(result->reason), f))
		result->reason[0] = 0;
	fclose(f);
	result->reason[strcspn(result->reason, "\n")] = 0;
	colon = strstr(result->reason, ": ");
	if (colon && !strncmp(result->reason, "morph", 5))
		memmove(result->reason, colon + 2, strlen(colon + 2) + 1);
}

int md_child_run(const struct md_child *child, struct md_child_result *result, struct mp_err *err)
{
	pid_t parent = getpid(), pid;
	int pidfd;

	*result = (struct md_child_result){.end = MD_CHILD_STOPPED};
	if (stopped)
		return 0;
	pid = fork();
	if (pid < 0)
		return mp_err_set(err, errno, "fork: %s", strerror(errno));
	if (!pid)
		run_child(child, parent);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	wait_child(child, pid, pidfd, result);
	if (pidfd >= 0)
		close(pidfd);
	read_reason(child->messages, result);
	return 0;
}
