// SPDX-License-Identifier: Apache-2.0
// A handler of faults names, by itself, an instruction that may fault and where to go on, in a function that has a switch:
// its other places are labels, these are not.
// stays: peek
// moves: main
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

#include "../hazard.h"

extern char peek_faults[] __attribute__((visibility("hidden")));
extern char peek_goes_on[] __attribute__((visibility("hidden")));

KEEP long peek(const long *p, int how)
{
	long value = 3, word;

	switch (how) {
	case 0: value = OPAQUE(how) * 7; break;
	case 1: value ^= OPAQUE(how) + 90; break;
	case 2: value -= OPAQUE(how) << 3; break;
	case 3: value = OPAQUE(value) / 2 + how; break;
	case 4: value += OPAQUE(how) % 3; break;
	case 5: value *= OPAQUE(how) - 11; break;
	case 6: value = -OPAQUE(how); break;
	}
	__asm__ volatile(".globl peek_faults, peek_goes_on\n"
			 ".hidden peek_faults, peek_goes_on\n"
			 "peek_faults: mov (%1), %0\n"
			 "peek_goes_on: nop\n"
			 : "=&a"(word)
			 : "r"(p));
	return value * 3 + word;
}

static void fault(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig;
	(void)info;
	if ((char *)regs[REG_RIP] != peek_faults)
		_exit(9);
	regs[REG_RAX] = 42;
	regs[REG_RIP] = (greg_t)peek_goes_on;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
	const long *nowhere = OPAQUE((const long *)8);
	long word = 5;

	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < 9; i++)
		printf("%ld\n", peek(i % 3 ? &word : nowhere, OPAQUE(i)));
	return 0;
}
