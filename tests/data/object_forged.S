/* SPDX-License-Identifier: Apache-2.0 */
/* For test_object_forged.c: each kind of reference that a forged object could bend. */
	.text
	.type twin, @function
twin:
	.cfi_startproc
	ret
	.cfi_endproc
	.size twin, . - twin

	.type callee, @function
callee:
	.cfi_startproc
	mov	$1, %eax
	ret
	.cfi_endproc
	.size callee, . - callee

	.globl branches
	.type branches, @function
branches:
	.cfi_startproc
	cmp	$3, %edi
	je	1f
	call	callee
	call	other
	jmp	2f
1:	call	another
2:	ret
	.cfi_endproc
	.size branches, . - branches

	.fill	8, 1, 0xcc
	.globl slide
	.type slide, @function
slide:
	.cfi_startproc
#ifdef SLIDE
	.fill	5000, 1, 0x90
#endif
#ifdef BREAKPOINT
	int3
	.byte	0xf1
#endif
	mov	$0x55, %eax
	ret
	.cfi_endproc
	.size slide, . - slide

#ifdef READS
	.globl reads
	.type reads, @function
reads:
	.cfi_startproc
	mov	constant(%rip), %rax
	ret
	.cfi_endproc
	.size reads, . - reads
constant:
	.byte	0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90
#endif

	.globl catches
	.type catches, @function
catches:
	.cfi_startproc
	.cfi_personality 0x1b, __gxx_personality_v0
	.cfi_lsda 0x1b, table
	push	%rbx
	.cfi_def_cfa_offset 16
3:	call	other
4:	pop	%rbx
	.cfi_remember_state
	.cfi_def_cfa_offset 8
	ret
	.cfi_restore_state
5:	call	another
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size catches, . - catches

	/* Its table is of no usual form, so this function keeps all distances. */
	.type whole, @function
whole:
	.cfi_startproc
	.cfi_personality 0x1b, __gcc_personality_v0
	.cfi_lsda 0x1b, whole_table
	push	%rbx
	.cfi_def_cfa_offset 16
6:	call	other
7:	pop	%rbx
	.cfi_remember_state
	.cfi_def_cfa_offset 8
	ret
	.cfi_restore_state
8:	mov	$0x66, %eax
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size whole, . - whole

	.globl calls
	.type calls, @function
calls:
	.cfi_startproc
	jmp	whole
	.cfi_endproc
	.size calls, . - calls

#ifdef LOOPS
	.globl loops
	.type loops, @function
loops:
	.cfi_startproc
	.rept	4000
	.byte	0x0f, 0x84	/* je with a distance of four bytes */
	.long	9f - . - 4
	.endr
9:	.rept	4000
	inc	%eax
	.endr
	jmp	9b
	.cfi_endproc
	.size loops, . - loops
#endif

	.section .gcc_except_table, "a", @progbits
table:	.byte	0xff, 0xff, 1, 4
	.byte	3b - catches, 4b - 3b, 5b - catches, 0
whole_table:
	.byte	0xff, 0xff, 1, 4
	.byte	6b - whole, 7b - 6b, 8b - whole, 0

	.data
	.balign	8
	.quad	twin, whole
	.section .init_array, "aw", @init_array
	.balign	8
	.quad	branches
	.section .note.GNU-stack, "", @progbits
