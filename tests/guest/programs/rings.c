// SPDX-License-Identifier: Apache-2.0
/*
 * rings - checks that the records in the rings add up, whatever the reader does. Makes its own
 * load.
 *
 *	rings conserve hrtimer|tick N	reads at least N samples: every sample and event is there
 *	rings overflow			pauses and reads by turns: missing records were counted
 *	rings rubbish MS		writes random values into the tails
 *	rings restart N [HZ]		START and STOP, N times
 *	rings rate HZ hrtimer|tick MS	a busy CPU gives HZ samples a second; needs a clock by which
 *					no interrupt is late (scripts/kernel/guest --icount)
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/guest/programs/reader.h"

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* Forks and execs without end. */
static pid_t storm(void)
{
	const char *dir = getenv("GUEST");
	char program[256];
	pid_t pid, child;

	snprintf(program, sizeof(program), "%s/variant1", dir ? dir : ".");
	if (access(program, X_OK))
		die("%s", program);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		child = fork();
		if (!child) {
			execl(program, program, "0", NULL);
			_exit(1);
		}
		waitpid(child, NULL, 0);
	}
}

static void check_sums(struct reader *r, const char *how)
{
	struct morph_counts c = reader_counts(r);

	EXPECT(c.samples == r->nr_samples + c.lost_samples,
	       "%s: %llu samples, %llu read, %llu lost", how, c.samples,
	       (unsigned long long)r->nr_samples, c.lost_samples);
	EXPECT(c.events == r->nr_events, "%s: %llu events, %llu read", how, c.events,
	       (unsigned long long)r->nr_events);
	printf("%s: %llu samples, %llu lost; %llu events, %llu lost; %llu idle, %llu wakeups, %zu bytes\n",
	       how, c.samples, c.lost_samples, c.events, c.lost_events, c.idle, c.wakeups,
	       r->bytes);
}

static void conserve(int mode, long nr)
{
	struct reader r;
	struct morph_counts c;
	pid_t busy, forks;

	reader_open(&r);
	reader_start(&r, 4000, mode, 0);
	reader_map(&r);
	busy = spinner(-1);
	forks = storm();
	/* Wait as long as it takes. */
	while (r.nr_samples < (uint64_t)nr || r.nr_events < (uint64_t)nr / 2) {
		reader_take(&r);
		sleep_ms(20);
	}
	spinner_end(forks);
	spinner_end(busy);
	reader_stop(&r);
	reader_take(&r);
	check_sums(&r, mode == MORPH_MODE_TICK ? "tick" : "hrtimer");
	c = reader_counts(&r);
	EXPECT(!c.lost_samples && !c.lost_events && !r.lost && !r.lost_state,
	       "%llu samples and %llu events lost though they were read", c.lost_samples,
	       c.lost_events);
	/* After STOP nothing is added, and what was read is not repeated. */
	sleep_ms(100);
	reader_take(&r);
	EXPECT(reader_counts(&r).samples == c.samples, "samples after STOP");
	check_sums(&r, "after STOP");
	/* START again, in the other mode, with the same rings. */
	reader_start(&r, 0, mode == MORPH_MODE_TICK ? MORPH_MODE_HRTIMER : MORPH_MODE_TICK, 0);
	busy = spinner(-1);
	while (reader_counts(&r).samples < c.samples + 100) {
		reader_take(&r);
		sleep_ms(20);
	}
	reader_stop(&r);
	spinner_end(busy);
	reader_take(&r);
	check_sums(&r, "again");
	reader_close(&r);
}

static void overflow(void)
{
	struct reader r;
	struct morph_counts c;
	uint64_t before;
	pid_t busy[2], forks;
	__u32 calm_hz = 500;
	int i;

	reader_open(&r);
	if (r.hello.ring_bytes > 65536)
		die("the ring is too large for this");
	reader_start(&r, 20000, -1, 0);
	reader_map(&r);
	for (i = 0; i < 4; i++) {
		before = reader_counts(&r).lost_samples;
		busy[0] = spinner(-1);
		busy[1] = spinner(-1);
		/* Alternately with and without events among the losses. */
		forks = i % 2 ? storm() : 0;
		while (reader_counts(&r).lost_samples < before + 100 + 100 * i)
			sleep_ms(20);
		if (forks)
			spinner_end(forks);
		/* Make room for some records, so that LOST comes in between. */
		reader_take(&r);
		sleep_ms(50);
		reader_take(&r);
		spinner_end(busy[0]);
		spinner_end(busy[1]);
	}
	/*
	 * A LOST comes on each CPU before the next record that has room. Use a low rate:
	 * otherwise a machine that stalls for a moment loses more, and after STOP no record
	 * reports it.
	 */
	if (ioctl(r.fd, MORPH_IOC_RATE, &calm_hz))
		die("RATE");
	reader_take(&r);
	busy[0] = spinner(0);
	busy[1] = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? spinner(1) : spinner(0);
	before = r.nr_by_cpu[0];
	for (i = 0;
	     i < 30000 && (r.lost < reader_counts(&r).lost_samples || r.nr_by_cpu[0] < before + 50);
	     i++) {
		reader_take(&r);
		sleep_ms(10);
	}
	reader_stop(&r);
	spinner_end(busy[0]);
	spinner_end(busy[1]);
	reader_take(&r);
	check_sums(&r, "overflow");
	c = reader_counts(&r);
	EXPECT(c.lost_samples >= 600, "only %llu were lost", c.lost_samples);
	EXPECT(r.lost == c.lost_samples, "LOST says %llu samples, COUNTS %llu",
	       (unsigned long long)r.lost, c.lost_samples);
	EXPECT(!c.lost_events == !r.lost_state, "%llu events lost, STATE %d", c.lost_events,
	       r.lost_state);
	/* With LAZY, records that are sent late are not lost with a full ring. */
	EXPECT(c.lost_events || r.flags & MORPH_START_LAZY, "no event was lost");
	reader_close(&r);
}

