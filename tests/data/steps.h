// SPDX-License-Identifier: Apache-2.0
/*
 * steps - runs work() with a trap behind each instruction, which unwinds to enter(), where work() began, and compares
 * the registers and the frame that the unwinder finds there. Included by programs of this folder, which define work().
 * The unwinder is found by its name in a string: such a file does not seem to walk its stack itself.
 */
#ifndef MORPH_TESTS_STEPS_H
#define MORPH_TESTS_STEPS_H

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

#ifdef __cplusplus
extern "C" {
#endif
/* Calls @work with known values in all callee-saved registers. */
unsigned long enter(unsigned long (*work)(unsigned long), unsigned long n);
extern unsigned long sp_of_enter; /* in the call */
unsigned long step(unsigned long n);
unsigned long work(unsigned long n);
#ifdef __cplusplus
}
#endif

__asm__(".macro save reg\n push %\\reg\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %\\reg, 0\n .endm\n"
	".macro back reg\n pop %\\reg\n .cfi_adjust_cfa_offset -8\n .cfi_restore %\\reg\n .endm\n"
	".macro lower n\n sub $\\n, %rsp\n .cfi_adjust_cfa_offset \\n\n .endm\n"
	".macro raise n\n add $\\n, %rsp\n .cfi_adjust_cfa_offset -\\n\n .endm\n"
	".macro begin name\n .globl \\name\n .type \\name, @function\n \\name: .cfi_startproc\n .endm\n"
	".macro end name\n .cfi_endproc\n .size \\name, .-\\name\n .endm\n"
	".text\n"
	"begin enter\n"
	" save rbx\n save rbp\n save r12\n save r13\n save r14\n save r15\n lower 8\n"
	" mov %rsp, sp_of_enter(%rip)\n mov %rdi, %rax\n mov %rsi, %rdi\n"
	" mov $0x3333, %ebx\n mov $0x6666, %ebp\n mov $0xcccc, %r12d\n"
	" mov $0xdddd, %r13d\n mov $0xeeee, %r14d\n mov $0xffff, %r15d\n"
	" call *%rax\n"
	" raise 8\n back r15\n back r14\n back r13\n back r12\n back rbp\n back rbx\n ret\n"
	"end enter\n"
	/* The trap flag is set throughout work(). */
	"begin step\n"
	" lower 8\n pushfq\n .cfi_adjust_cfa_offset 8\n orq $0x100, (%rsp)\n"
	" popfq\n .cfi_adjust_cfa_offset -8\n call work\n"
	" pushfq\n .cfi_adjust_cfa_offset 8\n andq $~0x100, (%rsp)\n"
	" popfq\n .cfi_adjust_cfa_offset -8\n raise 8\n ret\n"
	"end step\n");

static unsigned int nr_wrong, nr_steps;
unsigned long sp_of_enter;

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

typedef _Unwind_Reason_Code walk_stack(_Unwind_Trace_Fn, void *);

static walk_stack *walk;

static void on_trap(int sig)
{
	int found = 0;

	(void)sig;
	nr_steps++;
	walk(look, &found);
	nr_wrong += !found;
}

/* With the argument "steps", by traps; else @n times. Prints what came out, and how often the unwinder was wrong. */
static int run_steps(int argc, char **argv, unsigned long n)
{
	int steps = argc > 1 && !strcmp(argv[1], "steps");
	struct sigaction action;

	walk = (walk_stack *)dlsym(RTLD_DEFAULT, "_Unwind_Backtrace");
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_trap;
	sigaction(SIGTRAP, &action, NULL);
	printf("%lx\n", steps ? enter(step, 25) : enter(work, n));
	printf("%s, %u wrong\n", nr_steps > 5000 ? "steps" : "no steps", nr_wrong);
	return nr_wrong != 0;
}

#endif
