/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behind stays there are five bytes outside of all functions that read as a call of a place between
 * two instructions of moves. Nothing leads to them, until a test puts a jump in the place of the
 * first instruction of stays.
 */
	.text
	.globl start
	.type start, @function
start:
	.cfi_startproc
	call moves
	call stays
	hlt
	.cfi_endproc
	.size start, . - start

	.type moves, @function
moves:
	.cfi_startproc
	mov $1, %eax
	test %edi, %edi
	je 1f
	mov $2, %eax
	ret
1:	mov $3, %eax
	ret
	.cfi_endproc
	.size moves, . - moves

	.type stays, @function
stays:
	.cfi_startproc
	.byte 0x0f, 0x1f, 0x44, 0, 0 /* nopl */
	syscall
	ret
	.cfi_endproc
	.size stays, . - stays
	.byte 0xe8
	.long moves + 2 - . - 4
	.section .note.GNU-stack,"",@progbits
