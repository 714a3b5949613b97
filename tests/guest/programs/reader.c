// SPDX-License-Identifier: Apache-2.0
/* reader - reads the device; see reader.h. */
#include "tests/guest/programs/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int nr_failed;

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("FAIL: ");
	vprintf(format, args);
	printf(" (%s)\n", strerror(errno));
	va_end(args);
	exit(1);
}

int finish(void)
{
	fflush(stdout);
	return nr_failed != 0;
}

void sleep_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

int spinner(int cpu)
{
	volatile unsigned long x = 1;
	cpu_set_t set;
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			_exit(1);
	}
	for (;;)
		x = x * 3 + 1;
}

void spinner_end(int pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- the device ---- */

void reader_open(struct reader *r)
{
	memset(r, 0, sizeof(*r));
	r->fd = open(MORPH_DEV_PATH, O_RDWR | O_CLOEXEC);
	if (r->fd < 0)
		die("open " MORPH_DEV_PATH);
	r->flags = getenv("LAZY") ? MORPH_START_LAZY : 0;
	r->hello.abi_major = MORPH_ABI_MAJOR;
	if (ioctl(r->fd, MORPH_IOC_HELLO, &r->hello))
		die("HELLO");
}

void reader_close(struct reader *r)
{
	long page = sysconf(_SC_PAGESIZE);
	struct reader_ring *ring;
	int cpu;

	for (cpu = 0; cpu < READER_CPUS; cpu++) {
		ring = &r->rings[cpu];
		if (!ring->head)
			continue;
		munmap((void *)ring->head, page + ring->head->ring_bytes);
		munmap(ring->tail, page);
	}
	close(r->fd);
	free(r->stream);
	memset(r, 0, sizeof(*r));
	r->fd = -1;
}

void reader_start(struct reader *r, uint32_t rate_hz, int mode, uint32_t wake_bytes)
{
	struct morph_start s = {.rate_hz = rate_hz, .flags = r->flags, .wake_bytes = wake_bytes};

	if (mode >= 0) {
		s.mode = mode;
		s.flags |= MORPH_START_MODE;
	}
	if (ioctl(r->fd, MORPH_IOC_START, &s))
		die("START");
}

void reader_stop(struct reader *r)
{
	if (ioctl(r->fd, MORPH_IOC_STOP))
		die("STOP");
}

struct morph_counts reader_counts(struct reader *r)
{
	struct morph_counts c;

	if (ioctl(r->fd, MORPH_IOC_COUNTS, &c))
		die("COUNTS");
	return c;
}

void reader_map(struct reader *r)
{
	long page = sysconf(_SC_PAGESIZE);
	uint32_t cpu;
	void *p;

	for (cpu = 0; cpu < r->hello.nr_cpu_ids && cpu < READER_CPUS; cpu++) {
		struct reader_ring *ring = &r->rings[cpu];

		if (ring->head)
			continue;
		p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
			 MORPH_DEV_RING(cpu));
		if (p == MAP_FAILED) {
			if (errno == ENXIO)
				continue;
			die("mapping CPU %u's tail", cpu);
		}
		ring->tail = p;
		p = mmap(NULL, page + r->hello.ring_bytes, PROT_READ, MAP_SHARED, r->fd,
			 MORPH_DEV_RING(cpu) + page);
		if (p == MAP_FAILED)
			die("mapping CPU %u's records", cpu);
		ring->head = p;
		ring->records = (uint8_t *)p + page;
		if (ring->head->cpu != cpu || ring->head->ring_bytes != r->hello.ring_bytes)
			die("CPU %u's ring says it is CPU %u's, of %llu bytes", cpu,
			    ring->head->cpu, ring->head->ring_bytes);
	}
}

