/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with a symbol and no unwind information: a leaf, one that calls, one that goes on elsewhere. */
	.text
	.globl start
	.type start, @function
start:
	.cfi_startproc
	call leaf
	call calls
	call leaves
	hlt
	.cfi_endproc
	.size start, . - start

	.type leaf, @function
leaf:
	test %edi, %edi
	je 1f
	mov $1, %eax
	ret
1:	mov $2, %eax
	ret
	.size leaf, . - leaf

	.type after, @function
after:
	.cfi_startproc
	mov $3, %eax
	ret
	.cfi_endproc
	.size after, . - after

	.type calls, @function
calls:
	call leaf
	mov $4, %eax
	ret
	.size calls, . - calls

	.type leaves, @function
leaves:
	mov $5, %edi
	jmp leaf
	.size leaves, . - leaves
	.data
	.long 1
	.section .note.GNU-stack,"",@progbits
