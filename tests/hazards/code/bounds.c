// SPDX-License-Identifier: Apache-2.0
// A handler of faults that knows by two labels, which it names itself, where the program may fault and where it
// goes on; no table says so.
// stays: peek
// moves: main
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "../hazard.h"

extern char peek_start[], peek_end[];

NOINLINE static long peek(const long *p, int n)
{
	long sum = 0;

	for (int i = 0; i < n; i++) {
		long word;

		__asm__ volatile("peek_start: mov (%1), %0\n"
				 "peek_end: nop\n"
				 : "=&a"(word)
				 : "r"(p + i));
		sum = word == 7 ? sum * 3 : sum + word;
	}
	return sum;
}

static void fault(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig;
	(void)info;
	if ((char *)regs[REG_RIP] < peek_start || (char *)regs[REG_RIP] >= peek_end)
		_exit(9);
	regs[REG_RAX] = 42;
	regs[REG_RIP] = (greg_t)peek_end;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
	long *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)argv;
	sigaction(SIGSEGV, &action, NULL);
	printf("%ld\n", peek(page, argc + 3));
	return 0;
}
