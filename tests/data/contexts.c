// SPDX-License-Identifier: Apache-2.0
/*
 * contexts - a program with the hard cases of calling contexts: `contexts CASE...`.
 *
 * Each function counts its activations itself; at the end the program prints FUNCTION COUNT.
 * tests/e2e/bench/contexts.sh compares the plugin's tree with these counts, and with trees
 * computed by hand.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define FUNCTIONS(X)                                                                               \
	X(leaf) X(fib) X(even) X(odd) X(tail_first) X(tail_second) X(tail_last) X(tail_indirect)   \
	X(jump_root) X(jump_down) X(handler) X(handler_alt) X(handler_jumps) X(interrupted)        \
	X(fault) X(handler_fault) X(co_body) X(co_step) X(worker) X(worker_part) X(hand_body)      \
	X(pointed_a) X(pointed_b) X(nested)

enum function {
#define X(name) F_##name,
	FUNCTIONS(X)
#undef X
	NR_FUNCTIONS
};

static const char *const names[] = {
#define X(name) #name,
	FUNCTIONS(X)
#undef X
};

static unsigned long counts[NR_FUNCTIONS];

#define ENTER(name) __atomic_add_fetch(&counts[F_##name], 1, __ATOMIC_RELAXED)
#define APART	    __attribute__((noipa))

static volatile long sink;

APART static void leaf(void)
{
	ENTER(leaf);
}

/* ---- recursion ---- */

APART static long fib(long n)
{
	long a = n, b = 0;

	ENTER(fib);
	if (n >= 2) {
		a = fib(n - 1);
		b = fib(n - 2);
		sink++; /* or gcc makes a loop of the second call */
	}
	return a + b;
}

static long odd(long n);

APART static long even(long n)
{
	ENTER(even);
	return n ? 1 + odd(n - 1) : 0;
}

APART static long odd(long n)
{
	ENTER(odd);
	return n ? 1 + even(n - 1) : 0;
}

static void recursion(void)
{
	sink = fib(10);
	sink = even(9);
}

/* ---- tail calls; gcc -O2 makes them ---- */

APART static long tail_last(long x)
{
	ENTER(tail_last);
	return x + sink;
}

APART static long tail_second(long x)
{
	ENTER(tail_second);
	leaf();
	return tail_last(x + 1);
}

APART static long tail_first(long x)
{
	ENTER(tail_first);
	return tail_second(x * 2);
}

APART static long tail_indirect(long (*f)(long), long x)
{
	ENTER(tail_indirect);
	return f(x);
}

static void tails(void)
{
	int i;

	for (i = 0; i < 7; i++)
		sink = tail_first(i) + 1;
	for (i = 0; i < 5; i++)
		sink = tail_indirect(i & 1 ? tail_last : tail_second, i) + 1;
}

/* ---- longjmp over frames ---- */

static jmp_buf back;

APART static void jump_down(int n)
{
	ENTER(jump_down);
	if (n)
		jump_down(n - 1);
	if (!n)
		longjmp(back, 1);
	sink++;
}

APART static void jump_root(int n)
{
	ENTER(jump_root);
	if (!setjmp(back))
		jump_down(n);
	leaf();
}

static void jumps(void)
{
	int i;

	for (i = 0; i < 4; i++)
		jump_root(i);
}

/* ---- signals ---- */

static sigjmp_buf over;

APART static void handler(int sig)
{
	(void)sig;
	ENTER(handler);
	leaf();
}

APART static void handler_alt(int sig)
{
	(void)sig;
	ENTER(handler_alt);
	leaf();
	raise(SIGUSR1);
	sink++;
}

APART static void handler_jumps(int sig)
{
	(void)sig;
	ENTER(handler_jumps);
	siglongjmp(over, 1);
}

APART static void interrupted(int sig)
{
	ENTER(interrupted);
	raise(sig);
	leaf();
}

static void *page;

APART static void handler_fault(int sig)
{
	(void)sig;
	ENTER(handler_fault);
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

APART static void fault(void)
{
	ENTER(fault);
	sink++;
	*(volatile char *)page = 1;
	sink++;
	leaf();
}

static void handle(int sig, void (*f)(int), int flags)
{
	struct sigaction action = {.sa_handler = f, .sa_flags = flags | SA_NODEFER};

	sigaction(sig, &action, NULL);
}

static void signals(void)
{
	static char memory[65536];
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};
	volatile int i;

	sigaltstack(&stack, NULL);
	handle(SIGUSR1, handler, 0);
	handle(SIGUSR2, handler_alt, SA_ONSTACK);
	handle(SIGALRM, handler_jumps, SA_ONSTACK);
	handle(SIGSEGV, handler_fault, SA_ONSTACK);
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < 3; i++)
		interrupted(SIGUSR1);
	for (i = 0; i < 2; i++)
		interrupted(SIGUSR2);
	for (i = 0; i < 5; i++)
		if (!sigsetjmp(over, 1))
			interrupted(SIGALRM);
	for (i = 0; i < 3; i++) {
		mprotect(page, 4096, PROT_NONE);
		fault();
	}
}

/* ---- swapcontext ---- */

