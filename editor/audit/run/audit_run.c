// SPDX-License-Identifier: Apache-2.0
/* audit_run - sets a run up, watches it, measures its time and hashes its output. */
#include "editor/audit/run/audit_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "editor/audit/run/audit_child.h"
#include "editor/audit/run/audit_pattern.h"
#include "libprof/base/clock.h"
#include "libprof/base/infile.h"

/* After the program has exited: time limits for emptying the pipes and for the filter to finish. */
#define DRAIN_NS  (5 * ME_NS_PER_SEC)
#define FILTER_NS (300 * ME_NS_PER_SEC)

/* Longest output that is kept for a pattern; in a longer one, the pattern finds no number. */
#define KEPT_MAX (16u << 20)

/* An output stream that is being hashed. */
struct run_stream {
	int fd; /* -1 at the end of the stream */
	XXH3_state_t *state;
	uint64_t size_bytes;
	bool keep;  /* keep the text for a pattern */
	char *text; /* the first KEPT_MAX bytes */
	size_t nr_kept, nr_alloc;
};

/* The state of one run. */
struct run_state {
	const struct me_run_spec *spec;
	struct me_run *run;
	struct run_stream out, err;
	pid_t pid, filter;
	int pidfd, filter_pidfd;
	/*
	 * What the filter reads. It stays open here, so that a program whose filter ends early
	 * still writes all of its output and is not killed by SIGPIPE. -1: closed.
	 */
	int unread;
	uint64_t start_ns, deadline_ns; /* deadline 0: none */
};

static void run_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static uint64_t run_timeval_ns(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * ME_NS_PER_SEC + (uint64_t)tv->tv_usec * 1000;
}

static int run_stream_init(struct run_stream *s)
{
	memset(s, 0, sizeof(*s));
	s->fd = -1;
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

/* A text that is too long, or finds no memory, stays shorter than size_bytes. */
static void run_keep_text(struct run_stream *s, const char *buf, size_t size)
{
	if (s->nr_kept + size > KEPT_MAX)
		return;
	/* A zero byte follows the text, as regexec() expects it under a sanitizer. */
	if (s->nr_kept + size + 1 > s->nr_alloc) {
		size_t more = 2 * s->nr_alloc + size + 1;
		char *bigger = realloc(s->text, more);

		if (!bigger)
			return;
		s->text = bigger;
		s->nr_alloc = more;
	}
	memcpy(s->text + s->nr_kept, buf, size);
	s->nr_kept += size;
	s->text[s->nr_kept] = 0;
}

/* Read once; close the stream at its end. */
static void run_stream_read(struct run_state *rs, struct run_stream *s)
{
	static char buf[1 << 16];
	ssize_t got = read(s->fd, buf, sizeof(buf));

	if (got > 0) {
		s->size_bytes += (uint64_t)got;
		XXH3_128bits_update(s->state, buf, (size_t)got);
		if (s->keep)
			run_keep_text(s, buf, (size_t)got);
		if (s == &rs->err)
			run_keep_words(rs->run, buf, (size_t)got);
	} else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
		run_close(&s->fd);
	}
}

/* Start the filter between the program's stdout and us: *@from becomes the filter's output. */
static int run_filter_start(struct run_state *rs, int *from, struct mp_err *err)
{
	int pipefd[2], ret;

	if (pipe2(pipefd, O_CLOEXEC))
		return mp_err_set(err, errno, "pipe: %s", strerror(errno));
	ret = me_child_shell((struct me_child){.envp = rs->spec->envp,
					       .fds = {*from, pipefd[1], STDERR_FILENO},
					       .cpu = -1,
					       .mask = rs->spec->mask},
			     rs->spec->filter, &rs->filter, err);
	close(pipefd[1]);
	if (ret) {
		close(pipefd[0]);
		return ret;
	}
	rs->unread = *from;
	*from = pipefd[0];
	rs->filter_pidfd = (int)syscall(SYS_pidfd_open, rs->filter, 0);
	if (rs->filter_pidfd < 0)
		return mp_err_set(err, errno, "pidfd_open: %s", strerror(errno));
	return 0;
}

/* The filter has ended: drop what it did not read. */
static void run_drain(struct run_state *rs)
{
	static char buf[1 << 16];
	ssize_t got = read(rs->unread, buf, sizeof(buf));

	if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
		run_close(&rs->unread);
}

