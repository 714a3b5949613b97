/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mark - how a program in the guest sends messages to the plugin kernel.c: by instructions
 * without effect.
 *
 * A mark is a 7-byte `nopl VALUE(%reg)`; no compiler uses such values. The plugin sees its
 * execution. Addresses are sent by marks that the program writes at run time.
 */
#ifndef MORPH_TESTS_MARK_H
#define MORPH_TESTS_MARK_H

#define MARK_SIZE  7
#define MARK_MODRM 0x80 /* %rax: VALUE is one of those below */
/* %rcx: VALUE is the lower half of a kernel address where a range starts */
#define MARK_MODRM_START 0x81
#define MARK_MODRM_END	 0x82 /* %rdx: VALUE is the lower half of the address where it ends */

#define MARK_MAGIC  0x4d4f0000
#define MARK_ARM    0x4d4f0100 /* + 1: count from now on; + 0: only look for marks */
#define MARK_WINDOW 0x4d4f0200 /* + number of the window that begins; + 0: the window ends */
#define MARK_OP	    0x4d4f0300 /* one operation ends and the next begins */
#define MARK_WATCH  0x4d4f0400 /* + MARK_BIT_*: kind of the range just sent */
#define MARK_FORGET 0xff       /* with MARK_WATCH: forget all ranges */

enum mark_bit {
	MARK_BIT_TICK, /* classes of interrupts: what was executed in them */
	MARK_BIT_SAMPLE,
	MARK_BIT_SCHED,
	MARK_BIT_SOFTIRQ,
	MARK_BIT_WORK,
	MARK_BIT_SPARE,
	MARK_BIT_ENTRY, /* an interrupt begins */
	MARK_BIT_FAULT, /* another exception, which may occur in an interrupt */
};

/* Executes a mark whose value is known at compile time. */
#define MARK(value) __asm__ volatile(".byte 0x0f, 0x1f, 0x80\n\t.long %c0" ::"i"(value) : "memory")

#endif
