// SPDX-License-Identifier: Apache-2.0
// Each function would break if one of its blocks were moved or overwritten with five bytes. Most
// would also break if moved as a whole.
	.macro	func name
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	.endm
	.macro	done name
	.cfi_endproc
	.size	\name, . - \name
	.endm
	.text

// Slots of eight bytes; the jump's target is computed.
	func	slots_of_eight
	leaq	.Lslots(%rip), %rax
	movslq	%edi, %rdi
	leaq	(%rax,%rdi,8), %rax
	jmp	*%rax
	.p2align 3
.Lslots:
	movl	$11, %eax
	ret
	.p2align 3
	movl	$22, %eax
	ret
	.p2align 3
	movl	$33, %eax
	ret
	.p2align 3
	movl	$44, %eax
	ret
	done	slots_of_eight

// The same slots without the jump: another function jumps there. Only the first has a symbol.
	func	outside_slots
	movslq	%esi, %rsi
	leaq	(%rdi,%rsi,8), %rax
	jmp	*%rax
	done	outside_slots
	.p2align 4
	func	first_slot
	movl	$5, %eax
	ret
	.p2align 3
	movl	$6, %eax
	ret
	.p2align 3
	movl	$7, %eax
	ret
	.p2align 3
	movl	$8, %eax
	ret
	done	first_slot

// Data after a call: the callee reads it by its return address, and returns behind it.
	func	inline_data
	call	read_inline
	.long	0x00b801eb	// decodes: jmp .+3; mov $imm, %eax
	.byte	0x90, 0x90, 0x90
	addl	%edi, %eax
	ret
	done	inline_data
	func	read_inline
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	movl	(%rcx), %eax
	addq	$7, %rcx
	jmp	*%rcx
	done	read_inline

// The callee skips the instruction after the call.
	func	skips_over
	call	skip_two
	jmp	1f		// two bytes, never executed
	leal	3(%rdi), %eax
	ret
1:	movl	$-1, %eax
	ret
	done	skips_over
	func	skip_two
	addq	$2, (%rsp)
	ret
	done	skip_two

	func	lock_or_not
	movl	$7, -8(%rsp)
	cmpl	$0, %edi
	je	1f
	.byte	0xf0		// lock
1:	addl	$3, -8(%rsp)
	movl	-8(%rsp), %eax
	ret
	done	lock_or_not

// A difference of labels, loaded as an immediate, selects the entry.
	func	picks_entry
	movl	$.Lb - .La, %eax
	cmpl	$1, %edi
	je	1f
	movl	$.Lc - .La, %eax
	ja	1f
	xorl	%eax, %eax
1:	leaq	.La(%rip), %rdx
	addq	%rdx, %rax
	jmp	*%rax
.La:	movl	$1, %eax
	ret
.Lb:	movl	$2, %eax
	ret
.Lc:	movl	$3, %eax
	ret
	done	picks_entry

// A table of two-byte offsets in the text.
	func	table_of_offsets
	leaq	.Loffsets(%rip), %rdx
	movslq	%edi, %rdi
	movzwl	(%rdx,%rdi,2), %eax
	addq	%rdx, %rax
	jmp	*%rax
.Loffsets:
	.short	.L0 - .Loffsets, .L1 - .Loffsets, .L2 - .Loffsets, .L3 - .Loffsets
.L0:	movl	$100, %eax
	ret
.L1:	movl	$200, %eax
	ret
.L2:	movl	$300, %eax
	ret
.L3:	movl	$400, %eax
	ret
	done	table_of_offsets

// A jump made of push and return.
	func	pushes_and_returns
	leaq	.Lodd(%rip), %rax
	leaq	.Leven(%rip), %rdx
	testl	%edi, %edi
	cmovzq	%rdx, %rax
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	ret
	.cfi_adjust_cfa_offset -8
.Lodd:	movl	$9, %eax
	ret
.Leven:	movl	$10, %eax
	ret
	done	pushes_and_returns

// Two instruction sequences share bytes.
	func	overlapping
	xorl	%eax, %eax
	testl	%edi, %edi
	jne	1f + 1
1:	movl	$0x90c301b0, %eax	// from its second byte on: mov $1, %al; ret
	ret
	done	overlapping

	func	filled
	leal	1(%rdi), %eax
	jmp	1f
	.fill	9, 1, 0x0f
1:	ret
	done	filled

	func	padded_with_org
	testl	$1, %edi
	jz	1f
	leal	2(%rdi), %eax
	ret
	.org	padded_with_org + 64, 0xcc
1:	leal	4(%rdi), %eax
	ret
	done	padded_with_org

// Branches with prefixes.
	func	prefixes
	movl	%edi, %eax
	testl	$2, %edi
	.byte	0x2e		// an old branch hint: not taken
	je	1f
	addl	$5, %eax
	.byte	0xf2		// bnd
	jmp	2f
1:	.byte	0x3e
	jne	2f
	addl	$6, %eax
2:	rep ret
	done	prefixes

	func	notracks
	leaq	.Lnotrack_table(%rip), %rdx
	movslq	%edi, %rdi
	movslq	(%rdx,%rdi,4), %rax
	addq	%rdx, %rax
	notrack jmp *%rax
.Ln0:	movl	$1000, %eax
	ret
.Ln1:	movl	$2000, %eax
	ret
.Ln2:	movl	$3000, %eax
	ret
.Ln3:	movl	$4000, %eax
	ret
	done	notracks
	.section .rodata
	.p2align 2
.Lnotrack_table:
	.long	.Ln0 - .Lnotrack_table, .Ln1 - .Lnotrack_table
	.long	.Ln2 - .Lnotrack_table, .Ln3 - .Lnotrack_table
	.text

	func	middle_of_other
	movl	$50, %eax
	testl	$4, %edi
	jz	.Lmiddle
	ret
	done	middle_of_other
	func	has_a_middle
	xorl	%eax, %eax
	nop
.Lmiddle:
	leal	(%rax,%rdi,2), %eax
	ret
	done	has_a_middle

	func	counts_down
	movl	%edi, %ecx
	xorl	%eax, %eax
1:	leal	3(%rax,%rcx), %eax
	loop	1b
	jecxz	2f
	incl	%eax
2:	ret
	done	counts_down

// A jump back to its own entry, which a patch overwrites.
	func	back_into
	decl	%edi
	cmpl	$10, %edi
	jg	back_into
	leal	100(%rdi), %eax
	ret
	done	back_into

	func	aligned_loop
	xorl	%eax, %eax
	.p2align 4
1:	addl	$2, %eax
	decl	%edi
	.p2align 4,,10
	jnz	1b
	ret
	done	aligned_loop

	func	shared_tail_a
	leal	1(%rdi), %eax
	testl	$1, %edi
	jz	.Lshared
	ret
	done	shared_tail_a
	func	shared_tail_b
	leal	2(%rdi), %eax
	testl	$2, %edi
	jz	.Lshared
	incl	%eax
	ret
.Lshared:
	addl	$1000, %eax
	ret
	done	shared_tail_b

	.section .note.GNU-stack,"",@progbits
