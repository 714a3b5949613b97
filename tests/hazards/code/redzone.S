// SPDX-License-Identifier: Apache-2.0
// Values below the stack pointer are handed to the function that is jumped to: see redzone.c.
	.macro	func name
	.globl	\name
	.type	\name, @function
\name:	.cfi_startproc
	.endm
	.macro	done name
	.cfi_endproc
	.size	\name, . - \name
	.endm
	.text

	func rz_pass
	movq %rdi, -8(%rsp)
	movq %rsi, -16(%rsp)
	testl %edx, %edx
	je 1f
	jmp rz_take
1:	movl $1, %eax
	ret
	done rz_pass
	func rz_take
	movq -8(%rsp), %rax
	addq -16(%rsp), %rax
	addq -128(%rsp), %rax
	subq -128(%rsp), %rax
	ret
	done rz_take
	.section .note.GNU-stack,"",@progbits
