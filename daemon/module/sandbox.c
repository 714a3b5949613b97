// SPDX-License-Identifier: Apache-2.0
/* sandbox - starts the reader, sends it files, and survives its failures; see sandbox.h. */
#include "daemon/module/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "daemon/module/sandbox_private.h"

/*
 * How long the reader takes to start does not depend on any file, only on the machine and its
 * load. Two starts and a file's deadline stay below the service's watchdog.
 */
#define START_MS     30000
#define DEADLINE_MIN 200 /* in ms */
/* On a busy machine, a worker that makes progress has so many deadlines. */
#define DEADLINES 3
/* A worker that used no CPU for this part of a deadline makes no progress. */
#define PROGRESS_PART 8
/* deadlines stay shorter for this long after a file was late */
#define SHORT_SPAN_NS	  UINT64_C(60000000000)
#define NR_KILLED_READERS 4
#define EXE_FD		  (MD_SANDBOX_SOCK + 1)
#define CHUNK		  (64u << 10)

struct md_sandbox {
	struct md_sandbox_config config;
	pid_t pid; /* 0: no reader */
	int sock;
	/* killed readers that have not exited, since a file system does not answer */
	pid_t killed_readers[NR_KILLED_READERS];
	unsigned int nr_late; /* files that were late recently */
	uint64_t late_ns;
	struct md_sandbox_counts counts;
};

bool md_sandbox_is_needed(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];

	return geteuid() == 0 || syscall(SYS_capget, &header, caps) || caps[0].permitted ||
	       caps[1].permitted;
}

const struct md_sandbox_counts *md_sandbox_counts(const struct md_sandbox *sandbox)
{
	return &sandbox->counts;
}

pid_t md_sandbox_pid(const struct md_sandbox *sandbox)
{
	return sandbox->pid;
}

/* ---- starting ----------------------------------------------------------------------------- */

static const char *name_of(int step)
{
	switch (step) {
	case MD_SANDBOX_EXEC: return "/proc/self/exe";
	case MD_SANDBOX_STDIO: return "/dev/null";
	case MD_SANDBOX_LIMITS: return "setrlimit";
	case MD_SANDBOX_CAPABILITIES: return "capabilities";
	case MD_SANDBOX_PRIVILEGES: return "no_new_privs";
	case MD_SANDBOX_FILTER: return "seccomp";
	default: return "reader";
	}
}

static void give_up(enum md_sandbox_step step)
{
	struct md_sandbox_answer a = {step, errno};

	if (write(MD_SANDBOX_SOCK, &a, sizeof(a)) < 0)
		_exit(2);
	_exit(1);
}

/* Environment of the reader: only variables that loading a program needs. */
static char **environment(char *kept[4])
{
	static const char *const names[] = {"LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS"};
	char **e;
	size_t i, len, nr = 0;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		len = strlen(names[i]);
		for (e = environ; e && *e; e++)
			if (!strncmp(*e, names[i], len) && (*e)[len] == '=') {
				kept[nr++] = *e;
				break;
			}
	}
	kept[nr] = NULL;
	return kept;
}

/* exec, not only fork: a worker must not find morphd's data or addresses in its memory. */
static void become_reader(const char *name, int sock)
{
	char *argv[] = {(char *)(name ? name : MD_SANDBOX_MODULES), NULL}, *kept[4];
	int null, exe, fd;
	char path[32];
	sigset_t none;

	/* First move the socket to its number, away from 0, 1 and 2. */
	if (sock == MD_SANDBOX_SOCK)
		fcntl(sock, F_SETFD, 0);
	else if (dup2(sock, MD_SANDBOX_SOCK) < 0)
		_exit(1);
	null = open("/dev/null", O_RDWR);
	if (null < 0)
		give_up(MD_SANDBOX_STDIO);
	/* A sanitizer needs stderr. */
	for (fd = 0; fd < (MD_SANDBOX_ASAN ? 2 : 3); fd++)
		if (dup2(null, fd) < 0)
			give_up(MD_SANDBOX_STDIO);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		give_up(MD_SANDBOX_PRIVILEGES);
	/* Execute this very program, even if its file was replaced. */
	exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (exe < 0 || (exe != EXE_FD && dup3(exe, EXE_FD, O_CLOEXEC) < 0))
		give_up(MD_SANDBOX_EXEC);
	if (close_range(EXE_FD + 1, ~0u, 0))
		give_up(MD_SANDBOX_STDIO);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", EXE_FD);
	execve(path, argv, environment(kept));
	give_up(MD_SANDBOX_EXEC);
}

