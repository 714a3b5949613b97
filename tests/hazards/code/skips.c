// SPDX-License-Identifier: Apache-2.0
// Handlers that know code addresses: after a fault a table of labels gives the next address, as in
// the kernel; a handler steps over an instruction; restartable sequences with a table like rseq's.
// stays: reads counts
// moves: main
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "../hazard.h"

/* Relative addresses, as in Linux: the instruction that may fault, and where to continue. */
struct fixup {
	int32_t fault, to;
};
extern const struct fixup __start_fixups[] __attribute__((weak, visibility("hidden")));
extern const struct fixup __stop_fixups[] __attribute__((weak, visibility("hidden")));

struct sequence {
	uint32_t version, flags;
	uint64_t start, length, abort;
};
extern const struct sequence __start_sequences[] __attribute__((weak, visibility("hidden")));

static volatile int skipped, aborted;

static void fault(int sig, siginfo_t *info, void *context)
{
	greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)info;
	if (sig == SIGILL) {
		skipped++;
		*rip += 2;
		return;
	}
	for (const struct fixup *f = __start_fixups; f < __stop_fixups; f++) {
		if ((greg_t)((uintptr_t)&f->fault + f->fault) == *rip) {
			*rip = (greg_t)((uintptr_t)&f->to + f->to);
			return;
		}
	}
	if (__start_sequences) {
		const struct sequence *s = __start_sequences;

		if ((uint64_t)*rip - s->start < s->length) {
			*rip = (greg_t)s->abort;
			return;
		}
	}
	signal(SIGSEGV, SIG_DFL);
}

KEEP int reads(const int *p)
{
	int value = -1;

	__asm__ volatile("1: movl (%1), %0\n"
			 "2:\n"
			 ".pushsection fixups, \"a\"\n"
			 ".balign 4\n"
			 ".long 1b - ., 2b - .\n"
			 ".popsection"
			 : "+r"(value)
			 : "r"(p));
	return value * 2;
}

/* Starts, faults in the middle, and continues at its abort handler. */
KEEP int counts(int *p)
{
	int result = 0;

	__asm__ volatile("1: movl $5, %0\n"
			 "	addl (%1), %0\n"
			 "2: jmp 4f\n"
			 "3: movl $-7, %0\n"
			 "4:\n"
			 ".pushsection sequences, \"aw\"\n"
			 ".balign 32\n"
			 ".long 0, 0\n"
			 ".quad 1b, 2b - 1b, 3b\n"
			 ".popsection"
			 : "+r"(result)
			 : "r"(p));
	aborted += result == -7;
	return result;
}

/* Contains a trap instruction that a signal handler skips. */
KEEP int steps_over(int n)
{
	if (n & 1)
		__asm__ volatile("ud2");
	return n * 3;
}

int main(void)
{
	struct sigaction sa;
	int number = 21, sum = 0;

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = fault;
	sa.sa_flags = SA_SIGINFO | SA_NODEFER;
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGILL, &sa, NULL);
	for (int i = 0; i < 20; i++) {
		sum = sum * 3 + reads(i % 3 ? &number : OPAQUE((int *)NULL));
		sum = sum * 3 + counts(i % 4 ? &number : OPAQUE((int *)NULL));
		sum = sum * 3 + steps_over(i);
	}
	printf("%d %d %d\n", sum, aborted, skipped);
	return 0;
}
