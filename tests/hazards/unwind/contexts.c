// SPDX-License-Identifier: Apache-2.0
// Stacks switched by hand: by ucontext, by a signal handler's stack used for a fibre, and by
// assembly as in fibre libraries.
// asm: contexts.S
// moves: fibre main
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include "../hazard.h"

#define NR 5
static ucontext_t main_context, contexts[NR];
static char stacks[NR][32768];
static long sum;

KEEP long step(long v, int n)
{
	switch (n % 5) {
	case 0: return v * 3 + n;
	case 1: return v ^ 0x55;
	case 2: return v - n * n;
	case 3: return v + (v >> 3);
	default: return ~v;
	}
}

static void runs(int id)
{
	for (int i = 0; i < 40; i++) {
		sum = step(sum, id + i);
		swapcontext(&contexts[id], &contexts[(id + 1) % NR]);
	}
}

/* ---- hand-written switches: contexts.S */
void switch_stack(void **save, void *to);
void start_fibre(void);

static void *here, *fibre_stack;

/* Called by start_fibre, on the new stack; never returns. */
void fibre(void *arg)
{
	long *v = arg;

	for (int i = 0;; i++) {
		*v = step(*v, i);
		switch_stack(&fibre_stack, here);
	}
}

int main(void)
{
	static uintptr_t stack[4096];
	static long value = 7;
	uintptr_t *sp = stack + 4096;

	for (int i = 0; i < NR; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = stacks[i];
		contexts[i].uc_stack.ss_size = sizeof(stacks[i]);
		contexts[i].uc_link = &main_context;
		makecontext(&contexts[i], (void (*)(void))runs, 1, i);
	}
	swapcontext(&main_context, &contexts[0]);
	printf("%ld\n", sum);

	*--sp = 0;
	*--sp = (uintptr_t)start_fibre;
	*--sp = 0;			 /* rbp */
	*--sp = (uintptr_t)&value;	 /* rbx */
	for (int i = 0; i < 4; i++)
		*--sp = 0;		 /* r12 to r15 */
	fibre_stack = sp;
	for (int i = 0; i < 100; i++)
		switch_stack(&here, fibre_stack);
	printf("%ld\n", value);
	return 0;
}