static void reap(struct md_sandbox *sandbox)
{
	size_t i;

	for (i = 0; i < NR_KILLED_READERS; i++)
		if (sandbox->killed_readers[i] &&
		    waitpid(sandbox->killed_readers[i], NULL, WNOHANG))
			sandbox->killed_readers[i] = 0;
}

/* Waits only briefly: a killed process that is blocked in a file system exits when that returns. */
static void kill_reader(struct md_sandbox *sandbox)
{
	struct timespec ms = {.tv_nsec = 1000000};
	unsigned int i;
	pid_t gone = 0;

	if (!sandbox->pid)
		return;
	kill(sandbox->pid, SIGKILL);
	close(sandbox->sock);
	for (i = 0; i < 100 && !gone; i++) {
		gone = waitpid(sandbox->pid, NULL, WNOHANG);
		if (!gone)
			nanosleep(&ms, NULL);
	}
	for (i = 0; i < NR_KILLED_READERS && !gone; i++)
		if (!sandbox->killed_readers[i]) {
			sandbox->killed_readers[i] = sandbox->pid;
			gone = sandbox->pid;
		}
	sandbox->pid = 0;
	sandbox->sock = -1;
}

/* How long to wait for the reader or a worker. */
struct patience {
	uint64_t until_ns; /* for one that makes no progress */
	uint64_t end_ns;   /* for any */
	uint64_t step_ns;  /* between two looks at its progress */
	uint64_t cpu_ns;   /* for one that had so much of the CPU */
	uint64_t used_ns;  /* at the last look */
	pid_t worker;	   /* 0: not known */
};

static struct patience patience_of(uint64_t ms)
{
	uint64_t now = mp_now_ns(), ns = ms * UINT64_C(1000000);

	return (struct patience){.until_ns = now + ns,
				 .end_ns = now + DEADLINES * ns,
				 .step_ns = ns / PROGRESS_PART,
				 .cpu_ns = ns};
}

static int ms_left(uint64_t until_ns)
{
	uint64_t now = mp_now_ns();

	return now >= until_ns ? 0 : (int)((until_ns - now + 999999) / 1000000);
}

/* Return: true if the worker has used the CPU since the last look, and may use more. */
static bool makes_progress(struct patience *p)
{
	uint64_t used, before = p->used_ns;
	struct timespec t;
	clockid_t clock;

	if (!p->worker || clock_getcpuclockid(p->worker, &clock) || clock_gettime(clock, &t))
		return false;
	used = (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
	p->used_ns = used;
	return used > before && used < p->cpu_ns;
}

/* Return: 1: @fd has data or was closed; 0: too late. */
static int wait_for(int fd, struct patience *p)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	uint64_t now;
	int ret;

	for (;;) {
		ret = poll(&poll_fd, 1, ms_left(p->until_ns));
		if (ret > 0 || (ret < 0 && errno != EINTR))
			return ret;
		now = mp_now_ns();
		if (ret < 0 || now < p->until_ns)
			continue;
		if (now >= p->end_ns || !makes_progress(p))
			return 0;
		p->until_ns = now + p->step_ns < p->end_ns ? now + p->step_ns : p->end_ns;
	}
}

/* Return: 0; -ETIMEDOUT; -EPIPE: the reader exited. */
static int get_answer(struct md_sandbox *sandbox, struct patience *patience,
		      struct md_sandbox_answer *out)
{
	ssize_t n;

	if (wait_for(sandbox->sock, patience) <= 0)
		return -ETIMEDOUT;
	n = recv(sandbox->sock, out, sizeof(*out), MSG_DONTWAIT);
	return n == sizeof(*out) ? 0 : -EPIPE;
}

