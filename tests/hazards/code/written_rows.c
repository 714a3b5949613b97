// SPDX-License-Identifier: Apache-2.0
// A handler of faults has a table of its own in a writable section with a C name: the address of the instruction and
// where to go on, in 4 or in 8 bytes, with other fields between. One function has a switch besides.
// modes: nopie static
// kinds: stock stripped
// stays: halves words
// copies: main
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "../hazard.h"

struct half {
	uint32_t fault, zero, kind, to;
};
struct word {
	uint64_t kind, fault, length, to;
};
extern const struct half __start_half_rows[] __attribute__((visibility("hidden")));
extern const struct half __stop_half_rows[] __attribute__((visibility("hidden")));
extern const struct word __start_word_rows[] __attribute__((visibility("hidden")));
extern const struct word __stop_word_rows[] __attribute__((visibility("hidden")));

static volatile int skipped;

static void fault(int sig, siginfo_t *info, void *context)
{
	greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)info;
	skipped++;
	for (const struct half *row = __start_half_rows; row < __stop_half_rows; row++) {
		if ((greg_t)row->fault == *rip) {
			*rip = (greg_t)row->to;
			return;
		}
	}
	for (const struct word *row = __start_word_rows; row < __stop_word_rows; row++) {
		if ((greg_t)row->fault == *rip) {
			*rip = (greg_t)row->to;
			return;
		}
	}
	signal(sig, SIG_DFL);
}

KEEP int halves(const int *p)
{
	int value = -1;

	__asm__ volatile("1: movl (%1), %0\n"
			 "2:\n"
			 ".pushsection half_rows, \"aw\"\n"
			 ".long 1b, 0, 77, 2b\n"
			 ".popsection"
			 : "+r"(value)
			 : "r"(p));
	return value * 2;
}

KEEP int words(const int *p)
{
	int value = -1;

	__asm__ volatile("1: movl (%1), %0\n"
			 "2:\n"
			 ".pushsection word_rows, \"aw\"\n"
			 ".quad 7, 1b, 2b - 1b, 2b\n"
			 ".popsection"
			 : "+r"(value)
			 : "r"(p));
	switch (value & 7) {
	case 0: return value + 3;
	case 1: return value ^ 77;
	case 2: return value * 7;
	case 3: return value - 11;
	case 4: return -value;
	case 5: return value | 129;
	case 6: return value / 3;
	default: return value * value;
	}
}

int main(void)
{
	struct sigaction sa;
	int number = 21, sum = 0;

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = fault;
	sa.sa_flags = SA_SIGINFO | SA_NODEFER;
	sigaction(SIGSEGV, &sa, NULL);
	for (int i = 0; i < 20; i++) {
		sum = sum * 3 + halves(i % 3 ? &number : OPAQUE((int *)NULL));
		sum = sum * 3 + words(i % 4 ? &number : OPAQUE((int *)NULL));
	}
	printf("%d %d\n", sum, skipped);
	return 0;
}