static void rubbish(long ms)
{
	unsigned int seed = 3;
	double end;
	struct reader r;
	struct morph_counts a, b;
	pid_t busy, forks;
	uint64_t nr = 0, head, tail;
	char buf[4096];
	int cpu;

	reader_open(&r);
	reader_start(&r, 20000, -1, 1);
	reader_map(&r);
	busy = spinner(-1);
	forks = storm();
	end = now_ms() + ms;
	/* Continue until enough was tried, even on a slow machine. */
	while (now_ms() < end || nr <= 1000) {
		for (cpu = 0; cpu < READER_CPUS; cpu++) {
			struct reader_ring *ring = &r.rings[cpu];

			if (!ring->head)
				continue;
			head = __atomic_load_n(&ring->head->head, __ATOMIC_ACQUIRE);
			switch (rand_r(&seed) % 10) {
			case 0: tail = ~0ULL; break;
			case 1: tail = 0; break;
			case 2: tail = head + 8 * (rand_r(&seed) % 100); break;
			case 3: tail = head - rand_r(&seed) % (2 * ring->head->ring_bytes); break;
			case 4: tail = head + ((uint64_t)rand_r(&seed) << 33); break;
			case 5: tail = 0x8000000000000000ULL; break;
			case 6: tail = head - ring->head->ring_bytes; break;
			case 7: tail = head - ring->head->ring_bytes - 8; break;
			case 8: tail = head + 1; break;
			default: tail = head;
			}
			__atomic_store_n(&ring->tail->tail, tail, __ATOMIC_RELEASE);
			nr++;
		}
		/* read() parses what lies at such a tail. */
		if (nr % 64 == 0 && read(r.fd, buf, rand_r(&seed) % sizeof(buf)) == -1)
			EXPECT(errno == EIO || errno == EINVAL || errno == EFAULT,
			       "read with a rubbish tail: %s", strerror(errno));
	}
	printf("rubbish: %llu tails\n", (unsigned long long)nr);
	reader_stop(&r);
	/* After a valid tail everything works again. */
	for (cpu = 0; cpu < READER_CPUS; cpu++)
		if (r.rings[cpu].head)
			r.rings[cpu].tail->tail = r.rings[cpu].head->head;
	a = reader_counts(&r);
	reader_start(&r, 4000, -1, 0);
	while (r.nr_samples <= 100) {
		reader_take(&r);
		sleep_ms(10);
	}
	spinner_end(forks);
	spinner_end(busy);
	reader_stop(&r);
	reader_take(&r);
	b = reader_counts(&r);
	EXPECT(b.samples - a.samples == r.nr_samples + b.lost_samples - a.lost_samples,
	       "%llu samples, %llu read, %llu lost", b.samples - a.samples,
	       (unsigned long long)r.nr_samples, b.lost_samples - a.lost_samples);
	reader_close(&r);
}

static void restart(int nr, uint32_t rate_hz)
{
	struct reader r;
	pid_t busy = spinner(-1), forks = storm();
	uint64_t before;
	int i;

	for (i = 0; i < nr; i++) {
		if (i % 3 == 0)
			reader_open(&r);
		reader_start(&r, rate_hz, i % 2, 0);
		reader_map(&r);
		/* Alternately stop at once and after some samples, however long these take. */
		before = reader_counts(&r).samples;
		while (reader_counts(&r).samples < before + i % 7 * 10) {
			reader_take(&r);
			sleep_ms(1);
		}
		reader_take(&r);
		reader_stop(&r);
		reader_take(&r);
		if (i % 3 == 2 || i == nr - 1) {
			check_sums(&r, "restart");
			reader_close(&r);
		}
	}
	spinner_end(forks);
	spinner_end(busy);
}

static void rate(uint32_t hz, int mode, long ms)
{
	double end, off, want = (double)hz * ms / 1000;
	struct morph_counts a, b;
	struct reader r;

	reader_open(&r);
	if (mode == MORPH_MODE_TICK)
		want = (double)r.hello.tick_hz * ms / 1000;
	reader_start(&r, hz, mode, 0);
	reader_map(&r);
	a = reader_counts(&r);
	end = now_ms() + ms;
	while (now_ms() < end)
		;
	b = reader_counts(&r);
	reader_stop(&r);
	reader_take(&r);
	check_sums(&r, "rate");
	/*
	 * Intervals are random, from 0.5 to 1.5 of the mean: the sum of n is off by about 0.3
	 * sqrt(n).
	 */
	off = 1.2 * sqrt(want) + want / 100 + 2;
	EXPECT(b.samples - a.samples > want - off && b.samples - a.samples < want + off,
	       "%u Hz: %llu samples in %ld ms, %.0f wanted", hz, b.samples - a.samples, ms, want);
	reader_close(&r);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "conserve") && argc > 3)
		conserve(!strcmp(argv[2], "tick") ? MORPH_MODE_TICK : MORPH_MODE_HRTIMER,
			 atol(argv[3]));
	else if (!strcmp(what, "overflow"))
		overflow();
	else if (!strcmp(what, "rubbish") && argc > 2)
		rubbish(atol(argv[2]));
	else if (!strcmp(what, "rate") && argc > 4)
		rate(atoi(argv[2]), strcmp(argv[3], "tick") ? MORPH_MODE_HRTIMER : MORPH_MODE_TICK,
		     atol(argv[4]));
	else if (!strcmp(what, "restart") && argc > 2)
		restart(atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 20000);
	else
		return 2;
	return finish();
}
