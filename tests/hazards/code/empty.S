// SPDX-License-Identifier: Apache-2.0
	.text
	.globl	text_here
text_here:
	.globl	no_size
	.type	no_size, @function
no_size:
	.cfi_startproc
	leal	5(%rdi), %eax
	ret
	.cfi_endproc

	.globl	no_size_2
no_size_2:
	.cfi_startproc
	leal	(%rdi,%rdi,2), %eax
	ret
	.cfi_endproc

	.globl	nothing_at_all
	.type	nothing_at_all, @function
nothing_at_all:
	.cfi_startproc
	.cfi_endproc
	.size	nothing_at_all, 0

	.globl	runs_on
	.type	runs_on, @function
runs_on:
	.cfi_startproc
	imull	$3, %edi, %edi
	.cfi_endproc
	.size	runs_on, . - runs_on
	.globl	second_entry
	.type	second_entry, @function
second_entry:
	.cfi_startproc
	leal	11(%rdi), %eax
	testl	$1, %eax
	jz	1f
	incl	%eax
1:	ret
	.cfi_endproc
	.size	second_entry, . - second_entry

	.globl	only_ret
	.type	only_ret, @function
only_ret:
	.cfi_startproc
	movl	%edi, %eax
	ret
	.cfi_endproc
	.size	only_ret, . - only_ret

// A function without unwind information, between two functions that have some.
	.globl	no_fde_between
	.type	no_fde_between, @function
no_fde_between:
	movl	%edi, %eax
	testl	$3, %edi
	jz	no_size
	jmp	second_entry
	.size	no_fde_between, . - no_fde_between

	.globl	only_trap
	.type	only_trap, @function
only_trap:
	.cfi_startproc
	ud2
	.cfi_endproc
	.size	only_trap, . - only_trap
	.globl	text_there
text_there:
	.globl	end_of_all
	.type	end_of_all, @function
end_of_all:

	.section .note.GNU-stack,"",@progbits
