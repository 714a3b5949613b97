// SPDX-License-Identifier: Apache-2.0
// A handler of faults knows one instruction of another function, and goes on at a function: also in files with fixed
// addresses, where the address of the instruction is a number that is compared.
// stays: peek fetch
// moves: main
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

#include "../hazard.h"

extern const char peek_faults[] __attribute__((visibility("hidden")));
extern const char fetch_faults[] __attribute__((visibility("hidden")));
long failed(void) __attribute__((visibility("hidden")));
long fetch(const long *p, long n) __attribute__((visibility("hidden")));
long peek(const long *p, long n) __attribute__((visibility("hidden")));

__asm__(".pushsection .text\n"
	".macro function name\n"
	".p2align 4\n.globl \\name\n.hidden \\name\n.type \\name, @function\n\\name:\n.cfi_startproc\n"
	".endm\n"
	".macro ends name\n"
	".cfi_endproc\n.size \\name, . - \\name\n"
	".endm\n"
	"function failed\nmov $-14, %rax\nret\nends failed\n"
	"function fetch\ntest %rsi, %rsi\nje 1f\nadd $1, %rsi\n"
	".globl fetch_faults\n.hidden fetch_faults\n"
	"fetch_faults: mov (%rdi), %rax\nadd %rsi, %rax\nret\n"
	"1: xor %eax, %eax\nret\nends fetch\n"
	"function peek\nxor %eax, %eax\nxor %ecx, %ecx\n"
	"1: mov %rcx, %rdx\nxor %rsi, %rdx\nadd %rdx, %rax\nadd $1, %rcx\ncmp %rsi, %rcx\njl 1b\n"
	".globl peek_faults\n.hidden peek_faults\n"
	"peek_faults: add (%rdi), %rax\nret\nends peek\n"
	".popsection\n");

static void fault(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig;
	(void)info;
	if (regs[REG_RIP] != (greg_t)(uintptr_t)peek_faults &&
	    regs[REG_RIP] != (greg_t)(uintptr_t)fetch_faults)
		_exit(9);
	regs[REG_RIP] = (greg_t)(uintptr_t)failed;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
	const long *nowhere = OPAQUE((const long *)8);
	long word = 3;

	(void)argv;
	sigaction(SIGSEGV, &action, NULL);
	printf("%ld %ld\n", peek(&word, argc + 3), fetch(&word, argc));
	printf("%ld\n", peek(nowhere, argc));
	printf("%ld\n", fetch(nowhere, argc));
	return 0;
}
