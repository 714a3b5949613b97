/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop of four blocks: every fourth round takes B, the others C. Built with NUMBERED, it keeps
 * the path's number in r11, in code added between the blocks, like an output of morph-optimize. The
 * argument of main is the number of rounds, in millions.
 */
	.globl main
	.type main, @function
	.text
main:
	push	%rbx
	push	%r12
	sub	$8, %rsp
	mov	8(%rsi), %rdi
	call	atoi
	movslq	%eax, %r12
	imul	$1000000, %r12, %r12
	xor	%ebx, %ebx
	mov	$3, %eax
	call	walk
	add	$8, %rsp
	pop	%r12
	pop	%rbx
	xor	%eax, %eax
	ret
	.size main, .-main

	.macro work
	.rept 12
	imul	%rax, %rax
	.endr
	.endm

	.globl walk
	.type walk, @function
	.p2align 4
walk:
blk_a:	inc	%rbx
	work
	test	$3, %bl
#ifdef NUMBERED
	jnz	to_c
to_b:	mov	$0, %r11d
#else
	jnz	blk_c
to_b:
#endif
blk_b:	work
#ifdef NUMBERED
to_d:	lea	1(%r11), %r11
#else
to_d:
#endif
	jmp	blk_d
#ifdef NUMBERED
to_c:	mov	$0, %r11d
#else
to_c:
#endif
blk_c:	work
blk_d:	work
#ifdef NUMBERED
	lea	100(%r11), %r11
#endif
blk_e:	work
	cmp	%r12, %rbx
	jb	blk_a
blk_f:	ret
	.size walk, .-walk

#ifdef NOTE
	.section .note.morph, "ax", @note
	.p2align 2
	.incbin NOTE
	.section .morph.paths, "", @progbits
	.incbin PATHS
#endif
	.section .note.GNU-stack, "", @progbits
