// SPDX-License-Identifier: Apache-2.0
/*
 * lost_time - measures how much time a program loses to interrupts, on each CPU. Used by
 * scripts/bench/bench-source.
 *
 * A loop on every CPU reads the time-stamp counter. A short gap is an interrupt; a long gap is
 * another program's turn and is excluded. usage: lost_time SECONDS
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define GAP_MIN_NS 300
#define GAP_MAX_NS 100000
#define MAX_CPUS   1024

static double seconds, tsc_per_ns;

struct result {
	int cpu;
	uint64_t own, interrupts, nr; /* own: without other programs' turns */
};

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

static void *run(void *arg)
{
	uint64_t min = GAP_MIN_NS * tsc_per_ns, max = GAP_MAX_NS * tsc_per_ns;
	uint64_t last, now, end, away = 0;
	struct result *r = arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(r->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return NULL;
	last = __rdtsc();
	end = last + (uint64_t)(seconds * 1e9 * tsc_per_ns);
	r->own = end - last;
	for (; last < end; last = now) {
		now = __rdtsc();
		if (now - last > max) {
			away += now - last;
		} else if (now - last > min) {
			r->interrupts += now - last;
			r->nr++;
		}
	}
	r->own -= away < r->own ? away : r->own;
	return NULL;
}

int main(int argc, char **argv)
{
	static struct result results[MAX_CPUS];
	pthread_t threads[MAX_CPUS];
	uint64_t start_ns, start;
	cpu_set_t set;
	int cpu, nr = 0, i;

	seconds = argc == 2 ? atof(argv[1]) : 0;
	if (!(seconds > 0) || sched_getaffinity(0, sizeof(set), &set)) {
		fprintf(stderr, "usage: lost_time SECONDS\n");
		return 2;
	}
	start_ns = clock_ns();
	start = __rdtsc();
	while (clock_ns() - start_ns < 20000000)
		;
	tsc_per_ns = (double)(__rdtsc() - start) / (double)(clock_ns() - start_ns);
	for (cpu = 0; cpu < MAX_CPUS && cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		results[nr].cpu = cpu;
		if (pthread_create(&threads[nr], NULL, run, &results[nr]))
			return 1;
		nr++;
	}
	for (i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	/*
	 * one line per CPU: number, seconds of its own, seconds of interrupts, number of
	 * interrupts
	 */
	for (i = 0; i < nr; i++)
		printf("%d %.9f %.9f %llu\n", results[i].cpu, results[i].own / tsc_per_ns / 1e9,
		       results[i].interrupts / tsc_per_ns / 1e9, (unsigned long long)results[i].nr);
	return 0;
}
