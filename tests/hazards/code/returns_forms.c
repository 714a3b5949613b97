// SPDX-License-Identifier: Apache-2.0
// Callees that return behind a jump of two bytes, by forms of their own: they put another address over the return
// address or beside it, compute it in rare ways, do so behind rare changes of the stack pointer, behind a call or much code, or
// where two ways meet.
// levels: -O2
// stays: by_push by_ret by_pop by_sum by_choice by_exchange by_copy by_vector by_string by_flags
// stays: by_number by_leave by_align by_merge by_long by_helper
// moves: main
#include <stdio.h>

#include "../hazard.h"

/* The sum of 11 for each odd number, and of 1 for each even one, up to n; 4 counts as an odd one. */
#define CALLER(name)                                                                               \
	long name(long n);                                                                         \
	__asm__(".text\n"                                                                          \
		".globl " #name "\n"                                                               \
		".type " #name ", @function\n" #name ":\n"                                         \
		".cfi_startproc\n"                                                                 \
		"pushq %rbx\n"                                                                     \
		".cfi_adjust_cfa_offset 8\n"                                                       \
		".cfi_offset rbx, -16\n"                                                           \
		"pushq %r12\n"                                                                     \
		".cfi_adjust_cfa_offset 8\n"                                                       \
		".cfi_offset r12, -24\n"                                                           \
		"subq $8, %rsp\n"                                                                  \
		".cfi_adjust_cfa_offset 8\n"                                                       \
		"movq %rdi, %rbx\n"                                                                \
		"xorl %r12d, %r12d\n"                                                              \
		"jmp 3f\n"                                                                         \
		"1: movq %rbx, %rdi\n"                                                             \
		"call skips_" #name "\n"                                                           \
		".byte 0xeb, 2f - 0f\n"                                                            \
		"0: addq $10, %r12\n"                                                              \
		"2: addq $1, %r12\n"                                                               \
		"decq %rbx\n"                                                                      \
		"3: cmpq $4, %rbx\n"                                                               \
		"je 0b\n"                                                                          \
		"testq %rbx, %rbx\n"                                                               \
		"jg 1b\n"                                                                          \
		"movq %r12, %rax\n"                                                                \
		"addq $8, %rsp\n"                                                                  \
		".cfi_adjust_cfa_offset -8\n"                                                      \
		"popq %r12\n"                                                                      \
		".cfi_adjust_cfa_offset -8\n"                                                      \
		"popq %rbx\n"                                                                      \
		".cfi_adjust_cfa_offset -8\n"                                                      \
		"ret\n"                                                                            \
		".cfi_endproc\n"                                                                   \
		".size " #name ", . - " #name "\n")

#define FUNCTION(name, code)                                                                       \
	__asm__(".text\n"                                                                          \
		".type " #name ", @function\n" #name ":\n"                                         \
		".cfi_startproc\n" code ".cfi_endproc\n"                                           \
		".size " #name ", . - " #name "\n")

CALLER(by_push);
FUNCTION(skips_by_push,
	 "movq (%rsp), %rdx\nandl $1, %edi\nleaq (%rdx,%rdi,2), %rdx\naddq $8, %rsp\npushq %rdx\n"
	 "ret\n");

CALLER(by_ret);
FUNCTION(skips_by_ret,
	 "movq (%rsp), %rdx\nandl $1, %edi\nleaq (%rdx,%rdi,2), %rdx\npushq %rdx\nret $8\n");

CALLER(by_pop);
FUNCTION(skips_by_pop,
	 "movq (%rsp), %rdx\nandl $1, %edi\nleaq (%rdx,%rdi,2), %rdx\npushq %rdx\npopq (%rsp)\n"
	 "ret\n");

CALLER(by_sum);
FUNCTION(skips_by_sum,
	 "andl $1, %edi\nleaq (%rdi,%rdi), %rdx\naddq (%rsp), %rdx\naddq $8, %rsp\njmp *%rdx\n");

CALLER(by_choice);
FUNCTION(skips_by_choice,
	 "movq (%rsp), %rdx\nandl $1, %edi\nje 1f\nleaq 2(%rdx), %rdx\n1: addq $8, %rsp\n"
	 "pushq %rdx\nret\n");

CALLER(by_exchange);
FUNCTION(skips_by_exchange,
	 "movq (%rsp), %rdx\nandl $1, %edi\nxchgq %rdx, %rcx\naddq %rdi, %rcx\naddq %rdi, %rcx\n"
	 "addq $8, %rsp\njmp *%rcx\n");

CALLER(by_copy);
FUNCTION(skips_by_copy,
	 "pushq (%rsp)\nandl $1, %edi\naddq %rdi, (%rsp)\naddq %rdi, (%rsp)\nret $8\n");

CALLER(by_vector);
FUNCTION(skips_by_vector,
	 "andl $1, %edi\naddl %edi, %edi\nmovq %rdi, %xmm0\nmovq (%rsp), %xmm1\n"
	 "paddq %xmm0, %xmm1\nmovq %xmm1, %rdx\naddq $8, %rsp\njmp *%rdx\n");

CALLER(by_string);
FUNCTION(skips_by_string,
	 "pushq %rbx\nmovl %edi, %eax\nandl $1, %eax\naddl %eax, %eax\naddq 8(%rsp), %rax\n"
	 "leaq (%rsp), %rdi\naddq $8, %rdi\nstosq\npopq %rbx\nret\n");

CALLER(by_flags);
FUNCTION(skips_by_flags,
	 "pushfq\nandl $1, %edi\naddq %rdi, 8(%rsp)\naddq %rdi, 8(%rsp)\npopfq\nret\n");

CALLER(by_number);
FUNCTION(skips_by_number,
	 "pushq $3\nandl $1, %edi\naddq %rdi, 8(%rsp)\naddq %rdi, 8(%rsp)\npopq %rax\nret\n");

CALLER(by_leave);
FUNCTION(skips_by_leave,
	 "pushq %rbp\nmovq %rsp, %rbp\nsubq $16, %rsp\nleave\nandl $1, %edi\naddq %rdi, (%rsp)\n"
	 "addq %rdi, (%rsp)\nret\n");

CALLER(by_align);
FUNCTION(skips_by_align,
	 "leaq 8(%rsp), %r10\nandq $-32, %rsp\nandl $1, %edi\naddq %rdi, -8(%r10)\n"
	 "addq %rdi, -8(%r10)\nleaq -8(%r10), %rsp\nret\n");

/* Adds up the distances of the jumps. */
static unsigned int distances __attribute__((used));
CALLER(by_merge);
FUNCTION(skips_by_merge,
	 "testb $1, %dil\njne 1f\nleaq distances(%rip), %rdx\n2: movzbl 1(%rdx), %eax\n"
	 "addl %eax, distances(%rip)\nret\n1: movq (%rsp), %rdx\njmp 2b\n");

CALLER(by_long);
FUNCTION(skips_by_long,
	 ".rept 80\nnop\n.endr\nandl $1, %edi\naddq %rdi, (%rsp)\naddq %rdi, (%rsp)\nret\n");

__asm__(".text\n"
	".type half_of, @function\n"
	"half_of: movl %edi, %eax\n"
	"andl $1, %eax\n"
	"addl %eax, %eax\n"
	"ret\n"
	".size half_of, . - half_of\n");

CALLER(by_helper);
FUNCTION(skips_by_helper, "pushq %rbx\ncall half_of\naddq %rax, 8(%rsp)\npopq %rbx\nret\n");

int main(int argc, char **argv)
{
	long (*const functions[])(long) = {
		by_push, by_ret, by_pop, by_sum, by_choice, by_exchange, by_copy, by_vector,
		by_string, by_flags, by_number, by_leave, by_align, by_merge, by_long, by_helper,
	};

	(void)argv;
	for (int i = 0; i < 7; i++) {
		for (unsigned int k = 0; k < sizeof(functions) / sizeof(*functions); k++)
			printf("%ld ", functions[k](i + argc));
		printf("\n");
	}
	printf("%u\n", distances);
	return 0;
}
