// SPDX-License-Identifier: Apache-2.0
/*
 * steps - makes branch stacks without hardware support: runs a program one instruction at a
 * time and prints every transfer of control from, to and inside its own file, like `perf script
 * -F comm,pid,tid,time,event,brstack --show-mmap-events`. The whole run is one stack. Slow and
 * exact. For tests.
 *
 *	steps PROGRAM [ARGUMENT...] >TEXT
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/insn/insn.h"

#define MAX_MAPS 8

static struct {
	uint64_t start, end;
} maps[MAX_MAPS];
static int nr_maps;

static struct {
	uint64_t from, to;
} * seen;
static size_t nr_seen, max_seen;

static void die(const char *what)
{
	fprintf(stderr, "steps: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void add(uint64_t from, uint64_t to)
{
	if (nr_seen == max_seen) {
		max_seen = max_seen ? 2 * max_seen : 1 << 16;
		seen = realloc(seen, max_seen * sizeof(*seen));
		if (!seen)
			die("realloc");
	}
	seen[nr_seen].from = from;
	seen[nr_seen++].to = to;
}

/* Prints the program's own executable mappings, like perf. */
static void print_maps(pid_t child, const char *program)
{
	char name[64], line[PATH_MAX + 128], path[PATH_MAX], perms[5];
	unsigned int major, minor;
	uint64_t start, end, off;
	unsigned long ino;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", child);
	f = fopen(name, "re");
	if (!f)
		die(name);
	printf("steps %d/%d 1.0: PERF_RECORD_COMM exec: steps:%d/%d\n", child, child, child, child);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %lu %4095[^\n]",
			   &start, &end, perms, &off, &major, &minor, &ino, path) != 8)
			continue;
		if (strcmp(path, program) || perms[2] != 'x' || nr_maps == MAX_MAPS)
			continue;
		printf("steps %d/%d 1.1: PERF_RECORD_MMAP2 %d/%d: [0x%" PRIx64 "(0x%" PRIx64
		       ") @ 0x%" PRIx64 " %02x:%02x %lu 0]: r-xp %s\n",
		       child, child, child, child, start, end - start, off, major, minor, ino,
		       path);
		maps[nr_maps].start = start;
		maps[nr_maps++].end = end;
	}
	fclose(f);
}

static bool is_own(uint64_t ip)
{
	for (int i = 0; i < nr_maps; i++)
		if (ip >= maps[i].start && ip < maps[i].end)
			return true;
	return false;
}

static void decode(pid_t child, uint64_t ip, struct mp_insn *insn)
{
	uint8_t bytes[15] = {0};
	struct iovec here = {bytes, sizeof(bytes)}, there = {(void *)(uintptr_t)ip, sizeof(bytes)};

	if (process_vm_readv(child, &here, 1, &there, 1, 0) <= 0 ||
	    mp_insn_decode(bytes, sizeof(bytes), ip, insn))
		die("an instruction");
}

static bool is_transfer(const struct mp_insn *insn, uint64_t next)
{
	switch (insn->kind) {
	case MP_INSN_COND:
	case MP_INSN_LOOP: return next != insn->vaddr + insn->len;
	case MP_INSN_JUMP:
	case MP_INSN_IJUMP:
	case MP_INSN_CALL:
	case MP_INSN_ICALL:
	case MP_INSN_RET: return true;
	default: return false;
	}
}

/* Return: the program's exit status. */
static int step_through(pid_t child)
{
	struct user_regs_struct regs;
	struct mp_insn insn = {0};
	bool own = false;
	uint64_t last = 0;
	int status;

	for (;;) {
		if (ptrace(PTRACE_GETREGS, child, NULL, &regs))
			die("ptrace");
		if (last && (own ? is_transfer(&insn, regs.rip) : is_own(regs.rip)))
			add(last, regs.rip);
		last = regs.rip;
		own = is_own(last);
		if (own)
			decode(child, last, &insn);
		if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) || waitpid(child, &status, 0) < 0)
			die("ptrace");
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
			die("the program was stopped");
	}
}

int main(int argc, char **argv)
{
	char program[PATH_MAX];
	int status;
	pid_t child;

	if (argc < 2 || !realpath(argv[1], program)) {
		fprintf(stderr, "usage: steps PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	child = fork();
	if (!child) {
		personality(ADDR_NO_RANDOMIZE);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(126);
		execv(program, argv + 1);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
		die(program);
	print_maps(child, program);
	status = step_through(child);
	printf("steps %d/%d 1.2: branches: ", child, child);
	for (size_t i = nr_seen; i-- > 0;)
		printf(" 0x%" PRIx64 "/0x%" PRIx64 "/P/-/-/0", seen[i].from, seen[i].to);
	putchar('\n');
	free(seen);
	return status;
}
