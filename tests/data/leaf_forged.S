// SPDX-License-Identifier: Apache-2.0
/*
 * leaf_forged - a small function and two callers, each with bytes before a constant that a test of verify
 * replaces by other instructions of the same length.
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
