// SPDX-License-Identifier: Apache-2.0
// The switch function of a fibre library: it returns on another stack than the caller's.
	.text
	.globl	switch_stack
	.type	switch_stack, @function
switch_stack:
	.cfi_startproc
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	pushq	%r12
	.cfi_adjust_cfa_offset 8
	pushq	%r13
	.cfi_adjust_cfa_offset 8
	pushq	%r14
	.cfi_adjust_cfa_offset 8
	pushq	%r15
	.cfi_adjust_cfa_offset 8
	movq	%rsp, (%rdi)
	movq	%rsi, %rsp
	popq	%r15
	.cfi_adjust_cfa_offset -8
	popq	%r14
	.cfi_adjust_cfa_offset -8
	popq	%r13
	.cfi_adjust_cfa_offset -8
	popq	%r12
	.cfi_adjust_cfa_offset -8
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	switch_stack, . - switch_stack

	.globl	start_fibre
	.type	start_fibre, @function
start_fibre:
	.cfi_startproc
	.cfi_undefined %rip
	movq	%rbx, %rdi
	call	fibre
	ud2
	.cfi_endproc
	.size	start_fibre, . - start_fibre

	.section .note.GNU-stack,"",@progbits
