// SPDX-License-Identifier: Apache-2.0
/* audit_run - sets a run up, watches it, measures its time and hashes its output. */
#include "editor/audit/audit_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define NS_PER_SEC 1000000000ull
/* After the program has exited: time limits for emptying the pipes and for the filter to finish. */
#define DRAIN_NS  (5 * NS_PER_SEC)
#define FILTER_NS (300 * NS_PER_SEC)

static atomic_bool run_cancelled;

void me_run_cancel(void)
{
	atomic_store(&run_cancelled, true);
}

/* An output stream that is being hashed. */
struct run_stream {
	int fd; /* -1 at the end of the stream */
	XXH3_state_t *state;
	uint64_t size_bytes;
};

/* The state of one run. */
struct run_state {
	const struct me_run_spec *spec;
	struct me_run *run;
	struct run_stream out, err;
	pid_t pid, filter;
	int pidfd;
	uint64_t start_ns, deadline_ns; /* deadline 0: none */
};

static uint64_t run_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void run_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static uint64_t run_timeval_ns(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * NS_PER_SEC + (uint64_t)tv->tv_usec * 1000;
}

static int run_stream_init(struct run_stream *s)
{
	s->fd = -1;
	s->size_bytes = 0;
	s->state = XXH3_createState();
	if (!s->state)
		return -ENOMEM;
	XXH3_128bits_reset(s->state);
	return 0;
}

static void run_stream_result(const struct run_stream *s, struct me_run_output *out)
{
	XXH128_hash_t hash = XXH3_128bits_digest(s->state);

	out->hash[0] = hash.low64;
	out->hash[1] = hash.high64;
	out->size_bytes = s->size_bytes;
}

/* Keep the last line of stderr: it may say why the program failed. */
static void run_keep_words(struct me_run *run, const char *buf, size_t size)
{
	size_t end = size, start;

	while (end > 0 && (buf[end - 1] == '\n' || buf[end - 1] == '\r'))
		end--;
	start = end;
	while (start > 0 && buf[start - 1] != '\n' &&
	       end - start < sizeof(run->last_stderr_line) - 1)
		start--;
	if (end == start)
		return;
	memcpy(run->last_stderr_line, buf + start, end - start);
	run->last_stderr_line[end - start] = 0;
}

/* Read once; close the stream at its end. */
static void run_stream_read(struct run_state *rs, struct run_stream *s)
{
	static char buf[1 << 16];
	ssize_t got = read(s->fd, buf, sizeof(buf));

	if (got > 0) {
		s->size_bytes += (uint64_t)got;
		XXH3_128bits_update(s->state, buf, (size_t)got);
		if (s == &rs->err)
			run_keep_words(rs->run, buf, (size_t)got);
	} else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
		run_close(&s->fd);
	}
}

/* In a child: undo our signal handling, and connect the standard streams. */
static void run_child_setup(const struct me_run_spec *spec, int in, int out, int err)
{
	static const int reset[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	size_t i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; i < sizeof(reset) / sizeof(reset[0]); i++)
		signal(reset[i], SIG_DFL);
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    (err >= 0 && dup2(err, STDERR_FILENO) < 0))
		_exit(126);
	sigprocmask(SIG_SETMASK, spec->mask, NULL);
}

/* Start the filter between the program's stdout and us: *@from becomes the filter's output. */
static int run_filter_start(struct run_state *rs, int *from, struct mp_err *err)
{
	int pipefd[2];

	if (pipe2(pipefd, O_CLOEXEC))
		return mp_err_set(err, errno, "pipe: %s", strerror(errno));
	rs->filter = fork();
	if (rs->filter == 0) {
		setpgid(0, 0);
		run_child_setup(rs->spec, *from, pipefd[1], -1);
		execl("/bin/sh", "sh", "-c", rs->spec->filter, (char *)NULL);
		_exit(127);
	}
	close(pipefd[1]);
	if (rs->filter < 0) {
		close(pipefd[0]);
		return mp_err_set(err, errno, "fork: %s", strerror(errno));
	}
	close(*from);
	*from = pipefd[0];
	return 0;
}