static ucontext_t outside, inside[2];

APART static void co_step(int which)
{
	ENTER(co_step);
	swapcontext(&inside[which], &outside);
	leaf();
}

APART static void co_body(int which, int steps)
{
	ENTER(co_body);
	while (steps--)
		co_step(which);
}

APART static void co_run(size_t size, void *memory, int steps)
{
	int i, j;

	for (i = 0; i < 2; i++) {
		getcontext(&inside[i]);
		inside[i].uc_stack.ss_sp = (char *)memory + (size_t)i * size;
		inside[i].uc_stack.ss_size = size;
		inside[i].uc_link = &outside;
		makecontext(&inside[i], (void (*)(void))co_body, 2, i, steps);
	}
	for (i = 0; i <= steps; i++)
		for (j = 0; j < 2; j++)
			swapcontext(&outside, &inside[j]);
}

APART static void co_local(int steps)
{
	char memory[2 * 32768];

	co_run(32768, memory, steps);
	sink = memory[100];
}

/* The first one ends before the second one begins; each makes way for the other. */
static void co_direct(void)
{
	static char memory[2 * 8192];
	int i;

	for (i = 0; i < 2; i++) {
		getcontext(&inside[i]);
		inside[i].uc_stack.ss_sp = memory + (size_t)(1 - i) * 8192;
		inside[i].uc_stack.ss_size = 8192;
		inside[i].uc_link = i ? &outside : &inside[1];
		makecontext(&inside[i], (void (*)(void))co_body, 2, i, 0);
	}
	swapcontext(&outside, &inside[0]);
}

static void contexts(void)
{
	static char memory[2 * 16384];
	void *heap = malloc(2 * 65536);

	co_run(16384, memory, 3);
	co_run(65536, heap, 4);
	co_run(16384, memory, 2); /* the same memory again */
	co_local(5);
	co_direct();
	free(heap);
}

/* ---- a switch of stacks written by hand, and a call on another stack ---- */

void hand_switch(void **from, void *to);
__asm__(".text\n.type hand_switch, @function\nhand_switch:\n.cfi_startproc\n"
	"	push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
	"	mov %rsp, (%rdi); mov %rsi, %rsp\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
	"	ret\n.cfi_endproc\n.size hand_switch, .-hand_switch\n");

void on_stack(void *stack, void (*f)(void));
__asm__(".text\n.type on_stack, @function\non_stack:\n.cfi_startproc\n"
	"	push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"
	"	mov %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"
	"	mov %rdi, %rsp\n	call *%rsi\n	mov %rbp, %rsp\n	pop %rbp\n"
	".cfi_def_cfa %rsp, 8\n	ret\n.cfi_endproc\n.size on_stack, .-on_stack\n");

static void *hand_outside, *hand_inside;

APART static void hand_body(void)
{
	ENTER(hand_body);
	for (;;) {
		leaf();
		hand_switch(&hand_inside, hand_outside);
	}
}

APART static void nested(void)
{
	ENTER(nested);
	leaf();
}

static void hands(void)
{
	static char memory[16384] __attribute__((aligned(16))), second[16384];
	void **stack = (void **)(memory + sizeof(memory) - 64);
	int i;

	/* six registers, the first return address, and none above it */
	memset(stack - 8, 0, 64);
	stack[-2] = (void *)hand_body;
	hand_inside = stack - 8;
	for (i = 0; i < 6; i++)
		hand_switch(&hand_outside, hand_inside);
	for (i = 0; i < 4; i++)
		on_stack(second + sizeof(second), nested);
}

/* ---- threads, indirect calls ---- */

APART static void worker_part(long n)
{
	ENTER(worker_part);
	while (n--)
		leaf();
}

APART static void *worker(void *arg)
{
	ENTER(worker);
	worker_part((long)arg);
	worker_part((long)arg + 1);
	return NULL;
}

static void threads(void)
{
	pthread_t t[6];
	long i;

	for (i = 0; i < 6; i++)
		pthread_create(&t[i], NULL, worker, (void *)i);
	for (i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
}

APART static void pointed_a(void)
{
	ENTER(pointed_a);
	leaf();
}

APART static void pointed_b(void)
{
	ENTER(pointed_b);
}

static void pointers(void)
{
	static void (*volatile table[2])(void) = {pointed_a, pointed_b};
	int i;

	for (i = 0; i < 9; i++)
		table[i % 3 == 0]();
}

/* ---- the first call of a library's function resolves it ---- */

static void library(void)
{
	int i;

	for (i = 0; i < 5; i++)
		sink += strtol("3", NULL, 10) + i;
	leaf();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"recursion", recursion}, {"tails", tails},	  {"jumps", jumps},
		{"signals", signals},	  {"contexts", contexts}, {"hands", hands},
		{"threads", threads},	  {"pointers", pointers}, {"library", library},
	};
	size_t i;
	int arg;

	for (arg = 1; arg < argc; arg++)
		for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			if (!strcmp(argv[arg], cases[i].name))
				cases[i].run();
	for (i = 0; i < NR_FUNCTIONS; i++)
		if (counts[i])
			printf("%s %lu\n", names[i], counts[i]);
	return 0;
}