void reader_add(struct reader *r, const struct morph_record *record, uint64_t bytes)
{
	const struct morph_lost *lost = (const void *)record;
	struct morph_record *copy;

	if (bytes % MORPH_RECORD_ALIGN || bytes < sizeof(*record))
		die("a record of %llu bytes", (unsigned long long)bytes);
	if (record->cpu >= r->hello.nr_cpu_ids)
		die("a record of CPU %u", record->cpu);
	switch (record->type) {
	case MORPH_REC_PAD: return;
	case MORPH_REC_SAMPLES:
		r->nr_samples += (bytes - sizeof(struct morph_samples)) / 8;
		if (record->cpu < READER_CPUS)
			r->nr_by_cpu[record->cpu] += (bytes - sizeof(struct morph_samples)) / 8;
		break;
	case MORPH_REC_LOST:
		r->lost += lost->nr;
		r->lost_state |= lost->flags & MORPH_LOST_STATE;
		break;
	case MORPH_REC_EXEC:
	case MORPH_REC_MMAP:
	case MORPH_REC_FORK:
	case MORPH_REC_EXIT:
	case MORPH_REC_STACK:
	case MORPH_REC_REGISTERS:
	case MORPH_REC_FILE:
	case MORPH_REC_SPACE: r->nr_events++; break;
	default: die("a record of type %u", record->type);
	}
	if (r->bytes + bytes > r->room) {
		r->room = (r->room + bytes) * 2;
		r->stream = realloc(r->stream, r->room);
		if (!r->stream)
			die("memory");
	}
	copy = (void *)(r->stream + r->bytes);
	memcpy(copy, record, bytes);
	copy->size = bytes;
	r->bytes += bytes;
}

/* Adds the new part of an open record, with its header. */
static void add_samples(struct reader *r, struct reader_ring *ring,
			const struct morph_record *record, uint64_t bytes)
{
	uint8_t part[MORPH_RECORD_SIZE_MAX];
	uint64_t head = sizeof(struct morph_samples);

	if (bytes < head || bytes > sizeof(part))
		die("SAMPLES of %llu bytes", (unsigned long long)bytes);
	if (ring->given < head)
		ring->given = head;
	if (bytes > ring->given) {
		memcpy(part, record, head);
		memcpy(part + head, (uint8_t *)record + ring->given, bytes - ring->given);
		reader_add(r, (void *)part, head + bytes - ring->given);
	}
	ring->given = bytes;
}

static void take_ring(struct reader *r, struct reader_ring *ring)
{
	uint64_t size = ring->head->ring_bytes, tail = ring->tail->tail, at, left, bytes;
	uint64_t head = __atomic_load_n(&ring->head->head, __ATOMIC_ACQUIRE);
	const struct morph_record *record;

	if (head - tail > size)
		die("head %llu, tail %llu, %llu bytes", (unsigned long long)head,
		    (unsigned long long)tail, (unsigned long long)size);
	while (tail != head) {
		at = tail % size;
		left = head - tail < size - at ? head - tail : size - at;
		record = (const void *)(ring->records + at);
		bytes = __atomic_load_n(&record->size, __ATOMIC_RELAXED);
		if (record->type == MORPH_REC_SAMPLES && bytes >= head - tail) {
			/*
			 * The record may still be open. It ends at the head and can be
			 * continued from there.
			 */
			add_samples(r, ring, record, left);
			if (head % size)
				break;
			bytes = left;
		} else if (bytes < sizeof(*record) || bytes > left) {
			die("a record of %llu bytes where %llu are left", (unsigned long long)bytes,
			    (unsigned long long)left);
		} else if (record->type == MORPH_REC_SAMPLES) {
			add_samples(r, ring, record, bytes);
		} else {
			reader_add(r, record, bytes);
		}
		ring->given = 0;
		tail += bytes;
	}
	__atomic_store_n(&ring->tail->tail, tail, __ATOMIC_RELEASE);
}

void reader_take(struct reader *r)
{
	int cpu;

	for (cpu = 0; cpu < READER_CPUS; cpu++)
		if (r->rings[cpu].head)
			take_ring(r, &r->rings[cpu]);
}

const struct morph_record *reader_next(const struct reader *r, const struct morph_record *record)
{
	const uint8_t *p = record ? (const uint8_t *)record + record->size : r->stream;

	return p && p < r->stream + r->bytes ? (const void *)p : NULL;
}

uint64_t reader_user_samples(const struct reader *r, uint32_t tgid)
{
	const struct morph_record *record = NULL;
	const struct morph_samples *samples;
	uint64_t nr = 0, i;

	while ((record = reader_next(r, record))) {
		samples = (const void *)record;
		if (record->type != MORPH_REC_SAMPLES || samples->task.tgid != tgid)
			continue;
		for (i = 0; i < reader_nr_ips(record); i++)
			nr += samples->ips[i] >> 63 == 0;
	}
	return nr;
}