static int start(struct md_sandbox *sandbox, struct mp_err *err)
{
	struct md_sandbox_answer a = {0};
	struct patience patience;
	int socks[2], ret;
	size_t i;

	reap(sandbox);
	for (i = 0; i < NR_KILLED_READERS && sandbox->killed_readers[i]; i++)
		;
	if (i == NR_KILLED_READERS)
		return mp_err_set(err, EAGAIN, "too many processes that read files hang");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
		return mp_err_set(err, errno, "socketpair: %s", strerror(errno));
	sandbox->pid = fork();
	if (!sandbox->pid)
		become_reader(sandbox->config.name, socks[1]);
	ret = errno;
	close(socks[1]);
	if (sandbox->pid < 0) {
		sandbox->pid = 0;
		close(socks[0]);
		return mp_err_set(err, ret, "fork: %s", strerror(ret));
	}
	sandbox->sock = socks[0];
	sandbox->counts.readers++;
	patience = patience_of(START_MS);
	ret = get_answer(sandbox, &patience, &a);
	if (!ret && a.step == MD_SANDBOX_READY)
		return 0;
	kill_reader(sandbox);
	if (ret)
		return mp_err_set(err, -ret, "reader: %s",
				  ret == -EPIPE ? "it ended before it was ready" : "it hangs");
	return mp_err_set(err, a.value > 0 ? a.value : EIO, "%s: %s", name_of(a.step),
			  strerror(a.value));
}

/* ---- files -------------------------------------------------------------------------------- */

