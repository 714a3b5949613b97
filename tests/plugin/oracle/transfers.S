// SPDX-License-Identifier: Apache-2.0
/*
 * transfers - every kind of transfer, and what an emulator finds hard: instructions that cross a
 * page, rep prefixes, long blocks, signals after system calls and from faults. No library: it
 * executes the same instructions anywhere. Status 0 if it took the way it should.
 */
	.text
	.globl _start
_start:
	xor	%ebx, %ebx

	/* conditional, both ways, short and near */
	mov	$100, %ecx
1:	test	$3, %cl
	jz	2f
	inc	%ebx
2:	cmp	$50, %ecx
	jae	far
back:	dec	%ecx
	jnz	1b

	/* loop and jrcxz */
	mov	$37, %ecx
3:	inc	%ebx
	loop	3b
	jrcxz	4f
	ud2
4:
	/* calls and returns, direct, through a register, through memory, with an operand */
	mov	$20, %r12d
5:	call	leaf
	lea	leaf(%rip), %rax
	call	*%rax
	call	*pointer(%rip)
	push	%rax
	call	leaf_pops
	call	recursive
	dec	%r12d
	jnz	5b

	/* a jump table */
	mov	$30, %r12d
6:	mov	%r12d, %eax
	and	$3, %eax
	lea	table(%rip), %rdx
	jmp	*(%rdx,%rax,8)
case0:	jmp	7f
case1:	inc	%ebx
	jmp	7f
case2:	add	$2, %ebx
	jmp	7f
case3:	add	$3, %ebx
7:	dec	%r12d
	jnz	6b

	/* string instructions: 0, 1 and 70 elements, in the middle of blocks and alone */
	mov	$9, %r12d
8:	xor	%eax, %eax
	lea	buffer(%rip), %rdi
	xor	%ecx, %ecx
	rep stosb
	mov	$1, %ecx
	rep stosb
	mov	$70, %ecx
	rep stosb
	lea	buffer(%rip), %rdi
	mov	$200, %ecx
	mov	$7, %al
	repne scasb
	dec	%r12d
	jnz	8b

	/* instructions that cross a page */
	mov	$25, %r12d
	jmp	crossing
crossed:
	/* a signal after a system call, another from a fault that the handler repairs */
	mov	$10, %r12d
	call	set_handlers
9:	mov	$39, %eax		/* getpid */
	syscall
	mov	%eax, %edi
	mov	$10, %esi		/* SIGUSR1 */
	mov	$62, %eax		/* kill */
	syscall
	call	protect
	inc	%ebx
	lea	page(%rip), %rsi
	inc	%ebx
	movl	$1, (%rsi)		/* faults, is repaired, runs again */
	inc	%ebx
	dec	%r12d
	jnz	9b

	mov	$5, %r12d
	jmp	long_block
long_done:
	cmpl	$20, handled(%rip)
	jne	wrong
	xor	%edi, %edi
	jmp	exit
wrong:	mov	$1, %edi
exit:	mov	$60, %eax
	syscall

far:	inc	%ebx
	jmp	back
	/* so far away that the jump above needs four bytes */
	.skip	200, 0x90

leaf:	inc	%ebx
	ret
leaf_pops:
	ret	$8
recursive:
	push	%r12
	shr	$2, %r12d
	jz	1f
	call	recursive
1:	pop	%r12
	ret

	/* more instructions than the emulator translates at once */
	.balign	64
long_block:
	.rept	1300
	inc	%ebx
	.endr
	dec	%r12d
	jnz	long_block
	jmp	long_done

set_handlers:
	mov	$13, %eax		/* rt_sigaction */
	mov	$10, %edi
	lea	action_user(%rip), %rsi
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
	mov	$13, %eax
	mov	$11, %edi		/* SIGSEGV */
	lea	action_fault(%rip), %rsi
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
	ret

protect:
	xor	%edx, %edx
protect_as:
	mov	$10, %eax		/* mprotect */
	lea	page(%rip), %rdi
	mov	$4096, %esi
	syscall
	ret

on_user:
	incl	handled(%rip)
	ret
on_fault:
	incl	handled(%rip)
	mov	$3, %edx
	call	protect_as
	ret
restorer:
	mov	$15, %eax		/* rt_sigreturn */
	syscall

	/* The last bytes of a page: a call through memory, a return and a branch reach over. */
	.section .crossing, "ax", @progbits
	.balign	4096
	.skip	4096 - 3, 0x90
crossing:
	call	*pointer(%rip)		/* 6 bytes */
	jmp	second
	.skip	4096 - 2 - 6 + 3 - 5, 0x90
	.org	2 * 4096 - 2
second:
	cmp	$12, %r12d		/* 4 bytes */
	push	%rax
	call	pops_crossing
	jmp	third
	.org	3 * 4096 - 2
pops_crossing:
	nop
	ret	$8			/* one byte here, two there */
	.org	4 * 4096 - 4
third:
	dec	%r12d			/* 3 bytes */
	jnz	crossing		/* 6 bytes */
	jmp	crossed

	.section .data, "aw"
	.balign	8
pointer: .quad	leaf
table:	.quad	case0, case1, case2, case3
action_user:
	.quad	on_user, 0x04000000, restorer, 0
action_fault:
	.quad	on_fault, 0x04000000, restorer, 0
handled: .long	0
	.bss
buffer:	.skip	256
	.balign	4096
page:	.skip	4096
	.section .note.GNU-stack, "", @progbits
