// SPDX-License-Identifier: Apache-2.0
// labels: an interpreter by computed goto in which several labels are only a jump to another
// label, as in Mono's. Copies of two labels must not have the same address. Prints nothing; its
// status depends on what it computed.
	.text
	.type run, @function
run:
	.cfi_startproc
	mov %esi, %eax
	lea labels(%rip), %rcx
	movzbl (%rdi), %edx
	jmp *(%rcx,%rdx,8)
.Ladd:
	add %esi, %eax
	jmp .Lnext
.Lskip:
	jmp .Lnext
.Lrest:
	jmp .Lnext
.Lpass:
	jmp .Lnext
.Ltwice:
	lea 1(%rax,%rax), %eax
	cmp $1000000, %eax
	ja .Lend
.Lnext:
	inc %rdi
	xor %eax, %esi
	movzbl (%rdi), %edx
	jmp *(%rcx,%rdx,8)
.Lend:
	ret
	.cfi_endproc
	.size run, . - run

	.globl main
	.type main, @function
main:
	.cfi_startproc
	push %rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	xor %ebx, %ebx
	xor %r8d, %r8d
1:	lea code(%rip), %rdi
	mov %ebx, %esi
	call run
	add %eax, %r8d
	inc %ebx
	cmp $3000, %ebx
	jb 1b
	mov %r8d, %eax
	shr $7, %eax
	and $0x7f, %eax
	pop %rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size main, . - main

	.section .rodata
code:
	.byte 0, 1, 4, 2, 5, 3, 0, 4, 1, 0, 6
	.section .data.rel.ro, "aw"
	.balign 8
labels:
	.quad .Ladd, .Lskip, .Lrest, .Lpass, .Ltwice, .Lnext, .Lend
	.section .note.GNU-stack, "", @progbits
