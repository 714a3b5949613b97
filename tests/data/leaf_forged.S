// SPDX-License-Identifier: Apache-2.0
/*
 * leaf_forged - small functions, one with a branch and two returns, and their callers: with bytes before
 * constants that a test of verify replaces by other instructions of the same length.
 */
	.text
	.type leaf, @function
leaf:
	.cfi_startproc
	endbr64
	mov %rdi, %rax
	movabs $0x1122334455667788, %rcx
	xor %rcx, %rax
	ret
	.cfi_endproc
	.size leaf, .-leaf

	.type branching, @function
branching:
	.cfi_startproc
	endbr64
	test %rdi, %rdi
	js 1f
	mov %rdi, %rax
	movabs $0x1222334487654321, %rdx
	ret
1:
	mov %rdi, %rax
	movabs $0x1122334487654321, %rdx
	xor %rdx, %rax
	ret
	.cfi_endproc
	.size branching, .-branching

	.globl caller
	.type caller, @function
caller:
	.cfi_startproc
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	sub $32, %rsp
	.cfi_adjust_cfa_offset 32
	mov %rdi, %rbx
	lea 8(%rsp), %rsi
	movabs $0x2233445566778811, %rcx
	call leaf
	add %rax, %rbx
	mov %rbx, %rdi
	call leaf
	mov %rax, %rdi
	call branching
	lea -1(%rax), %rdi
	call branching
	add $32, %rsp
	.cfi_adjust_cfa_offset -32
	pop %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size caller, .-caller

	.globl main
	.type main, @function
main:
	.cfi_startproc
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	mov $5, %edi
	call caller
	and $1, %eax
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size main, .-main
	.section .note.GNU-stack, "", @progbits