static int run_start(struct run_state *rs, struct mp_err *err)
{
	const struct me_run_spec *spec = rs->spec;
	const char *input = spec->stdin_path ? spec->stdin_path : "/dev/null";
	int out[2] = {-1, -1}, errs[2] = {-1, -1}, in, ret;

	in = mp_infile_open(input, err);
	if (in < 0)
		return in;
	if (pipe2(out, O_CLOEXEC) || pipe2(errs, O_CLOEXEC)) {
		ret = mp_err_set(err, errno, "pipe: %s", strerror(errno));
		goto out;
	}
	ret = spec->filter && !rs->out.keep ? run_filter_start(rs, &out[0], err) : 0;
	if (ret)
		goto out;
	rs->start_ns = mp_now_ns();
	ret = me_child_start(&(struct me_child){.path = spec->path,
						.argv = spec->argv,
						.envp = spec->envp,
						.fds = {in, out[1], errs[1]},
						.cpu = spec->cpu,
						.mask = spec->mask},
			     &rs->pid, err);
	if (ret)
		goto out;
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
	run->wall_ns = mp_now_ns() - rs->start_ns;
	run->user_ns = run_timeval_ns(&usage.ru_utime);
	run->cpu_ns = run->user_ns + run_timeval_ns(&usage.ru_stime);
	kill(-rs->pid, SIGKILL);
	rs->pid = -1;
	run_close(&rs->pidfd);
	rs->deadline_ns = mp_now_ns() + (rs->filter > 0 ? FILTER_NS : DRAIN_NS);
}

static void run_kill(struct run_state *rs)
{
	kill(-rs->pid, SIGKILL);
	kill(rs->pid, SIGKILL);
	run_reap(rs);
}

static int run_poll(struct run_state *rs)
{
	bool filter_ended = rs->unread >= 0 && rs->filter_pidfd < 0;
	struct pollfd fds[6] = {
		{.fd = rs->out.fd, .events = POLLIN},
		{.fd = rs->err.fd, .events = POLLIN},
		{.fd = rs->pidfd, .events = POLLIN},
		{.fd = rs->pid > 0 && rs->spec->watch_fd ? rs->spec->watch_fd : -1},
		{.fd = rs->filter_pidfd, .events = POLLIN},
		{.fd = filter_ended ? rs->unread : -1, .events = POLLIN},
	};
	struct timespec wait, *timeout = NULL;
	uint64_t now = mp_now_ns();

	if (rs->deadline_ns) {
		uint64_t left = rs->deadline_ns > now ? rs->deadline_ns - now : 0;

		wait.tv_sec = (time_t)(left / ME_NS_PER_SEC);
		wait.tv_nsec = (long)(left % ME_NS_PER_SEC);
		timeout = &wait;
	}
	if (ppoll(fds, sizeof(fds) / sizeof(fds[0]), timeout, rs->spec->mask) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents)
		run_stream_read(rs, &rs->out);
	if (fds[1].revents)
		run_stream_read(rs, &rs->err);
	if (fds[4].revents)
		run_close(&rs->filter_pidfd);
	if (fds[5].revents)
		run_drain(rs);
	if (fds[2].revents)
		run_reap(rs);
	else if (fds[3].revents) {
		rs->run->hung_up = true;
		run_kill(rs);
	}
	return 0;
}

/* Wait until the program has exited and all its output has been read. */
static int run_watch(struct run_state *rs, struct mp_err *err)
{
	while (rs->pid > 0 || rs->out.fd >= 0 || rs->err.fd >= 0) {
		int ret = run_poll(rs);

		if (ret)
			return mp_err_set(err, -ret, "poll: %s", strerror(-ret));
		if (me_run_cancelled())
			return mp_err_set(err, ECANCELED, "interrupted");
		if (!rs->deadline_ns || mp_now_ns() < rs->deadline_ns)
			continue;
		if (rs->pid < 0) {
			if (rs->filter > 0)
				return mp_err_set(err, ETIMEDOUT, "filter: did not end in time");
			break; /* a process that left the group still holds the pipe */
		}
		rs->run->timed_out = true;
		run_kill(rs);
	}
	return 0;
}

static int run_filter_end(struct run_state *rs, struct mp_err *err)
{
	int status = 0, ret = 0;

	if (rs->filter <= 0)
		return 0;
	while (!ret && waitpid(rs->filter, &status, 0) < 0)
		if (errno != EINTR)
			ret = mp_err_set(err, errno, "filter: %s: %s", rs->spec->filter,
					 strerror(errno));
	rs->filter = -1;
	if (ret)
		return ret;
	/*
	 * grep and diff return 1 without an error; the shell returns 127 if there is no
	 * such filter
	 */
	if (WIFSIGNALED(status) || WEXITSTATUS(status) > 125)
		return mp_err_set(err, ENOEXEC, "filter: %s: cannot be run", rs->spec->filter);
	return 0;
}

/*
 * Hash the files that the program wrote, then remove them for the next run. A device or a FIFO has
 * no end, and is not the program's to remove.
 */