static void run_child_exec(const struct me_run_spec *spec, const int fds[3], int report)
{
	int error;

	setpgid(0, 0);
	run_child_setup(spec, fds[0], fds[1], fds[2]);
	if (spec->cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET((size_t)spec->cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			goto failed;
	}
	execve(spec->path, spec->argv, spec->envp);
failed:
	error = errno;
	if (write(report, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

static int run_start(struct run_state *rs, struct mp_err *err)
{
	const struct me_run_spec *spec = rs->spec;
	const char *input = spec->stdin_path ? spec->stdin_path : "/dev/null";
	int out[2] = {-1, -1}, errs[2] = {-1, -1}, report[2] = {-1, -1}, in, error = 0, ret;

	in = open(input, O_RDONLY | O_CLOEXEC);
	if (in < 0)
		return mp_err_set(err, errno, "%s: %s", input, strerror(errno));
	if (pipe2(out, O_CLOEXEC) || pipe2(errs, O_CLOEXEC) || pipe2(report, O_CLOEXEC)) {
		ret = mp_err_set(err, errno, "pipe: %s", strerror(errno));
		goto out;
	}
	ret = spec->filter ? run_filter_start(rs, &out[0], err) : 0;
	if (ret)
		goto out;
	rs->start_ns = run_now_ns();
	rs->pid = fork();
	if (rs->pid == 0)
		run_child_exec(spec, (int[]){in, out[1], errs[1]}, report[1]);
	if (rs->pid < 0) {
		ret = mp_err_set(err, errno, "fork: %s", strerror(errno));
		goto out;
	}
	setpgid(rs->pid, rs->pid);
	run_close(&report[1]);
	while (read(report[0], &error, sizeof(error)) < 0 && errno == EINTR)
		;
	if (error) {
		waitpid(rs->pid, NULL, 0);
		rs->pid = -1;
		ret = mp_err_set(err, error, "cannot be executed: %s", strerror(error));
		goto out;
	}
	rs->pidfd = (int)syscall(SYS_pidfd_open, rs->pid, 0);
	if (rs->pidfd < 0) {
		ret = mp_err_set(err, errno, "pidfd_open: %s", strerror(errno));
		goto out;
	}
	rs->out.fd = out[0];
	rs->err.fd = errs[0];
	out[0] = errs[0] = -1;
out:
	run_close(&in);
	run_close(&out[0]);
	run_close(&out[1]);
	run_close(&errs[0]);
	run_close(&errs[1]);
	run_close(&report[0]);
	run_close(&report[1]);
	return ret;
}

/*
 * The program has exited or was killed: take its times and kill what is left of its
 * process group.
 */
static void run_reap(struct run_state *rs)
{
	struct me_run *run = rs->run;
	struct rusage usage;

	while (wait4(rs->pid, &run->status, 0, &usage) < 0 && errno == EINTR)
		;
	run->wall_ns = run_now_ns() - rs->start_ns;
	run->user_ns = run_timeval_ns(&usage.ru_utime);
	run->cpu_ns = run->user_ns + run_timeval_ns(&usage.ru_stime);
	kill(-rs->pid, SIGKILL);
	rs->pid = -1;
	run_close(&rs->pidfd);
	rs->deadline_ns = run_now_ns() + (rs->filter > 0 ? FILTER_NS : DRAIN_NS);
}

static int run_poll(struct run_state *rs)
{
	struct pollfd fds[3] = {
		{.fd = rs->out.fd, .events = POLLIN},
		{.fd = rs->err.fd, .events = POLLIN},
		{.fd = rs->pidfd, .events = POLLIN},
	};
	struct timespec wait, *timeout = NULL;
	uint64_t now = run_now_ns();

	if (rs->deadline_ns) {
		uint64_t left = rs->deadline_ns > now ? rs->deadline_ns - now : 0;

		wait.tv_sec = (time_t)(left / NS_PER_SEC);
		wait.tv_nsec = (long)(left % NS_PER_SEC);
		timeout = &wait;
	}
	if (ppoll(fds, 3, timeout, rs->spec->mask) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents)
		run_stream_read(rs, &rs->out);
	if (fds[1].revents)
		run_stream_read(rs, &rs->err);
	if (fds[2].revents)
		run_reap(rs);
	return 0;
}

/* Wait until the program has exited and all its output has been read. */
static int run_watch(struct run_state *rs, struct mp_err *err)
{
	while (rs->pid > 0 || rs->out.fd >= 0 || rs->err.fd >= 0) {
		int ret = run_poll(rs);

		if (ret)
			return mp_err_set(err, -ret, "poll: %s", strerror(-ret));
		if (atomic_load(&run_cancelled))
			return mp_err_set(err, ECANCELED, "interrupted");
		if (!rs->deadline_ns || run_now_ns() < rs->deadline_ns)
			continue;
		if (rs->pid < 0) {
			if (rs->filter > 0)
				return mp_err_set(err, ETIMEDOUT, "filter: did not end in time");
			break; /* a process that left the group still holds the pipe */
		}
		rs->run->timed_out = true;
		kill(-rs->pid, SIGKILL);
		kill(rs->pid, SIGKILL);
		run_reap(rs);
	}
	return 0;
}

static int run_filter_end(struct run_state *rs, struct mp_err *err)
{
	int status;

	if (rs->filter <= 0)
		return 0;
	while (waitpid(rs->filter, &status, 0) < 0 && errno == EINTR)
		;
	rs->filter = -1;
	/*
	 * grep and diff return 1 without an error; the shell returns 127 if there is no
	 * such filter
	 */
	if (WIFSIGNALED(status) || WEXITSTATUS(status) > 125)
		return mp_err_set(err, ENOEXEC, "filter: %s: cannot be run", rs->spec->filter);
	return 0;
}

/* Hash the files that the program wrote, then remove them for the next run. */
static void run_hash_files(const struct me_run_spec *spec, struct run_stream *s)
{
	static char buf[1 << 16];
	char *const *file;

	for (file = spec->files; file && *file; file++) {
		int fd = open(*file, O_RDONLY | O_CLOEXEC);
		uint64_t size = 0;
		ssize_t got;

		while (fd >= 0 && (got = read(fd, buf, sizeof(buf))) > 0) {
			XXH3_128bits_update(s->state, buf, (size_t)got);
			size += (uint64_t)got;
		}
		/* hashing the sizes keeps the files apart; an absent file counts as UINT64_MAX */
		if (fd < 0)
			size = UINT64_MAX;
		else
			s->size_bytes += size;
		XXH3_128bits_update(s->state, &size, sizeof(size));
		run_close(&fd);
		unlink(*file);
	}
}

int me_run(const struct me_run_spec *spec, struct me_run *run, struct mp_err *err)
{
	struct run_state rs = {.spec = spec, .run = run, .pid = -1, .filter = -1, .pidfd = -1};
	struct run_stream files = {.fd = -1};
	int ret = 0;

	memset(run, 0, sizeof(*run));
	if (run_stream_init(&rs.out) || run_stream_init(&rs.err) || run_stream_init(&files))
		ret = mp_err_set(err, ENOMEM, "out of memory");
	if (!ret)
		ret = run_start(&rs, err);
	if (!ret) {
		if (spec->timeout_ns)
			rs.deadline_ns = rs.start_ns + spec->timeout_ns;
		ret = run_watch(&rs, err);
	}
	if (!ret)
		ret = run_filter_end(&rs, err);
	if (!ret) {
		run_hash_files(spec, &files);
		run_stream_result(&rs.out, &run->out);
		run_stream_result(&files, &run->files);
		if (spec->with_stderr)
			run_stream_result(&rs.err, &run->err);
	}
	if (rs.pid > 0) {
		kill(-rs.pid, SIGKILL);
		kill(rs.pid, SIGKILL);
		waitpid(rs.pid, NULL, 0);
	}
	run_close(&rs.out.fd);
	run_close(&rs.err.fd);
	run_close(&rs.pidfd);
	if (rs.filter > 0) {
		kill(-rs.filter, SIGKILL);
		kill(rs.filter, SIGKILL);
		waitpid(rs.filter, NULL, 0);
	}
	XXH3_freeState(rs.out.state);
	XXH3_freeState(rs.err.state);
	XXH3_freeState(files.state);
	return ret;
}
