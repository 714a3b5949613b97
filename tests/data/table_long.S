/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For test_verify_forged.c: long tables, and many names. Looking at all symbols for each entry, or at all of a function
 * for each operand, would take minutes.
 */
	.macro	name
named\@:
	.byte	0
	.endm
	.data
	.rept	20000
	name
	.endr

	.text
	.globl	longest
	.type	longest, @function
longest:
	.cfi_startproc
	.rept	20000
	leaq	table(%rip), %rdx
	.endr
	andl	$1, %edi
	movslq	(%rdx,%rdi,4), %rax
	addq	%rdx, %rax
	jmp	*%rax
1:	xorl	%eax, %eax
	ret
	.cfi_endproc
	.size	longest, . - longest

	.type	between, @function
between:
	.cfi_startproc
	nop
	ret
	.cfi_endproc
	.size	between, . - between

	.type	longest.cold, @function
longest.cold:
	.cfi_startproc
	nop
	nop
	movl	$0, %eax
	ret
	.cfi_endproc
	.size	longest.cold, . - longest.cold

	.section .rodata
	.balign	4
table:	.long	1b - table
	.rept	20000
	.long	longest.cold - table
	.endr
	.section .note.GNU-stack, "", @progbits
