// SPDX-License-Identifier: Apache-2.0
/*
 * Processes that are odd, or want to do harm, for live/odd.sh. The first argument says how; it prints "ready", and "right" or
 * "WRONG" after SIGTERM.
 */
#include <alloca.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

int summed(int x);
int added(int x);

static volatile sig_atomic_t stops;
static volatile char selector;

NOINLINE int summed(int x)
{
	int s = 0;

	for (int i = 0; i < x; i++)
		s += i % 7 ? i : x;
	return s;
}

NOINLINE int added(int x)
{
	return x > 3 ? summed(x) + summed(x - 1) : x;
}

static void stop(int number)
{
	(void)number;
	stops = 1;
	selector = SYSCALL_DISPATCH_FILTER_ALLOW;
}

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

static void works(void)
{
	while (!stops) {
		added(40);
		usleep(1000);
	}
}

/* ---- two threads of one processor that count by restartable sequences ---------------------------------------- */

static volatile long number;

/* Counts, unless another thread could have counted meanwhile. Return: it has counted. */
static NOINLINE bool counts(void)
{
	char *thread;
	struct rseq *rseq;

	__asm__("mov %%fs:0, %0" : "=r"(thread));
	rseq = (struct rseq *)(thread + __rseq_offset);
	__asm__ volatile goto(".pushsection __rseq_cs, \"aw\"\n"
			      ".balign 32\n"
			      "3:	.long 0, 0\n"
			      "	.quad 1f, 2f - 1f, 4f\n"
			      ".popsection\n"
			      "	leaq 3b(%%rip), %%rax\n"
			      "	movq %%rax, %c[cs](%[rseq])\n"
			      "1:	movq (%[number]), %%rcx\n"
			      "	addq $1, %%rcx\n"
			      "	movl $300000, %%eax\n"
			      "5:	decl %%eax\n"
			      "	jnz 5b\n"
			      "	movq %%rcx, (%[number])\n"
			      "2:\n"
			      ".pushsection __rseq_failure, \"ax\"\n"
			      "	.byte 0x0f, 0xb9, 0x3d\n"
			      "	.long %c[signature]\n"
			      "4:	jmp %l[again]\n"
			      ".popsection\n"
			      :
			      : [cs] "i"(offsetof(struct rseq, rseq_cs)), [rseq] "r"(rseq),
				[number] "r"(&number), [signature] "i"(RSEQ_SIG)
			      : "rax", "rcx", "memory", "cc"
			      : again);
	return true;
again:
	return false;
}

static void *counts_on(void *mine)
{
	while (!stops) {
		*(long *)mine += counts();
		/* In a sequence, a thread makes no calls for morph live: as much time is spent elsewhere. */
		for (volatile int i = 0; i < 100000; i++)
			;
	}
	return mine;
}

static bool restarts(void)
{
	static long mine[2];
	pthread_t thread;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (!__rseq_size || sched_setaffinity(0, sizeof(one), &one) ||
	    pthread_create(&thread, NULL, counts_on, &mine[1]))
		exit(77);
	say("ready");
	counts_on(&mine[0]);
	pthread_join(thread, NULL);
	return number == mine[0] + mine[1];
}

/* ---- a handler whose stack is a part of the main stack -------------------------------------------------------- */

static void handles(int number)
{
	(void)number;
	say("ready");
	works();
}

static bool has_nested_stack(void)
{
	enum {
		BELOW = 65536
	};
	char *room = alloca(BELOW + 8192);
	stack_t stack = {.ss_sp = room + BELOW, .ss_size = 8192};
	struct sigaction action = {.sa_handler = handles, .sa_flags = SA_ONSTACK};
	size_t same = 0;

	memset(room, 0x5a, BELOW);
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	while (same < BELOW && room[same] == 0x5a)
		same++;
	return same == BELOW;
}

/* ---- others ----------------------------------------------------------------------------------------------------- */

/* Maps @nr files as code, for each of which others wait until this process agrees. */
static bool leases(int nr)
{
	char name[32];

	signal(SIGIO, SIG_IGN);
	for (int i = 0; i < nr; i++) {
		int fd;

		snprintf(name, sizeof(name), "leased.%d", i);
		fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0700);
		if (fd < 0 || ftruncate(fd, 8192) ||
		    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096) == MAP_FAILED ||
		    fcntl(fd, F_SETLEASE, F_WRLCK))
			return false;
	}
	return true;
}

static void *runs(void *arg)
{
	say("ready");
	works();
	return arg;
}

/* A thread's stack lies in memory of which the upper half makes its readers wait. */
static bool holds_readers(void)
{
	enum {
		HALF = 1 << 18
	};
	char *memory =
		mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = {.range = {(unsigned long)memory, 2 * HALF},
					.mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = {.api = UFFD_API};
	pthread_attr_t attr;
	pthread_t thread;

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		return false;
	memset(memory, 0, HALF);
	if (ioctl(fd, UFFDIO_REGISTER, &range))
		return false;
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, memory, HALF);
	return !pthread_create(&thread, &attr, runs, NULL) && !pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	bool right = true;

	signal(SIGTERM, stop);
	signal(SIGSYS, stop);
	if (!strcmp(how, "nested")) {
		right = has_nested_stack();
	} else if (!strcmp(how, "leases") && !leases(argc > 2 ? atoi(argv[2]) : 1)) {
		return 77;
	} else if (!strcmp(how, "readers")) {
		if (!holds_readers())
			return 77;
	} else if (!strcmp(how, "restarts")) {
		right = restarts();
	} else if (!strcmp(how, "dispatch")) {
		if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector))
			return 77;
		say("ready");
		selector = SYSCALL_DISPATCH_FILTER_BLOCK;
		while (!stops)
			added(40);
	} else {
		say("ready");
		works();
	}
	say(right ? "right" : "WRONG");
	return 0;
}
