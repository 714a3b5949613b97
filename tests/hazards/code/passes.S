// SPDX-License-Identifier: Apache-2.0
// Functions that pass arithmetic flags to others, which the ABI does not allow: see passes.c.
	.macro	func name
	.globl	\name
	.type	\name, @function
\name:	.cfi_startproc
	.endm
	.macro	done name
	.cfi_endproc
	.size	\name, . - \name
	.endm
	.text
// Flags for a callee, which jumps on, twice.
	func chain_a
	cmpl $5, %edi
	jg 2f
	cmpl %esi, %edi
	je 1f
	cmpl $3, %edi
1:	call chain_b
	addl $100, %eax
	ret
2:	movl $5, %eax
	ret
	done chain_a
	func chain_b
	movl $1, %eax
	jmp chain_c
	done chain_b
	func chain_c
	movl %edi, %edx
	jmp chain_d
	done chain_c
	func chain_d
	movl %edx, %eax
	jl 1f
	ret
1:	movl $77, %eax
	ret
	done chain_d
// Flags of a function that a callee jumps to, by way of a label without unwind information.
	func gets_by_label
	call leads_to_label
	je 1f
	jl 2f
	movl $1, %eax
	ret
1:	movl $2, %eax
	ret
2:	movl $3, %eax
	ret
	done gets_by_label
	func leads_to_label
	movl %edi, %ecx
	jmp bare_label
	done leads_to_label
	.p2align 4
bare_label:
	movl %ecx, %edx
	jmp sets_by_label
	.p2align 4
	func sets_by_label
	cmpl $9, %edx
	jg 1f
	cmpl %esi, %edx
	je 2f
	cmpl $4, %edx
2:	ret
1:	cmpl $12, %edx
	ret
	done sets_by_label
// A label without unwind information reads flags of a function.
	func to_bare_reader
	jmp bare_reader
	done to_bare_reader
	.p2align 4
bare_reader:
	call sets_for_bare
	je 1f
	jl 2f
	movl $1, %eax
	ret
1:	movl $2, %eax
	ret
2:	movl $3, %eax
	ret
	.p2align 4
	func sets_for_bare
	cmpl $9, %edi
	jg 1f
	cmpl %esi, %edi
	je 2f
	cmpl $4, %edi
2:	ret
1:	cmpl $12, %edi
	ret
	done sets_for_bare
// Flags for a label.
	func to_place
	leaq	passes_places(%rip), %rax
	movl %esi, %edx
	andl $1, %edx
	movq (%rax,%rdx,8), %rax
	cmpl $5, %edi
	jg 1f
	cmpl %esi, %edi
	je 1f
	cmpl $3, %edi
1:	jmp *%rax
.Lx:	jl 2f
	movl $4, %eax
	ret
2:	movl $6, %eax
	ret
.Ly:	je 2f
	movl $14, %eax
	ret
2:	movl $16, %eax
	ret
	done to_place
	.section .data.rel.ro.local,"aw"
	.p2align 3
passes_places:	.quad .Lx, .Ly
	.text
// Flags for a function behind a pointer.
	func to_pointer
	cmpl $5, %edi
	jg 1f
	cmpl %esi, %edi
	je 1f
	cmpl $3, %edi
1:	call *%rdx
	addl $10, %eax
	ret
	done to_pointer
	func reads_by_pointer
	jl 1f
	movl $1, %eax
	ret
1:	movl $2, %eax
	ret
	done reads_by_pointer
// Flags for what a label without unwind information calls.
	func to_calling_label
	cmpl $5, %edi
	jg 1f
	cmpl %esi, %edi
	je 1f
	cmpl $3, %edi
1:	jmp calling_label
	done to_calling_label
	.p2align 4
calling_label: movl $3,%eax
	call chain_d
	ret
// A function without unwind information reads flags of a leaf.
	.type bare_function, @function
	.globl bare_function
bare_function:
	call sets_for_function
	je 1f
	jl 2f
	movl $1, %eax
	ret
1:	movl $2, %eax
	ret
2:	movl $3, %eax
	ret
	.size bare_function, . - bare_function
	func sets_for_function
	cmpl $9, %edi
	jg 1f
	cmpl %esi, %edi
	je 2f
	cmpl $4, %edi
2:	ret
1:	cmpl $12, %edi
	ret
	done sets_for_function
// Flags for the middle of another function.
	func to_middle
	cmpl $9, %edi
	jg 1f
	cmpl %esi, %edi
	je 2f
	cmpl $4, %edi
2:	jmp middle
1:	movl $12, %eax
	ret
	done to_middle
	func has_middle
	xorl %eax, %eax
	testl %esi, %esi
middle:
	movl $1, %eax
	jl 1f
	movl $2, %eax
1:	ret
	done has_middle
// Flags of two callees in one block.
	func gets_two
	call sets_first
	sete %al
	call sets_second
	sete %cl
	movzbl %al, %eax
	movzbl %cl, %ecx
	leal (%rax,%rcx,2), %eax
	ret
	done gets_two
	func sets_first
	cmpl $9, %edi
	jg 1f
	cmpl %esi, %edi
	je 2f
	cmpl $4, %edi
2:	ret
1:	cmpl $12, %edi
	ret
	done sets_first
	func sets_second
	cmpl $7, %edi
	jg 1f
	cmpl %esi, %edi
	je 2f
	cmpl $3, %edi
2:	ret
1:	cmpl $11, %edi
	ret
	done sets_second
// Flags that a callee leaves as they are.
	func gets_through
	cmpl $9, %edi
	jg 1f
	cmpl %esi, %edi
	je 2f
	cmpl $4, %edi
2:	call only_moves
	jl 3f
	ret
3:	incl %eax
	ret
1:	movl $12, %eax
	ret
	done gets_through
	func only_moves
	movl $40, %eax
	ret
	done only_moves
	.section .note.GNU-stack,"",@progbits
