// SPDX-License-Identifier: Apache-2.0
// The stack is walked at every instruction: the program steps through its own functions, and a
// handler looks whether each walk ends where the first one ended. Saved registers lie in the red
// zone at some instructions.
// flags: -fasynchronous-unwind-tables -fno-omit-frame-pointer
// moves: main leaf middle outer
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unwind.h>

#include "../hazard.h"

#define STEPS 12000
#define TRAP  0x100

static volatile int steps, wrong;
static volatile uintptr_t outermost;

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *cfa)
{
	*(uintptr_t *)cfa = _Unwind_GetCFA(context);
	return _URC_NO_REASON;
}

static uintptr_t find_outermost(void)
{
	uintptr_t cfa = 0;

	_Unwind_Backtrace(note_frame, &cfa);
	return cfa;
}

static void step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)info;
	if (sig == SIGUSR1)
		uc->uc_mcontext.gregs[REG_EFL] |= TRAP;
	else if (++steps >= STEPS)
		uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP;
	if (find_outermost() != outermost)
		wrong++;
}

KEEP int leaf(int n)
{
	int a[8];

	for (int i = 0; i < 8; i++)
		a[i] = n + i;
	return a[n & 7] ^ a[3];
}

KEEP int middle(int n)
{
	int sum = 0;

	for (int i = 0; i < 3; i++)
		sum += leaf(n + i) * (n | 1);
	return sum;
}

KEEP int outer(int n)
{
	int a = middle(n), b = leaf(a);

	if (a & 1)
		return leaf(b);
	return middle(b) + a;
}

int main(void)
{
	struct sigaction sa;
	int sum = 0;

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = step;
	sa.sa_flags = SA_SIGINFO;
	sigaction(SIGTRAP, &sa, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	outermost = find_outermost();
	raise(SIGUSR1);
	for (int i = 0; steps < STEPS; i++)
		sum += outer(i);
	printf("%s\n", wrong ? "walks ended elsewhere" : "every walk ended well");
	return OPAQUE(sum) & 0;
}
