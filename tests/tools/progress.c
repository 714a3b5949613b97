// SPDX-License-Identifier: Apache-2.0
/*
 * progress - measures how much work programs that use all CPUs complete in some time. Used by
 * scripts/bench/bench-collect.
 *
 * One thread runs on each CPU. Without a command, it walks through a table that fits the
 * second-level cache, so it is slowed down by interrupts, by other programs, and by what they
 * leave in the caches. With a command, it runs the command again and again and discards its
 * output. usage: progress SECONDS [COMMAND [ARGUMENT...]]
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#define TABLE_WORDS (24u << 10) /* 96 KiB */
#define STEPS	    4096	/* between two reads of the clock */
#define MAX_CPUS    1024

extern char **environ;
static char **command;
static posix_spawn_file_actions_t actions;
static uint64_t end_ns;
static atomic_bool failed;

struct worker {
	pthread_t thread;
	int cpu;
	double done; /* steps, or runs of the command */
	uint32_t table[TABLE_WORDS];
};

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

static void walk(struct worker *w)
{
	uint32_t x = 1, i;

	for (i = 0; i < STEPS; i++) {
		x = x * 1664525u + 1013904223u + w->table[(x >> 8) % TABLE_WORDS];
		w->table[x % TABLE_WORDS] += x >> 16;
	}
	w->done += STEPS;
}

static bool run_command(struct worker *w)
{
	int status;
	pid_t pid;

	if (posix_spawnp(&pid, command[0], &actions, NULL, command, environ) ||
	    waitpid(pid, &status, 0) != pid || status)
		return false;
	w->done++;
	return true;
}

static void *run(void *arg)
{
	struct worker *w = arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(w->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		failed = true;
	while (clock_ns() < end_ns && !failed) {
		if (!command)
			walk(w);
		else if (!run_command(w))
			failed = true;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0, done = 0;
	struct worker *workers = calloc(MAX_CPUS, sizeof(*workers));
	int cpu, nr = 0, i;
	uint64_t start_ns;
	cpu_set_t set;

	if (!workers || !(seconds > 0) || sched_getaffinity(0, sizeof(set), &set)) {
		fprintf(stderr, "usage: progress SECONDS [COMMAND [ARGUMENT...]]\n");
		return 2;
	}
	command = argc > 2 ? argv + 2 : NULL;
	if (posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0))
		return 1;
	start_ns = clock_ns();
	end_ns = start_ns + (uint64_t)(seconds * 1e9);
	for (cpu = 0; cpu < MAX_CPUS && cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		workers[nr].cpu = cpu;
		if (pthread_create(&workers[nr].thread, NULL, run, &workers[nr]))
			return 1;
		nr++;
	}
	for (i = 0; i < nr; i++) {
		pthread_join(workers[i].thread, NULL);
		done += workers[i].done;
	}
	if (failed)
		return 1;
	/* work per second on all CPUs */
	printf("%.6f\n", done / ((clock_ns() - start_ns) / 1e9));
	return 0;
}
