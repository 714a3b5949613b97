/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "tiny" is smaller than a jump. CASE says how it ends, and what stands behind it or leads there: up to
 * LAST_FREE the padding is nobody's, and a jump may overwrite it; behind that it is not.
 */
#define FREE_NOPS     0
#define FREE_INT3     1
#define FREE_JUMP     2
#define FREE_ENDBR    3
#define FREE_LINE     4
#define LAST_FREE     4
#define BRANCH        5
#define BRANCH_BARE   6
#define WORD          7
#define OPERAND       8
#define READ          9
#define SYMBOL        10
#define OBJECT        11
#define OTHER_BYTE    12
#define ENDS_IN_CALL  13
#define ENDS_IN_TRAP  14
#define HAS_BRANCH    15
#define UNALIGNED     16
#define LONG          17
#define TABLE         18
#define OTHER_SECTION 19
#define NO_FUNCTION   20
#define CUT_NOP	      21

	.text
	.globl start
	.type start, @function
start:
	.cfi_startproc
	lea tiny(%rip), %rax
	call *%rax
#if CASE == OPERAND
	lea .Lpad(%rip), %rax
#elif CASE == READ
	movzbl .Lpad(%rip), %eax
#elif CASE == BRANCH
	test %eax, %eax
	je .Lpad
#elif CASE == TABLE
	lea table(%rip), %rdx
	movslq (%rdx, %rdi, 4), %rcx
	add %rdx, %rcx
	call *%rcx
#endif
	hlt
	.cfi_endproc
	.size start, . - start

	/* The test finds tiny behind these bytes. */
	.p2align 4
	.type marker, @function
marker:
	.cfi_startproc
	mov $0x12345678, %eax
	ret
	.cfi_endproc
	.size marker, . - marker

	.p2align 4
	.type tiny, @function
tiny:
	.cfi_startproc
#if CASE == FREE_JUMP
	jmp *%rax
#elif CASE == FREE_ENDBR
	endbr64
	ret
#elif CASE == ENDS_IN_CALL
	call *%rdi
#elif CASE == ENDS_IN_TRAP
	ud2
#elif CASE == HAS_BRANCH
	je 1f
1:	ret
#else
	mov (%rdi), %rax
	ret
#endif
	.cfi_endproc
	.size tiny, . - tiny

#if CASE == FREE_INT3
	.p2align 4, 0xcc
#elif CASE == FREE_LINE
	.p2align 6
#elif CASE == LONG
	.skip 76, 0x90
#elif CASE == UNALIGNED
	.skip 5, 0x90
#elif CASE == OTHER_BYTE
	nop
	nop
	ret
	.p2align 4
#elif CASE == OTHER_SECTION
	/* The padding is that of another section, in which tiny is not. */
	.section .later, "ax", @progbits
	.skip 12, 0x90
#elif CASE == CUT_NOP
	/* The last no-op would reach into the next function. */
	.skip 11, 0x90
	.byte 0x66
#else
	nop
#if CASE == SYMBOL
	.globl pad
pad:
#elif CASE == OBJECT
	.globl pad
	.type pad, @object
	.size pad, 4
pad:
#endif
.Lpad:
	.p2align 4
#endif

#if CASE != NO_FUNCTION
	.type after, @function
after:
	.cfi_startproc
	nop
	xor %eax, %eax
	ret
	.cfi_endproc
	.size after, . - after
#endif

	.data
	.quad 1
	.text
#if CASE == BRANCH_BARE
	.p2align 4
	jmp .Lpad
#elif CASE == WORD
	.data
	.quad .Lpad
#elif CASE == TABLE
	.section .rodata
	.p2align 2
table:
	.long tiny - table
	.long .Lpad - table
	.long after - table
#endif
