// SPDX-License-Identifier: Apache-2.0
// What hand-written assembly does and compilers do not. Each function returns a number that says
// whether it still works; hazards.c knows the numbers.
	.text

// A jump past a lock prefix: a target between two instruction starts.
	.globl	past_lock
	.type	past_lock, @function
past_lock:
	.cfi_startproc
	movl	$5, -8(%rsp)
	testl	%edi, %edi
	je	1f + 1
1:	lock
	addl	$3, -8(%rsp)
	movl	-8(%rsp), %eax
	ret
	.cfi_endproc
	.size	past_lock, . - past_lock

// The same, and data knows another place in it. The call leads to a function that moves.
	.globl	past_lock_known
	.type	past_lock_known, @function
past_lock_known:
	.cfi_startproc
	subq	$24, %rsp
	.cfi_adjust_cfa_offset 24
	movl	$5, 8(%rsp)
	testl	%edi, %edi
	je	1f + 1
1:	lock
	addl	$3, 8(%rsp)
2:	movl	8(%rsp), %edi
	call	fallen_into
	addq	$24, %rsp
	.cfi_adjust_cfa_offset -24
	ret
	.cfi_endproc
	.size	past_lock_known, . - past_lock_known
	.pushsection places, "a"
	.long	2b - .
	.popsection

// Falls through into the next function.
	.globl	falls_into
	.type	falls_into, @function
falls_into:
	.cfi_startproc
	addl	$100, %edi
	.cfi_endproc
	.size	falls_into, . - falls_into
	.globl	fallen_into
	.type	fallen_into, @function
fallen_into:
	.cfi_startproc
	leal	1(%rdi), %eax
	ret
	.cfi_endproc
	.size	fallen_into, . - fallen_into

// Slots of fixed stride, reached by arithmetic.
	.globl	slots
	.type	slots, @function
slots:
	.cfi_startproc
	andl	$3, %edi
	shll	$4, %edi
	leaq	.Lslot0(%rip), %rax
	addq	%rdi, %rax
	jmp	*%rax
	.p2align 4
.Lslot0:
	movl	$10, %eax
	ret
	.p2align 4
	movl	$20, %eax
	ret
	.p2align 4
	movl	$30, %eax
	ret
	.p2align 4
	movl	$40, %eax
	ret
	.cfi_endproc
	.size	slots, . - slots

// A label difference as an immediate.
	.globl	by_difference
	.type	by_difference, @function
by_difference:
	.cfi_startproc
	leaq	.Lhere(%rip), %rax
	addq	$(.Lthere - .Lhere), %rax
	jmp	*%rax
.Lhere:
	movl	$1, %eax
	ret
	nop
	nop
	nop
.Lthere:
	movl	$77, %eax
	ret
	.cfi_endproc
	.size	by_difference, . - by_difference

// Reads its own address by a call of the next instruction.
	.globl	own_address
	.type	own_address, @function
own_address:
	.cfi_startproc
	call	1f
	.cfi_adjust_cfa_offset 8
1:	popq	%rax
	.cfi_adjust_cfa_offset -8
	leaq	1b(%rip), %rdx
	subq	%rdx, %rax
	ret
	.cfi_endproc
	.size	own_address, . - own_address

// Data in the middle of code, read by the code.
	.globl	reads_itself
	.type	reads_itself, @function
reads_itself:
	.cfi_startproc
	movl	.Lnumber(%rip), %eax
	jmp	1f
.Lnumber:
	.long	4321
1:	addl	$1, %eax
	ret
	.cfi_endproc
	.size	reads_itself, . - reads_itself

// No unwind information at all, jumps into the middle of a function that has some.
	.globl	no_fde
	.type	no_fde, @function
no_fde:
	movl	$500, %eax
	jmp	.Lmiddle
	.size	no_fde, . - no_fde

	.globl	entered_in_the_middle
	.type	entered_in_the_middle, @function
entered_in_the_middle:
	.cfi_startproc
	movl	$1, %eax
	nop
.Lmiddle:
	addl	$6, %eax
	addl	%edi, %eax
	ret
	.cfi_endproc
	.size	entered_in_the_middle, . - entered_in_the_middle

// loop and jrcxz have 8-bit displacements only.
	.globl	loops
	.type	loops, @function
loops:
	.cfi_startproc
	movl	%edi, %ecx
	xorl	%eax, %eax
	jrcxz	2f
1:	addl	$2, %eax
	loop	1b
2:	ret
	.cfi_endproc
	.size	loops, . - loops

// A jump into the last bytes of what would be a patch.
	.globl	tight_loop
	.type	tight_loop, @function
tight_loop:
	.cfi_startproc
	xorl	%eax, %eax
1:	incl	%eax
2:	decl	%edi
	jg	1b
	addl	$7, %eax
	cmpl	$50, %eax
	jl	2b
	ret
	.cfi_endproc
	.size	tight_loop, . - tight_loop

// The address of a place in the middle stands in writable data.
	.globl	through_data
	.type	through_data, @function
through_data:
	.cfi_startproc
	movq	middle_address@GOTPCREL(%rip), %rax
	jmp	*(%rax)
	nop
	nop
.Lmid:
	movl	$91, %eax
	ret
	.cfi_endproc
	.size	through_data, . - through_data

// A call, and a constant that reads like one.
	.globl	call_and_constant
	.type	call_and_constant, @function
call_and_constant:
	.cfi_startproc
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	call	tight_loop
	movl	%eax, %ebx
	leaq	.Lnot_a_call(%rip), %rax
	addl	1(%rax), %ebx
	jmp	1f
.Lnot_a_call:
	.byte	0xe8
	.long	tight_loop - . - 4
1:	movl	%ebx, %eax
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	call_and_constant, . - call_and_constant

	.data
	.globl	middle_address
	.type	middle_address, @object
	.size	middle_address, 8
	.p2align 3
middle_address:
	.quad	.Lmid

	.section .note.GNU-stack,"",@progbits
