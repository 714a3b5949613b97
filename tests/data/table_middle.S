// SPDX-License-Identifier: Apache-2.0
// table_middle.S: a switch with a table of offsets, and an instruction of the same function that names
// the table's middle, as the end of a search would. Counted from there, each offset behind it seems to
// lead to another block of the function, since all blocks have 8 bytes: which of both is the table's
// start cannot be told from the table. Of the test of forged outputs.
	.text
	.globl pick
	.type pick, @function
pick:
	.cfi_startproc
	mov %edi, %edi
	cmp $7, %edi
	ja 9f
	lea table(%rip), %rax
	lea table + 16(%rip), %rcx
	movslq (%rax,%rdi,4), %rdx
	add %rax, %rdx
	mov %rcx, last(%rip)
	jmp *%rdx
	.p2align 3
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
.Lcase\n:
	lea \n(%rdi,%rdi,4), %eax
	ret
	.p2align 3, 0x90
	.endr
	// A direct way to each block, so that no block is known by the table alone.
9:	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
	cmp $(\n + 10), %edi
	je .Lcase\n
	.endr
	mov $-1, %eax
	ret
	.cfi_endproc
	.size pick, . - pick

	.globl main
	.type main, @function
main:
	.cfi_startproc
	push %rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	push %r12
	.cfi_def_cfa_offset 24
	.cfi_offset %r12, -24
	sub $8, %rsp
	.cfi_def_cfa_offset 32
	xor %ebx, %ebx
	xor %r12d, %r12d
1:	mov %ebx, %edi
	and $7, %edi
	call pick
	add %eax, %r12d
	inc %ebx
	cmp $1000, %ebx
	jb 1b
	mov %r12d, %eax
	and $0x7f, %eax
	add $8, %rsp
	.cfi_def_cfa_offset 24
	pop %r12
	.cfi_def_cfa_offset 16
	pop %rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size main, . - main

	.section .rodata, "a"
	.p2align 3
table:
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7
	.long .Lcase\n - table
	.endr
	.long -1

	.bss
	.p2align 3
last:	.quad 0
	.section .note.GNU-stack, "", @progbits
