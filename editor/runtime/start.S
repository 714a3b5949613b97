// SPDX-License-Identifier: Apache-2.0
// start - the three entry points of the runtime, 16 bytes apart (editor/base/runtime.h). All registers
// are preserved. Vector registers are not saved: attach.c and thread.c are compiled not to use any.

// The stack after `save`, from its top: 15 registers, flags, the address to go on at.
#define SAVED_NEXT	(16 * 8)
#define SAVED_BYTES	(17 * 8)

	.section .text.start, "ax", @progbits
	.hidden	me_runtime_attach
	.hidden	me_runtime_thread
	.hidden	me_runtime_end

	.globl	_start
_start:
	endbr64
	jmp	program
	.balign	16, 0xcc
	.globl	me_runtime_init
me_runtime_init:
	endbr64
	jmp	library
	.balign	16, 0xcc
	.globl	me_runtime_enter
me_runtime_enter:
	endbr64
	jmp	thread

	.macro	save
	pushq	$0
	pushfq
	.irp	reg, rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	pushq	%\reg
	.endr
	.endm

	.macro	restore
	.irp	reg, r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax
	popq	%\reg
	.endr
	popfq
	.endm

program:
	save
	leaq	SAVED_BYTES(%rsp), %rsi
	jmp	attach

library:
	save
	xorl	%esi, %esi

attach:
	cld
	leaq	me_runtime_end(%rip), %rdi
	movq	%rsp, %rbp
	andq	$-16, %rsp
	call	me_runtime_attach
	movq	%rbp, %rsp
	testq	%rax, %rax
	jz	1f
	movq	%rax, SAVED_NEXT(%rsp)
	restore
	leaq	8(%rsp), %rsp
	// The address lies below the stack pointer, in the red zone that signal handlers preserve.
	// notrack: a direct jump led to the target before, so it need not be an endbr64.
	notrack jmp *-8(%rsp)

1:	restore
	leaq	8(%rsp), %rsp
	ret

thread:
	save
	leaq	SAVED_BYTES(%rsp), %rsi
	cld
	leaq	me_runtime_end(%rip), %rdi
	movq	%rsp, %rbp
	andq	$-16, %rsp
	call	me_runtime_thread
	movq	%rbp, %rsp
	jmp	1b

	.section .note.GNU-stack, "", @progbits