/* Return: 0; -EPIPE: the reader exited; -errno. */
static int send_file(struct md_sandbox *sandbox, int fd, int reply, uint64_t size)
{
	struct md_sandbox_request request = {size};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct iovec iov = {&request, sizeof(request)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fds[2] = {fd, reply};

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	if (sendmsg(sandbox->sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(request))
		return 0;
	return errno == ECONNRESET ? -EPIPE : -errno;
}

/* Return: 0 at the end of the reply, -ETIMEDOUT, -EFBIG, -ENOMEM. */
static int collect(struct md_sandbox *sandbox, int fd, struct patience *patience,
		   struct md_buf *reply)
{
	size_t had = reply->size;
	uint8_t *to;
	ssize_t n;

	for (;;) {
		if (wait_for(fd, patience) <= 0)
			return -ETIMEDOUT;
		to = md_buf_add(reply, CHUNK);
		if (!to)
			return -ENOMEM;
		n = read(fd, to, CHUNK);
		reply->size -= CHUNK - (n > 0 ? (size_t)n : 0);
		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (reply->size - had > sandbox->config.reply_max)
			return -EFBIG;
	}
}

/* After late files, the deadline is shorter, so that such files cannot stop the daemon. */
static struct patience deadline(struct md_sandbox *sandbox)
{
	uint64_t ms = sandbox->config.deadline_ms;

	if (mp_now_ns() - sandbox->late_ns > SHORT_SPAN_NS)
		sandbox->nr_late = 0;
	ms >>= sandbox->nr_late < 8 ? 2 * sandbox->nr_late : 16;
	if (ms < DEADLINE_MIN && sandbox->nr_late)
		ms = DEADLINE_MIN;
	return patience_of(ms);
}

static int outcome(const struct md_sandbox_answer *a, struct mp_err *err)
{
	int status = a->value;

	if (a->step == MD_SANDBOX_FORK)
		return mp_err_set(err, EAGAIN, "cannot start a process to read it: %s",
				  strerror(status));
	if (WIFSIGNALED(status))
		return mp_err_set(err, EPROTO, "the process that read it was ended by signal %d%s",
				  WTERMSIG(status),
				  WTERMSIG(status) == SIGSYS ? ", for a forbidden system call"
							     : "");
	switch (WEXITSTATUS(status)) {
	case MD_SANDBOX_DONE: return 0;
	case MD_SANDBOX_UNREADY:
		return mp_err_set(err, EPROTO, "the process to read it could not be confined");
	default: return mp_err_set(err, EPROTO, "the process that read it gave up");
	}
}

/* Return: as md_sandbox_read(), or -EPIPE: the reader ended, which is not this file's fault. */
static int try_file(struct md_sandbox *sandbox, int fd, uint64_t size, struct patience patience,
		    struct md_buf *reply, struct mp_err *err)
{
	struct md_sandbox_answer a;
	int pipefd[2], ret, gone;

	ret = sandbox->pid ? 0 : start(sandbox, err);
	if (ret)
		return ret;
	if (pipe2(pipefd, O_CLOEXEC))
		return mp_err_set(err, errno, "pipe: %s", strerror(errno));
	ret = send_file(sandbox, fd, pipefd[1], size);
	close(pipefd[1]);
	if (ret) {
		close(pipefd[0]);
		kill_reader(sandbox);
		return mp_err_set(err, EPIPE, "its reader was ended");
	}
	gone = get_answer(sandbox, &patience, &a);
	if (!gone && a.step == MD_SANDBOX_STARTED) {
		patience.worker = a.value;
		ret = collect(sandbox, pipefd[0], &patience, reply);
	}
	/* Close our end, so that a worker that still writes fails. */
	close(pipefd[0]);
	if (!gone && a.step == MD_SANDBOX_STARTED)
		gone = ret == -ETIMEDOUT ? ret : get_answer(sandbox, &patience, &a);
	if (gone) {
		kill_reader(sandbox);
		return gone == -ETIMEDOUT ? mp_err_set(err, ETIMEDOUT, "reading it took too long")
					  : mp_err_set(err, EPIPE, "its reader was ended");
	}
	if (ret == -EFBIG)
		return mp_err_set(err, EFBIG, "it holds more than there is room for");
	if (ret)
		return mp_err_set(err, -ret, "%s", strerror(-ret));
	return outcome(&a, err);
}

int md_sandbox_read(struct md_sandbox *sandbox, int fd, uint64_t size, struct md_buf *reply,
		    struct mp_err *err)
{
	const struct patience patience = deadline(sandbox);
	size_t had = reply->size;
	int ret = -EPIPE, tries;

	sandbox->counts.files++;
	/* Replace a reader that ended, for instance for lack of memory, but only once. */
	for (tries = 0; tries < 2 && ret == -EPIPE; tries++) {
		reply->size = had;
		ret = try_file(sandbox, fd, size, patience, reply, err);
	}
	if (!ret)
		return 0;
	reply->size = had;
	sandbox->counts.failed++;
	if (ret == -ETIMEDOUT) {
		sandbox->nr_late++;
		sandbox->late_ns = mp_now_ns();
	}
	return ret;
}

/* ---- opening ------------------------------------------------------------------------------- */

void md_sandbox_close(struct md_sandbox *sandbox)
{
	if (!sandbox)
		return;
	kill_reader(sandbox);
	reap(sandbox);
	free(sandbox);
}

/*
 * Reads one file as a test: with another libc, a worker may need system calls that it is not
 * allowed.
 */
static int test_read(struct md_sandbox *sandbox, struct mp_err *err)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), ret = 0;
	struct md_buf reply = {0};
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		ret = mp_err_set(err, errno, "/proc/self/exe: %s", strerror(errno));
	if (!ret)
		ret = try_file(sandbox, fd, (uint64_t)st.st_size, patience_of(START_MS), &reply,
			       err);
	if (fd >= 0)
		close(fd);
	md_buf_fini(&reply);
	return ret;
}

int md_sandbox_open(const struct md_sandbox_config *config, struct md_sandbox **out,
		    struct mp_err *err)
{
	struct md_sandbox *sandbox = calloc(1, sizeof(*sandbox));
	int ret;

	*out = NULL;
	if (!sandbox)
		return mp_err_set(err, ENOMEM, "out of memory");
	sandbox->config = *config;
	sandbox->sock = -1;
	ret = start(sandbox, err);
	if (!ret)
		ret = test_read(sandbox, err);
	if (ret) {
		md_sandbox_close(sandbox);
		return ret;
	}
	*out = sandbox;
	return 0;
}
