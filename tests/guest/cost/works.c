// SPDX-License-Identifier: Apache-2.0
/*
 * works - the operations during which the kernel's instructions are counted.
 *
 * Decides what one operation is; each begins at its MARK_OP. Operations do as little as
 * possible themselves, so that added instructions are visible.
 */
#include <alloca.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/guest/cost/guest.h"

#define MAPPED_FILE "/lib/x86_64-linux-gnu/libc.so.6"
#define MAPPED_SIZE 65536

/* The paper's worst case: a loop of 64 additions. One operation is 65536 iterations. */
static void run_loop(unsigned int nr)
{
	for (; nr; nr--) {
		uint64_t left = 65536, sum = 0;

		MARK(MARK_OP);
		__asm__ volatile("1:\n\t.rept 64\n\tadd $1, %0\n\t.endr\n\tdec %1\n\tjnz 1b"
				 : "+r"(sum), "+r"(left));
	}
}

/* A loop below so many callers, which stay the same from sample to sample. */
static __attribute__((noinline)) void run_below(unsigned int depth, unsigned int nr)
{
	if (depth > 1)
		run_below(depth - 1, nr);
	else
		run_loop(nr);
	__asm__ volatile("");
}

static void run_stack_10(unsigned int nr)
{
	run_below(10, nr);
}

static void run_stack_110(unsigned int nr)
{
	run_below(110, nr);
}

static __attribute__((noinline)) void call_below(unsigned int depth)
{
	uint64_t left = 1000, sum = 0;

	if (depth > 1)
		call_below(depth - 1);
	else
		__asm__ volatile("1:\n\t.rept 64\n\tadd $1, %0\n\t.endr\n\tdec %1\n\tjnz 1b"
				 : "+r"(sum), "+r"(left));
	__asm__ volatile("");
}

static __attribute__((noinline)) void call_from(unsigned int bytes, unsigned int depth)
{
	volatile char *p = alloca(bytes);

	p[0] = 0;
	call_below(depth);
	p[0] = 1;
}

/* Calls that lie at another place each time, so that no sample meets those of the last one. */
static void run_calls(unsigned int depth, unsigned int nr)
{
	for (; nr; nr--) {
		MARK(MARK_OP);
		for (unsigned int i = 0; i < 65; i++)
			call_from(16 + 16 * ((nr * 65 + i) % 61), depth);
	}
}

static void run_calls_10(unsigned int nr)
{
	run_calls(10, nr);
}

static void run_calls_60(unsigned int nr)
{
	run_calls(60, nr);
}

/*
 * SCHED_BATCH: a woken thread waits until the waker sleeps. Otherwise preemption, and with it
 * the number of system calls per round, would depend on the threads' run times.
 */
static void switch_politely(bool on)
{
	static const struct sched_param none;

	if (sched_setscheduler(0, on ? SCHED_BATCH : SCHED_OTHER, &none))
		die("sched_setscheduler");
}

