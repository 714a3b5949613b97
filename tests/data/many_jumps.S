/* SPDX-License-Identifier: Apache-2.0 */
/* For test_table.c: a function with MANY labels, and a jump to any of them behind each one. */
	.text
	.globl	many
	.type	many, @function
many:
	.cfi_startproc
.Lfirst:
	.rept	MANY
	addl	$123456, %eax
	jmp	*table(, %rdi, 8)
	.endr
	.cfi_endproc
	.size	many, . - many

	.globl	main
	.type	main, @function
main:
	.cfi_startproc
	xorl	%eax, %eax
	ret
	.cfi_endproc
	.size	main, . - main

	.section .rodata
	.balign	8
table:
	.set	at, 0
	.rept	MANY
	.quad	.Lfirst + at
	.set	at, at + 12
	.endr
	.section .note.GNU-stack, "", @progbits
