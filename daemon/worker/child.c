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
static void (*each_second)(void *arg);
static void *each_second_arg;

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

void md_child_each_second(void (*look)(void *arg), void *arg)
{
	each_second = look;
	each_second_arg = arg;
}

static void look_around(void)
{
	void (*look)(void *arg) = each_second;

	if (!look)
		return;
	each_second = NULL;
	look(each_second_arg);
	each_second = look;
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

/* If the machine forbids one of these calls, the child works without it. */
static void be(enum md_child_priority priority)
{
	struct sched_param none = {0};

	if (priority == MD_CHILD_PROMPT)
		return;
	syscall(SYS_ioprio_set, IOPRIO_THIS, 0, IOPRIO_IDLE);
	(void)!nice(priority == MD_CHILD_NICE ? 10 : 19);
	if (priority == MD_CHILD_IDLE)
		sched_setscheduler(0, SCHED_IDLE, &none);
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

static void run_child(const struct md_child *child, pid_t parent, int messages)
{
	sigset_t none;

	setsid();
	be(child->priority);
	put_fd("/dev/null", O_RDONLY, STDIN_FILENO);
	if (dup2(messages, STDERR_FILENO) < 0)
		_exit(125);
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
	if (chdir("/"))
		fail("/");
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(child->argv[0], child->argv);
	fail(child->argv[0]);
}

/* ---- waiting ------------------------------------------------------------------------------- */

/* A child while it runs. */
struct running {
	const struct md_child *child;
	pid_t pid;
	int pidfd, messages; /* a pipe from its standard error; -1: it is closed */
	struct md_child_result *result;
};

/*
 * Reads what the child wrote to standard error: the beginning is kept, the rest dropped, so that a child that prints
 * endlessly fills no disk.
 */
static void read_messages(struct running *r)
{
	size_t kept = strlen(r->result->reason), room = sizeof(r->result->reason) - 1 - kept;
	char bytes[65536];
	ssize_t nr = read(r->messages, bytes, sizeof(bytes));

	if (nr > 0) {
		room = (size_t)nr < room ? (size_t)nr : room;
		memcpy(r->result->reason + kept, bytes, room);
		r->result->reason[kept + room] = 0;
	} else if (!nr || errno != EAGAIN) {
		close(r->messages);
		r->messages = -1;
	}
}

/* Waits until the process can be collected, or @ms are over. */
static bool has_ended(struct running *r, int ms)
{
	double until = mp_now_s() + ms / 1e3;
	int left = ms;

	do {
		struct pollfd p[] = {{.fd = r->pidfd, .events = POLLIN},
				     {.fd = r->messages, .events = POLLIN}};

		if (poll(p, 2, left) < 0)
			return false;
		if (p[1].revents)
			read_messages(r);
		if (p[0].revents)
			return true;
		left = (int)((until - mp_now_s()) * 1e3);
	} while (left > 0);
	return false;
}

static void stop_child(struct running *r)
{
	double until = mp_now_s() + GRACE_S;

	kill(r->pid, SIGTERM);
	while (!has_ended(r, 200) && mp_now_s() < until)
		;
	/* All processes of the child's session that have not left its process group. */
	kill(-r->pid, SIGKILL);
	kill(r->pid, SIGKILL);
}

/* @looked_s: when @child->look was called last. Return: @why was set; false: the child goes on. */
static bool must_stop(const struct md_child *child, struct md_idle_watch *watch, double start_s,
		      double *looked_s, enum md_child_end *why)
{
	bool look = child->look && mp_now_s() - *looked_s >= MD_CHILD_LOOK_S, stop = true;

	if (stopped && !child->must_run)
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

static void wait_child(struct running *r)
{
	struct md_child_result *result = r->result;
	enum md_child_end why = MD_CHILD_EXITED;
	struct md_idle_watch watch;
	double start_s = mp_now_s(), looked_s = start_s;
	struct rusage usage;
	bool ended = false;
	int status = 0;

	md_idle_watch_begin(&watch, r->pid);
	while (!ended) {
		ended = has_ended(r, LOOK_MS);
		if (!ended)
			look_around();
		if (!ended && must_stop(r->child, &watch, start_s, &looked_s, &why)) {
			stop_child(r);
			break;
		}
	}
	while (wait4(r->pid, &status, 0, &usage) < 0 && errno == EINTR)
		;
	result->cpu_s = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
			(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	result->end = why;
	if (why == MD_CHILD_EXITED && !WIFEXITED(status))
		result->end = MD_CHILD_DIED;
	result->status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
}

/* Only the first message says what went wrong. */
static void cut_reason(char *reason)
{
	char *colon;

	reason[strcspn(reason, "\n")] = 0;
	colon = strstr(reason, ": ");
	if (colon && !strncmp(reason, "morph", 5))
		memmove(reason, colon + 2, strlen(colon + 2) + 1);
}

int md_child_run(const struct md_child *child, struct md_child_result *result, struct mp_err *err)
{
	struct running r = {.child = child, .result = result};
	pid_t parent = getpid();
	int ends[2], ret = 0;

	*result = (struct md_child_result){.end = MD_CHILD_STOPPED};
	if (stopped && !child->must_run)
		return 0;
	if (pipe2(ends, O_CLOEXEC))
		return mp_err_set(err, errno, "pipe: %s", strerror(errno));
	r.pid = fork();
	if (!r.pid)
		run_child(child, parent, ends[1]);
	close(ends[1]);
	r.messages = ends[0];
	if (r.pid < 0) {
		ret = mp_err_set(err, errno, "fork: %s", strerror(errno));
	} else {
		fcntl(r.messages, F_SETFL, O_NONBLOCK);
		r.pidfd = (int)syscall(SYS_pidfd_open, r.pid, 0);
		wait_child(&r);
		if (r.messages >= 0)
			read_messages(&r);
		if (r.pidfd >= 0)
			close(r.pidfd);
		cut_reason(result->reason);
	}
	if (r.messages >= 0)
		close(r.messages);
	return ret;
}
