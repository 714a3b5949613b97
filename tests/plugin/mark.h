/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mark - how a program in the guest speaks to the plugin kernel.c: by instructions that do nothing.
 *
 * A mark is `nopl VALUE(%reg)` of 7 bytes, which no compiler writes with such a value. The plugin
 * sees it when it is executed. Addresses are told by marks too, which the program writes at run time.
 */
#ifndef MORPH_TESTS_MARK_H
#define MORPH_TESTS_MARK_H

#define MARK_SIZE	 7
#define MARK_MODRM	 0x80 /* %rax: VALUE is one of those below */
#define MARK_MODRM_START 0x81 /* %rcx: the lower half of the kernel address where a range starts */
#define MARK_MODRM_END	 0x82 /* %rdx: and where it ends */

#define MARK_MAGIC  0x4d4f0000
#define MARK_ARM    0x4d4f0100 /* + 1: count from now on; + 0: marks only */
#define MARK_WINDOW 0x4d4f0200 /* + its number; + 0: it ends */
#define MARK_OP	    0x4d4f0300 /* one operation ends and the next begins */
#define MARK_WATCH  0x4d4f0400 /* + MARK_BIT_*: the range told before is of this kind */
#define MARK_FORGET 0xff       /* or all ranges are forgotten */

enum mark_bit {
	MARK_BIT_TICK, /* classes of interrupts: what was executed in them */
	MARK_BIT_SAMPLE,
	MARK_BIT_SCHED,
	MARK_BIT_SOFTIRQ,
	MARK_BIT_WORK,
	MARK_BIT_SPARE,
	MARK_BIT_ENTRY, /* an interrupt begins */
	MARK_BIT_FAULT, /* another exception, which may lie in an interrupt */
};

/* MARK(value) executes a mark whose value is known at compile time. */
#define MARK(value) __asm__ volatile(".byte 0x0f, 0x1f, 0x80\n\t.long %c0" ::"i"(value) : "memory")

#endif
