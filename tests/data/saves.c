// SPDX-License-Identifier: Apache-2.0
/*
 * saves - calls functions that save_functions.py made, with known values in all registers that these must give
 * back, and compares the registers behind each call. With the argument "steps", a trap behind each instruction
 * unwinds to the call, and compares the registers and the frame that the unwinder finds there. Prints what came out.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unwind.h>

extern unsigned long (*const made[])(unsigned long, unsigned long);
extern const unsigned int nr_made;

/* Calls @f. Return: its result. */
unsigned long enter(unsigned long (*f)(unsigned long, unsigned long), unsigned long a,
		    unsigned long b);
unsigned long called;
unsigned long sp_of_enter; /* in the call */
unsigned long trap_flag;   /* 0x100 to set it during the call */
unsigned long nr_changed;  /* registers that a function did not give back */

__asm__(".macro save reg\n push %\\reg\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %\\reg, 0\n .endm\n"
	".macro back reg\n pop %\\reg\n .cfi_adjust_cfa_offset -8\n .cfi_restore %\\reg\n .endm\n"
	".macro want reg value\n cmp $\\value, %\\reg\n je 1f\n incq nr_changed(%rip)\n 1:\n .endm\n"
	".macro flag\n pushfq\n .cfi_adjust_cfa_offset 8\n mov trap_flag(%rip), %r10\n xor %r10, (%rsp)\n"
	" popfq\n .cfi_adjust_cfa_offset -8\n .endm\n"
	".text\n.globl enter\n.type enter, @function\nenter: .cfi_startproc\n"
	" save rbx\n save rbp\n save r12\n save r13\n save r14\n save r15\n"
	" sub $8, %rsp\n .cfi_adjust_cfa_offset 8\n"
	" test %rsp, %rsp\n jne 1f\n int3\n 1: mov %rsp, sp_of_enter(%rip)\n mov %rdi, called(%rip)\n mov %rsi, %rdi\n mov %rdx, %rsi\n"
	" mov $0x3333, %ebx\n mov $0x6666, %ebp\n mov $0xcccc, %r12d\n"
	" mov $0xdddd, %r13d\n mov $0xeeee, %r14d\n mov $0xffff, %r15d\n"
	" xor %eax, %eax\n xor %ecx, %ecx\n xor %edx, %edx\n xor %r8d, %r8d\n xor %r9d, %r9d\n"
	" flag\n xor %r10d, %r10d\n xor %r11d, %r11d\n call *called(%rip)\n flag\n"
	" want rbx 0x3333\n want rbp 0x6666\n want r12 0xcccc\n want r13 0xdddd\n want r14 0xeeee\n want r15 0xffff\n"
	" add $8, %rsp\n .cfi_adjust_cfa_offset -8\n"
	" back r15\n back r14\n back r13\n back r12\n back rbp\n back rbx\n ret\n"
	/* A function with a breakpoint is not copied. */
	" .cfi_endproc\n.size enter, .-enter\nend_of_enter:\n");
extern const char end_of_enter[];

static unsigned int nr_wrong, nr_steps;

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *found)
{
	static const struct {
		int reg;
		unsigned long value;
	} want[] = {{3, 0x3333},  {6, 0x6666},	{12, 0xcccc},
		    {13, 0xdddd}, {14, 0xeeee}, {15, 0xffff}};

	/* The CFA of the frame before, which is the stack pointer of this one. */
	if (_Unwind_GetCFA(context) != sp_of_enter)
		return _URC_NO_REASON;
	*(int *)found = 1;
	for (int i = 0; i < 6; i++)
		nr_wrong += _Unwind_GetGR(context, want[i].reg) != want[i].value;
	return _URC_END_OF_STACK;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	unsigned long at = (unsigned long)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	int found = 0;

	(void)sig;
	(void)info;
	if (at >= (unsigned long)enter && at < (unsigned long)end_of_enter)
		return;
	nr_steps++;
	_Unwind_Backtrace(look, &found);
	nr_wrong += !found;
}

int main(int argc, char **argv)
{
	int steps = argc > 1 && !strcmp(argv[1], "steps");
	unsigned long sum = 1, seed = 1, rounds = steps ? 3 : 200;
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_trap;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGTRAP, &action, NULL);
	trap_flag = steps ? 0x100 : 0;
	for (unsigned long n = 0; n < rounds * nr_made; n++) {
		seed = seed * 6364136223846793005ul + 1442695040888963407ul;
		sum = sum * 31 + enter(made[n % nr_made], seed >> 33, seed >> 20 & 0xffff);
	}
	printf("%lx\n", sum);
	printf("%s, %u wrong, %lu changed\n", nr_steps > 5000 ? "steps" : "no steps", nr_wrong,
	       nr_changed);
	return nr_wrong || nr_changed;
}
