/* SPDX-License-Identifier: Apache-2.0 */
/* A function behind its own cold part, whose address only a table of mixed words holds. */
	.text
	.globl main
	.type main, @function
main:
	.cfi_startproc
	sub $8, %rsp
	.cfi_def_cfa_offset 16
	mov entries + 16, %rax
	mov $3, %edi
	call *%rax
	add $8, %rsp
	.cfi_def_cfa_offset 8
	xor %eax, %eax
	ret
	.cfi_endproc
	.size main, . - main

	.type part, @function
part:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	imul $7, %edi, %edi
	jmp back
	.cfi_endproc
	.size part, . - part

	.type f, @function
f:
	.cfi_startproc
	sub $8, %rsp
	.cfi_def_cfa_offset 16
	test %edi, %edi
	js part
back:
	lea 1(%rdi), %eax
	add $8, %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size f, . - f

	.data
	.balign 8
entries:
	.quad 0x0440442000112233
	.quad 0x1122334455667788
	.quad f
	.section .note.GNU-stack,"",@progbits
