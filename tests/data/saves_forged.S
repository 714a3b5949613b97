// SPDX-License-Identifier: Apache-2.0
/*
 * saves_forged - a function that needs the registers that it saves on one way only, and one that it calls: with
 * bytes before constants that a test of verify replaces by other instructions of the same length.
 */
	.text
	.globl helper
	.type helper, @function
helper:
	.cfi_startproc
	mov %rdi, %rax
	movabs $0x1222334487654321, %rdx
	xor %edx, %eax
	cmp $5, %rax
	ja helper
	ret
	.cfi_endproc
	.size helper, .-helper

	.globl work
	.type work, @function
work:
	.cfi_startproc
	push %r12
	.cfi_adjust_cfa_offset 8
	.cfi_offset %r12, -16
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -24
	sub $40, %rsp
	.cfi_adjust_cfa_offset 40
	lea 16(%rsp), %rsi
	movabs $0x1122334455667788, %rcx
	call *pointer(%rip)
	call helper
	test %rdi, %rdi
	js 1f
	add $40, %rsp
	.cfi_remember_state
	.cfi_adjust_cfa_offset -40
	pop %rbx
	.cfi_adjust_cfa_offset -8
	pop %r12
	.cfi_adjust_cfa_offset -8
	ret
1:
	.cfi_restore_state
	mov %rdi, %rbx
	mov %rdi, %r12
	mov %rdi, %rsi
	movabs $0x2233445566778811, %rcx
	call *pointer(%rip)
	lea (%rbx,%r12), %rax
	add $40, %rsp
	.cfi_adjust_cfa_offset -40
	pop %rbx
	.cfi_adjust_cfa_offset -8
	pop %r12
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size work, .-work

	.globl main
	.type main, @function
main:
	.cfi_startproc
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	mov $3, %edi
	call work
	xor %eax, %eax
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size main, .-main

	.section .data.rel, "aw"
	.balign 8
pointer: .quad helper
	.section .note.GNU-stack, "", @progbits