static void hand_over(int *turn, int me)
{
	__atomic_store_n(turn, !me, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	while (__atomic_load_n(turn, __ATOMIC_SEQ_CST) != me)
		syscall(SYS_futex, turn, FUTEX_WAIT_PRIVATE, !me, NULL, NULL, 0);
}

static struct {
	int turn;
	unsigned int nr;
} futex;

static void *futex_other(void *unused)
{
	unsigned int i;

	while (__atomic_load_n(&futex.turn, __ATOMIC_SEQ_CST) != 1)
		syscall(SYS_futex, &futex.turn, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	for (i = 1; i < futex.nr; i++)
		hand_over(&futex.turn, 1);
	__atomic_store_n(&futex.turn, 0, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &futex.turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	return unused;
}

/* Switches to another thread of the process and back. */
static void run_switch_futex(unsigned int nr)
{
	pthread_t other;
	unsigned int i;

	switch_politely(true);
	futex.turn = 0;
	futex.nr = nr;
	if (pthread_create(&other, NULL, futex_other, NULL))
		die("pthread_create");
	for (i = 0; i < nr; i++) {
		MARK(MARK_OP);
		hand_over(&futex.turn, 0);
	}
	pthread_join(other, NULL);
	switch_politely(false);
}

/* Switches to another process and back, through two pipes. */
static void run_switch_pipe(unsigned int nr)
{
	int to[2], from[2];
	char c = 0;
	pid_t pid;

	switch_politely(true);
	if (pipe(to) || pipe(from))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		close(to[1]);
		while (read(to[0], &c, 1) == 1)
			if (write(from[1], &c, 1) != 1)
				_exit(1);
		_exit(0);
	}
	close(to[0]);
	for (; nr; nr--) {
		MARK(MARK_OP);
		if (write(to[1], &c, 1) != 1 || read(from[0], &c, 1) != 1)
			die("pipe: lost");
	}
	close(to[1]);
	close(from[0]);
	close(from[1]);
	waitpid(pid, NULL, 0);
	switch_politely(false);
}

/* Switches to the idle task and back. */
static void run_sleep(unsigned int nr)
{
	static const struct timespec ms = {.tv_nsec = 1000000};

	for (; nr; nr--) {
		MARK(MARK_OP);
		nanosleep(&ms, NULL);
	}
}

static void child(const char *program)
{
	pid_t pid;
	int status;

	MARK(MARK_OP);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		if (program) {
			execl(program, program, NULL);
			_exit(1);
		}
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		die("%s: status %#x", program ? program : "child", status);
}

static void run_fork(unsigned int nr)
{
	for (; nr; nr--)
		child(NULL);
}

/* Executes the smallest program: two instructions. */
static void run_exec(unsigned int nr)
{
	for (; nr; nr--)
		child("/nothing");
}

/* Executes a program with an interpreter and a library: /bin/true. */
static void run_exec_shared(unsigned int nr)
{
	for (; nr; nr--)
		child("/bin/true");
}

static void run_mmap_exec(unsigned int nr)
{
	int fd = open(MAPPED_FILE, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("open %s", MAPPED_FILE);
	for (; nr; nr--) {
		void *p;

		MARK(MARK_OP);
		p = mmap(NULL, MAPPED_SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		if (p == MAP_FAILED || munmap(p, MAPPED_SIZE))
			die("mmap");
	}
	close(fd);
}

static void run_mmap(unsigned int nr)
{
	for (; nr; nr--) {
		void *p;

		MARK(MARK_OP);
		p = mmap(NULL, MAPPED_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
		if (p == MAP_FAILED || munmap(p, MAPPED_SIZE))
			die("mmap");
	}
}

/* ---- real programs: what scripts/bench/bench-kmod puts into the guest ------------ */

static void program(char **argv, unsigned int nr)
{
	for (; nr; nr--) {
		pid_t pid;
		int status;

		MARK(MARK_OP);
		pid = fork();
		if (pid < 0)
			die("fork");
		if (!pid) {
			int in = open("/data/text", O_RDONLY), out = open("/dev/null", O_WRONLY);

			if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0)
				_exit(1);
			execv(argv[0], argv);
			_exit(1);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			die("%s: status %#x", argv[0], status);
	}
}

static void run_gzip(unsigned int nr)
{
	program((char *[]){"/bin/gzip", "-9", NULL}, nr);
}

static void run_sort(unsigned int nr)
{
	program((char *[]){"/bin/sort", "-S", "4M", NULL}, nr);
}

static void run_perl(unsigned int nr)
{
	program((char *[]){"/bin/perl", "-ne", "$n{$_}++ for split /\\W+/; END { print %n }", NULL},
		nr);
}

static void run_cc1(unsigned int nr)
{
	program((char *[]){"/bin/cc1", "-fpreprocessed", "-quiet", "-O2", "/data/program.i", "-o",
			   "/dev/null", NULL},
		nr);
}

const struct work works[] = {
	{"loop", run_loop, 250}, /* 1.1 s */
	{"stack-10", run_stack_10, 250},
	{"stack-110", run_stack_110, 250},
	{"calls-10", run_calls_10, 250},
	{"calls-60", run_calls_60, 250},
	{"switch-futex", run_switch_futex, 1000},
	{"switch-pipe", run_switch_pipe, 1000},
	{"sleep", run_sleep, 200},
	{"fork", run_fork, 100},
	{"exec", run_exec, 80},
	{"exec-shared", run_exec_shared, 30},
	{"mmap-exec", run_mmap_exec, 500},
	{"mmap", run_mmap, 500},
	{"gzip", run_gzip, 2},
	{"sort", run_sort, 2},
	{"perl", run_perl, 2},
	{"cc1", run_cc1, 1},
	{NULL, NULL, 0},
};
