// SPDX-License-Identifier: Apache-2.0
// A library exports labels inside of a function: the program's handler of faults knows by them the instruction that may fault,
// and where to go on.
// link: -louter_places
// modes: pie
// levels: -O2
// library: libouter_places.so -DLIBRARY
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

#include "../hazard.h"

int reads(const int *p, int how);

#ifdef LIBRARY

KEEP int reads(const int *p, int how)
{
	int value = 3;

	if (how > 4)
		value = OPAQUE(how) * 7;
	__asm__ volatile(".globl fault_at, go_on_at\n"
			 "fault_at: addl (%1), %0\n"
			 "go_on_at:\n"
			 : "+r"(value)
			 : "r"(p));
	return value * 2;
}

#else

/* By the GOT: a linker may copy what a program names otherwise, and the copy has an address of its own. */
#define ADDRESS_OF(name)                                                                           \
	({                                                                                         \
		greg_t at_;                                                                        \
		__asm__("movq " #name "@GOTPCREL(%%rip), %0" : "=r"(at_));                         \
		at_;                                                                               \
	})

static void fault(int sig, siginfo_t *info, void *context)
{
	greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)sig;
	(void)info;
	if (*rip != ADDRESS_OF(fault_at))
		_exit(9);
	*rip = ADDRESS_OF(go_on_at);
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

#endif
