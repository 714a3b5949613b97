// SPDX-License-Identifier: Apache-2.0
/*
 * walks - runs a command, stops it at random moments, and compares the walk of its stack with
 * libdwfl's frames. Prints figures as JSON. For benchmarks.
 *
 *	walks [--copy=BYTES] STOPS MICROSECONDS COMMAND [ARGUMENT...]
 *
 * MICROSECONDS: the mean CPU time between two stops. With --copy, the walk sees only a copy of so many
 * bytes of the stack, as with perf.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/process/process_walk.h"

struct figures {
	uint64_t nr, perfect, wrong, frames, longer; /* @longer: libdwfl stopped earlier */
	uint64_t kmod_other, kmod_frames, kmod_read; /* of the kernel module's walker */
	uint64_t stops[MP_NR_WALK_STOP];
};

static pid_t start(char **argv)
{
	pid_t pid = fork();
	int null, status;

	if (!pid) {
		null = open("/dev/null", O_RDWR);
		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execvp(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return -1;
	return pid;
}

static uint64_t cpu_us(clockid_t clock)
{
	struct timespec ts = {0};

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/*
 * Lets the process run for about @us of its own time, so that a loaded machine does not matter, and
 * stops it. Return: false if it ended.
 */
static bool run_on(pid_t pid, unsigned int us, int *signal)
{
	unsigned int least = us / 2 + (unsigned int)rand() % (us + 1);
	struct timespec ts = {.tv_nsec = 100000};
	clockid_t clock;
	uint64_t from;
	int status = 0;

	if (clock_getcpuclockid(pid, &clock))
		return false;
	from = cpu_us(clock);
	if (ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)*signal))
		return false;
	for (int i = 0; i < 20000 && cpu_us(clock) - from < least; i++)
		nanosleep(&ts, NULL);
	kill(pid, SIGSTOP);
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
		fprintf(stderr, "walks: the command ended with status 0x%x\n", status);
		return false;
	}
	/* Other signals are passed on; the stop follows. */
	*signal = WSTOPSIG(status);
	if (*signal == SIGSTOP || *signal == SIGTRAP)
		*signal = 0;
	return true;
}

static void add(struct figures *f, const struct walk_comparison *c)
{
	f->nr++;
	f->perfect += c->is_perfect;
	f->frames += c->result.nr;
	f->kmod_other += !c->is_kmod_same;
	f->kmod_frames += c->nr_kmod;
	f->kmod_read += c->nr_kmod_read;
	f->stops[c->result.stop]++;
	if (c->result.stop != MP_WALK_BOTTOM && getenv("WALKS_VERBOSE"))
		fprintf(stderr, "walks: %s in the caller of frame %zu, 0x%" PRIx64 "\n",
			mp_walk_stop_name(c->result.stop), c->result.nr,
			c->result.nr ? c->ips[c->result.nr - 1] : 0);
	if (!c->is_wrong)
		return;
	if (c->nr_same == c->nr_theirs) {
		f->longer++;
		return;
	}
	if (!f->wrong++)
		fprintf(stderr,
			"walks: frame %zu of %zu is 0x%" PRIx64 ", libdwfl (%zu) has 0x%" PRIx64
			"\n",
			c->nr_same, c->result.nr, c->ips[c->nr_same], c->nr_theirs,
			c->theirs[c->nr_same]);
}

static void print(const struct figures *f, const char *name)
{
	printf("{\"command\": \"%s\", \"stops\": %" PRIu64 ", \"perfect\": %" PRIu64
	       ", \"wrong\": %" PRIu64 ", \"longer\": %" PRIu64 ", \"frames\": %" PRIu64,
	       name, f->nr, f->perfect, f->wrong, f->longer, f->frames);
	for (int i = 1; i < MP_NR_WALK_STOP; i++)
		if (f->stops[i])
			printf(", \"%s\": %" PRIu64, mp_walk_stop_name(i), f->stops[i]);
	printf(", \"kmod_other\": %" PRIu64 ", \"kmod_frames\": %" PRIu64
	       ", \"kmod_read_again\": %" PRIu64 "}\n",
	       f->kmod_other, f->kmod_frames, f->kmod_read);
}

int main(int argc, char **argv)
{
	static struct walk_comparison comparison;
	struct figures figures = {0};
	struct process_walk *pw;
	size_t copy = 0;
	unsigned int nr, us;
	int signal = 0;
	pid_t pid;

	if (argc > 1 && sscanf(argv[1], "--copy=%zu", &copy) == 1) {
		argc--;
		argv++;
	}
	if (argc < 4) {
		fprintf(stderr, "usage: walks [--copy=BYTES] STOPS MICROSECONDS COMMAND...\n");
		return 2;
	}
	nr = (unsigned int)atoi(argv[1]);
	us = (unsigned int)atoi(argv[2]);
	srand(nr);
	pid = start(argv + 3);
	pw = pid > 0 ? process_walk_new(pid, copy) : NULL;
	if (!pw) {
		fprintf(stderr, "walks: %s: cannot be run\n", argv[3]);
		return 1;
	}
	while (figures.nr < nr && run_on(pid, us, &signal))
		if (!signal && process_walk_compare(pw, &comparison))
			fprintf(stderr, "walks: libdwfl cannot read the process\n");
		else if (!signal)
			add(&figures, &comparison);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	process_walk_free(pw);
	print(&figures, argv[3]);
	return figures.wrong != 0;
}
