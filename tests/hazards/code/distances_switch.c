// SPDX-License-Identifier: Apache-2.0
// A table in .rodata of an instruction that may fault and of where to go on, as distances from the words themselves. The
// function has a switch as well, so other words lead into it, too.
// stays: reads
// moves: main
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

#include "../hazard.h"

extern const int32_t fixups[2] __attribute__((visibility("hidden")));

KEEP int reads(const int *p, int how)
{
	int value = 3;

	switch (how) {
	case 0: value = OPAQUE(how) * 7; break;
	case 1: value ^= OPAQUE(how) + 90; break;
	case 2: value -= OPAQUE(how) << 3; break;
	case 3: value = OPAQUE(value) / 2 + how; break;
	case 4: value += OPAQUE(how) % 3; break;
	case 5: value *= OPAQUE(how) - 11; break;
	case 6: value = -OPAQUE(how); break;
	}
	__asm__ volatile("1: addl (%1), %0\n"
			 "2:\n"
			 ".pushsection .rodata\n"
			 ".balign 4\n"
			 ".globl fixups\n"
			 ".hidden fixups\n"
			 "fixups: .long 1b - ., 2b - .\n"
			 ".popsection"
			 : "+r"(value)
			 : "r"(p));
	return value * 2;
}

static void fault(int sig, siginfo_t *info, void *context)
{
	greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)sig;
	(void)info;
	if ((greg_t)((uintptr_t)&fixups[0] + (uintptr_t)(intptr_t)fixups[0]) != *rip)
		_exit(9);
	*rip = (greg_t)((uintptr_t)&fixups[1] + (uintptr_t)(intptr_t)fixups[1]);
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
	int number = 21;

	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < 9; i++)
		printf("%d\n", reads(i % 3 ? &number : OPAQUE((int *)NULL), OPAQUE(i)));
	return 0;
}
