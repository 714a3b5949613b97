/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest program: it exits. */
	.globl _start
_start:
	mov $60, %eax
	xor %edi, %edi
	syscall
	.section .note.GNU-stack, "", @progbits