static int run_hash_files(const struct me_run_spec *spec, struct run_stream *s, struct mp_err *err)
{
	static char buf[1 << 16];
	char *const *file;

	for (file = spec->files; file && *file; file++) {
		uint64_t size = 0, ignored;
		int fd = mp_infile_regular(*file, &ignored, err);
		ssize_t got;

		if (fd < 0 && fd != -ENOENT)
			return fd;
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
	return 0;
}

/* The output was kept for a pattern: now let the filter read it, and hash what the filter writes. */
static int run_filter_kept(struct run_state *rs, struct mp_err *err)
{
	int from = memfd_create("output", MFD_CLOEXEC), ret = 0;

	if (from < 0)
		return mp_err_set(err, errno, "memfd_create: %s", strerror(errno));
	for (size_t put = 0; !ret && put < rs->out.nr_kept;) {
		ssize_t n = write(from, rs->out.text + put, rs->out.nr_kept - put);

		if (n < 0)
			ret = mp_err_set(err, errno, "output: %s", strerror(errno));
		else
			put += (size_t)n;
	}
	lseek(from, 0, SEEK_SET);
	rs->out.size_bytes = 0;
	rs->out.keep = false;
	XXH3_128bits_reset(rs->out.state);
	if (!ret)
		ret = run_filter_start(rs, &from, err);
	rs->out.fd = from;
	rs->deadline_ns = mp_now_ns() + FILTER_NS;
	return ret ? ret : run_watch(rs, err);
}

/* Find the numbers in the output that was kept. */
static void run_find_numbers(struct run_state *rs)
{
	struct me_run *run = rs->run;
	struct mp_err err = {""};
	int ret = 0;

	for (int i = 0; !ret && i < ME_RUN_NR_NUMBERS; i++) {
		const struct me_pattern *pattern = rs->spec->patterns[i];
		const struct run_stream *s;

		if (!pattern)
			continue;
		s = pattern->from_stderr ? &rs->err : &rs->out;
		if (s->nr_kept < s->size_bytes)
			ret = mp_err_set(&err, EFBIG, "%s: more than %u MiB of output",
					 pattern->text, KEPT_MAX >> 20);
		else
			ret = me_pattern_number(pattern, s->text, s->nr_kept, &run->numbers[i],
						&err);
	}
	if (ret)
		snprintf(run->no_number, sizeof(run->no_number), "%s", err.msg);
}

static int run_init(struct run_state *rs, struct run_stream *files)
{
	files->state = NULL;
	if (run_stream_init(&rs->out) || run_stream_init(&rs->err) || run_stream_init(files))
		return -ENOMEM;
	for (int i = 0; i < ME_RUN_NR_NUMBERS; i++)
		if (rs->spec->patterns[i])
			*(rs->spec->patterns[i]->from_stderr ? &rs->err.keep : &rs->out.keep) =
				true;
	return 0;
}

static void run_fini(struct run_state *rs, struct run_stream *files)
{
	if (rs->pid > 0)
		me_child_kill(rs->pid);
	if (rs->filter > 0)
		me_child_kill(rs->filter);
	run_close(&rs->out.fd);
	run_close(&rs->err.fd);
	run_close(&rs->pidfd);
	run_close(&rs->filter_pidfd);
	run_close(&rs->unread);
	free(rs->out.text);
	free(rs->err.text);
	XXH3_freeState(rs->out.state);
	XXH3_freeState(rs->err.state);
	XXH3_freeState(files->state);
}

int me_run(const struct me_run_spec *spec, struct me_run *run, struct mp_err *err)
{
	struct run_state rs = {.spec = spec,
			       .run = run,
			       .out = {.fd = -1},
			       .err = {.fd = -1},
			       .pid = -1,
			       .filter = -1,
			       .pidfd = -1,
			       .filter_pidfd = -1,
			       .unread = -1};
	struct run_stream files = {.fd = -1};
	int ret;

	memset(run, 0, sizeof(*run));
	ret = run_init(&rs, &files) ? mp_err_set(err, ENOMEM, "out of memory") : 0;
	if (!ret)
		ret = run_start(&rs, err);
	if (!ret) {
		if (spec->timeout_ns)
			rs.deadline_ns = rs.start_ns + spec->timeout_ns;
		ret = run_watch(&rs, err);
	}
	if (!ret)
		run_find_numbers(&rs);
	if (!ret && spec->filter && rs.out.keep)
		ret = run_filter_kept(&rs, err);
	if (!ret)
		ret = run_filter_end(&rs, err);
	if (!ret)
		ret = run_hash_files(spec, &files, err);
	if (!ret) {
		run_stream_result(&rs.out, &run->out);
		run_stream_result(&files, &run->files);
		if (spec->with_stderr)
			run_stream_result(&rs.err, &run->err);
	}
	run_fini(&rs, &files);
	return ret;
}
