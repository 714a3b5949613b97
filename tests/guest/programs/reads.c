// SPDX-License-Identifier: Apache-2.0
/*
 * reads - tests read() and poll(): whole records into buffers of any size, and none missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guest/programs/reader.h"

/* More than an open record, which stays in its ring, can have. */
#define WAKE_BYTES 8192

static uint8_t buf[1 << 16];

/* Parses the result of one read(). */
static void take(struct reader *r, const uint8_t *from, long bytes)
{
	const struct morph_record *record;
	long at;

	for (at = 0; at < bytes; at += record->size) {
		record = (const void *)(from + at);
		if (bytes - at < (long)sizeof(*record) || record->size > bytes - at)
			die("half a record at %ld of %ld bytes", at, bytes);
		if (record->type == MORPH_REC_PAD)
			die("a PAD out of read()");
		reader_add(r, record, record->size);
	}
}

static void run_some(void)
{
	const char *dir = getenv("GUEST");
	char program[256];
	int status;
	pid_t pid;

	snprintf(program, sizeof(program), "%s/variant1", dir ? dir : ".");
	pid = fork();
	if (!pid) {
		execl(program, program, "0", NULL);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	EXPECT(!status, "%s: status %#x", program, status);
}

static void check_conserved(struct reader *r, const char *how)
{
	struct morph_counts c = reader_counts(r);

	EXPECT(c.samples == r->nr_samples + c.lost_samples,
	       "%s: %llu samples, %llu read, %llu lost", how, c.samples,
	       (unsigned long long)r->nr_samples, c.lost_samples);
	EXPECT(c.events == r->nr_events, "%s: %llu events, %llu read", how, c.events,
	       (unsigned long long)r->nr_events);
	EXPECT(r->lost == c.lost_samples, "%s: LOST says %llu, COUNTS %llu", how,
	       (unsigned long long)r->lost, c.lost_samples);
}

/* Buffers of every size; too small ones are refused and lose no records. */
static void check_sizes(void)
{
	unsigned int seed = 7;
	struct reader r;
	int i, small = 0;
	long n;

	reader_open(&r);
	fcntl(r.fd, F_SETFL, O_NONBLOCK);
	EXPECT_ERRNO(read(r.fd, buf, sizeof(buf)), EAGAIN);
	reader_start(&r, 4000, -1, 0);
	/* Continue until there are samples, however long it takes. */
	for (i = 0; i < 400 || r.nr_samples <= 50; i++) {
		size_t size = i < 300 ? (size_t)rand_r(&seed) % 300
				      : 1 + (size_t)rand_r(&seed) % 9000;

		if (i % 8 == 0)
			run_some();
		memset(buf, 0xee, sizeof(buf));
		n = read(r.fd, buf + i % 8, size);
		if (n > 0) {
			EXPECT(n <= (long)size, "%ld bytes into %zu", n, size);
			take(&r, memmove(buf, buf + i % 8, n), n);
		} else if (n < 0 && errno == EINVAL) {
			small++;
		} else {
			EXPECT(n < 0 && errno == EAGAIN, "read of %zu: %ld, %s", size, n,
			       strerror(errno));
		}
	}
	EXPECT(small > 10, "%d buffers were too small", small);
	reader_stop(&r);
	while ((n = read(r.fd, buf, sizeof(buf))) > 0)
		take(&r, buf, n);
	EXPECT(n == -1 && errno == EAGAIN, "at the end: %ld, %s", n, strerror(errno));
	check_conserved(&r, "sizes");
	EXPECT(r.nr_samples > 50, "%llu samples", (unsigned long long)r.nr_samples);
	reader_close(&r);
}

/* Buffers in memory that is not or only partly mapped. */
static void check_faults(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct reader r;
	int busy;
	long n;

	munmap(p + page, page);
	reader_open(&r);
	reader_start(&r, 4000, -1, 0);
	busy = spinner(-1);
	while (reader_counts(&r).samples < 300)
		sleep_ms(20);
	spinner_end(busy);
	reader_stop(&r);
	EXPECT_ERRNO(syscall(SYS_read, r.fd, 8UL, 4096UL), EFAULT);
	EXPECT_ERRNO(syscall(SYS_read, r.fd, 0xffffffff81000000UL, 4096UL), EFAULT);
	n = read(r.fd, p + page - 100, 4096);
	EXPECT(n == -1 ? errno == EFAULT : n <= 100, "read over the end of memory: %ld", n);
	reader_close(&r);
	munmap(p, page);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* A blocking read returns records, or is interrupted by a signal. */
static void check_blocking(void)
{
	struct sigaction act = {.sa_handler = on_alarm};
	/* Repeat: the first signal may come before the read. */
	const struct itimerval second = {{1, 0}, {1, 0}}, never = {{0, 0}, {0, 0}};
	struct reader r;
	int busy, i;
	long n;

	sigaction(SIGALRM, &act, NULL);
	reader_open(&r);
	setitimer(ITIMER_REAL, &second, NULL);
	EXPECT_ERRNO(read(r.fd, buf, sizeof(buf)), EINTR);
	setitimer(ITIMER_REAL, &never, NULL);
	reader_start(&r, 4000, -1, 0);
	busy = spinner(-1);
	for (i = 0; i < 8; i++) {
		n = read(r.fd, buf, sizeof(buf));
		EXPECT(n > 0, "blocking read: %ld, %s", n, strerror(errno));
		if (n > 0)
			take(&r, buf, n);
	}
	spinner_end(busy);
	reader_stop(&r);
	fcntl(r.fd, F_SETFL, O_NONBLOCK);
	while ((n = read(r.fd, buf, sizeof(buf))) > 0)
		take(&r, buf, n);
	check_conserved(&r, "blocking");
	EXPECT(r.nr_samples > 0, "no samples");
	reader_close(&r);
}

/* After STOP, poll() must report ready exactly if a ring holds enough. */
static uint64_t check_ready(struct reader *r, struct pollfd *p)
{
	uint64_t used = 0;
	int cpu, n;

	reader_stop(r);
	n = poll(p, 1, 0);
	for (cpu = 0; cpu < READER_CPUS; cpu++) {
		const struct reader_ring *ring = &r->rings[cpu];

		if (ring->head && ring->head->head - ring->tail->tail > used)
			used = ring->head->head - ring->tail->tail;
	}
	EXPECT(n == (used >= WAKE_BYTES), "poll: %d, with %llu bytes", n, (unsigned long long)used);
	return used;
}

static void check_poll(void)
{
	struct pollfd p;
	struct reader r;
	uint64_t used;
	int busy, i, n;

	reader_open(&r);
	p = (struct pollfd){.fd = r.fd, .events = POLLIN};
	EXPECT(poll(&p, 1, 0) == 0, "ready before START");
	busy = spinner(-1);
	for (i = 0; i < 4; i++) {
		/* Usually few records, but many on a slow machine. */
		reader_start(&r, 20000, -1, WAKE_BYTES);
		reader_map(&r);
		check_ready(&r, &p);
		/* Now wait until there is enough. */
		reader_start(&r, 20000, -1, WAKE_BYTES);
		n = poll(&p, 1, -1);
		EXPECT(n == 1 && (p.revents & POLLIN), "poll: %d, %#x", n, p.revents);
		used = check_ready(&r, &p);
		EXPECT(used >= WAKE_BYTES, "ready with %llu bytes", (unsigned long long)used);
		reader_take(&r);
		used = check_ready(&r, &p);
		EXPECT(used < WAKE_BYTES, "%llu bytes after all was read",
		       (unsigned long long)used);
	}
	EXPECT(reader_counts(&r).wakeups > 0, "no wakeup was counted");
	spinner_end(busy);
	reader_close(&r);
}

/*
 * If read() has nothing left, poll() must not report ready, even though the last record stays
 * in its ring.
 */
static void check_poll_after_read(void)
{
	struct pollfd p;
	struct reader r;
	int busy;

	reader_open(&r);
	p = (struct pollfd){.fd = r.fd, .events = POLLIN};
	fcntl(r.fd, F_SETFL, O_NONBLOCK);
	reader_start(&r, 4000, -1, 8);
	busy = spinner(-1);
	EXPECT(poll(&p, 1, -1) == 1, "poll: %s", strerror(errno));
	spinner_end(busy);
	reader_stop(&r);
	while (read(r.fd, buf, sizeof(buf)) > 0)
		;
	EXPECT(errno == EAGAIN, "read: %s", strerror(errno));
	EXPECT(poll(&p, 1, 0) == 0, "ready, with nothing to read");
	reader_close(&r);
}

int main(void)
{
	check_sizes();
	check_faults();
	check_blocking();
	check_poll();
	check_poll_after_read();
	return finish();
}
