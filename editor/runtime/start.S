// SPDX-License-Identifier: Apache-2.0
// start - the seven entry points of the runtime, 16 bytes apart (editor/base/runtime.h). All registers
// are preserved. Vector registers are not saved: the other files are compiled not to use any.

// The stack after `save`, from its top: 15 registers, flags, the address to go on at.
#define SAVED_NEXT	(16 * 8)
#define SAVED_BYTES	(17 * 8)

	.section .text.start, "ax", @progbits
	.hidden	me_runtime_attach
	.hidden	me_runtime_thread
	.hidden	me_runtime_audit_enter
	.hidden	me_runtime_audit_leave
	.hidden	me_runtime_audit_point
	.hidden	me_runtime_call
	.hidden	me_runtime_end

	.globl	_start
	.cfi_startproc
	.cfi_undefined rip
_start:
	endbr64
	jmp	program
	.balign	16, 0xcc
	.cfi_endproc
	.cfi_startproc
	.globl	me_runtime_init
me_runtime_init:
	endbr64
	jmp	library
	.balign	16, 0xcc
	.globl	me_runtime_enter
me_runtime_enter:
	endbr64
	jmp	thread
	.balign	16, 0xcc
	.globl	me_runtime_audit_enter_at
me_runtime_audit_enter_at:
	endbr64
	jmp	enter
	.balign	16, 0xcc
	.globl	me_runtime_audit_leave_at
me_runtime_audit_leave_at:
	endbr64
	jmp	leave
	.balign	16, 0xcc
	.globl	me_runtime_audit_point_at
me_runtime_audit_point_at:
	endbr64
	jmp	point
	.balign	16, 0xcc
	.globl	me_runtime_call_at
me_runtime_call_at:
	endbr64
	jmp	sample
	.cfi_endproc

	// Unwind rows follow each push and pop, for handlers that interrupt this code.
	.macro	save
	pushq	$0
	.cfi_adjust_cfa_offset 8
	pushfq
	.cfi_adjust_cfa_offset 8
	.irp	reg, rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	pushq	%\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \reg, 0
	.endr
	.endm

	.macro	restore
	.irp	reg, r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax
	popq	%\reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore \reg
	.endr
	popfq
	.cfi_adjust_cfa_offset -8
	.endm

	// Calls @function with the parameters and an aligned stack.
	.macro	invoke function
	cld
	leaq	me_runtime_end(%rip), %rdi
	movq	%rsp, %rbp
	.cfi_def_cfa_register rbp
	andq	$-16, %rsp
	call	\function
	movq	%rbp, %rsp
	.cfi_def_cfa_register rsp
	.endm

	.cfi_startproc
	.cfi_undefined rip
program:
	save
	leaq	SAVED_BYTES(%rsp), %rsi
	jmp	attach
	.cfi_endproc

	.cfi_startproc
library:
	save
	xorl	%esi, %esi

attach:
	invoke	me_runtime_attach
	testq	%rax, %rax
	jz	1f
	.cfi_remember_state
	movq	%rax, SAVED_NEXT(%rsp)
	restore
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	// The address lies below the stack pointer, in the red zone that signal handlers preserve.
	// notrack: a direct jump led to the target before, so it need not be an endbr64.
	notrack jmp *-8(%rsp)

	.cfi_restore_state
1:	restore
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc

	// The caller's red zone lies above the return address of these five.
	.cfi_startproc
thread:
	save
	leaq	SAVED_BYTES(%rsp), %rsi
	invoke	me_runtime_thread
	jmp	2f
	.cfi_endproc

	// Reads the time: all instructions before it have run by then, and none behind it.
	.macro	read_time
	lfence
	rdtsc
	lfence
	shlq	$32, %rdx
	orq	%rax, %rdx
	.endm

	.cfi_startproc
enter:
	save
	leaq	SAVED_BYTES(%rsp), %rsi
	invoke	me_runtime_audit_enter
	jmp	2f
	.cfi_endproc

	.cfi_startproc
leave:
	save
	read_time
	leaq	SAVED_BYTES(%rsp), %rsi
	invoke	me_runtime_audit_leave
	jmp	2f
	.cfi_endproc

	.cfi_startproc
point:
	save
	read_time
	leaq	SAVED_BYTES(%rsp), %rsi
	invoke	me_runtime_audit_point
2:	restore
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	ret	$128
	.cfi_endproc

	.cfi_startproc
sample:
	save
	leaq	SAVED_BYTES(%rsp), %rsi
	invoke	me_runtime_call
	jmp	2b
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
