// SPDX-License-Identifier: Apache-2.0
// Single words of constant data that hold the address of an instruction: of 4 bytes in files with fixed addresses; of 8
// bytes, and text stands before. A handler of faults looks at them.
// modes: nopie static
// stays: reads fetch
// moves: main
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

#include "../hazard.h"

extern const uint32_t reads_faults __attribute__((visibility("hidden")));
extern const struct {
	char name[24];
	uint64_t place;
} fetch_faults __attribute__((visibility("hidden")));

KEEP long reads(const long *p, long n)
{
	long value = n * 5;

	__asm__ volatile("1: add (%1), %0\n"
			 "nop\n"
			 ".pushsection .rodata\n"
			 ".balign 4\n"
			 ".globl reads_faults\n"
			 ".hidden reads_faults\n"
			 "reads_faults: .long 1b, 7\n"
			 ".popsection"
			 : "+r"(value)
			 : "r"(p));
	return value * 2;
}

KEEP long fetch(const long *p, long n)
{
	long value = n * 3;

	__asm__ volatile("1: add (%1), %0\n"
			 "nop\n"
			 ".pushsection .rodata\n"
			 ".balign 8\n"
			 ".globl fetch_faults\n"
			 ".hidden fetch_faults\n"
			 "fetch_faults: .ascii \"fetch: a word and no mo.\"\n"
			 ".quad 1b\n"
			 ".popsection"
			 : "+r"(value)
			 : "r"(p));
	return value - 2;
}

static int length(uint64_t place)
{
	return (*(const uint8_t *)place & 0xf0) == 0x40 ? 3 : 9;
}

static void fault(int sig, siginfo_t *info, void *context)
{
	greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)sig;
	(void)info;
	if ((uint64_t)*rip != reads_faults && (uint64_t)*rip != fetch_faults.place)
		_exit(9);
	*rip += length((uint64_t)*rip);
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
	long number = 21;

	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < 6; i++)
		printf("%ld %ld\n", reads(i % 3 ? &number : OPAQUE((long *)NULL), i),
		       fetch(i % 2 ? &number : OPAQUE((long *)NULL), i));
	puts("end");
	return 0;
}
