// SPDX-License-Identifier: Apache-2.0
// Callees that change their return address late: behind another return, by a tail jump, after a loop, by a copy of the stack
// pointer behind a push; one jumps behind it, and one reads what stands there. They skip a jump of two bytes.
// levels: -O2
// stays: behind_return through_tail after_loop by_copy jumps_on reads_on
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

#define SKIPS "movl %edi, %eax\nandl $1, %eax\naddq %rax, (%rsp)\naddq %rax, (%rsp)\nret\n"

CALLER(behind_return);
FUNCTION(skips_behind_return, "testb $1, %dil\njne 1f\nret\n1: addq $2, (%rsp)\nret\n");

CALLER(through_tail);
FUNCTION(skips, SKIPS);
FUNCTION(skips_through_tail, "movl $5, %ecx\njmp skips\n");

CALLER(after_loop);
FUNCTION(skips_after_loop, "movl $5, %ecx\n1: .rept 16\nnop\n.endr\ndecl %ecx\njne 1b\n" SKIPS);

CALLER(by_copy);
FUNCTION(skips_by_copy, "pushq %rbx\n.cfi_adjust_cfa_offset 8\nmovq %rsp, %rdx\nandl $1, %edi\n"
			"addq %rdi, 8(%rdx)\naddq %rdi, 8(%rdx)\n"
			"popq %rbx\n.cfi_adjust_cfa_offset -8\nret\n");

CALLER(jumps_on);
FUNCTION(skips_jumps_on, "movq (%rsp), %rdx\nandl $1, %edi\nleaq (%rdx,%rdi,2), %rdx\n"
			 "addq $8, %rsp\n.cfi_adjust_cfa_offset -8\njmp *%rdx\n");

/* Adds up the distances of the jumps. */
static unsigned int distances __attribute__((used));
CALLER(reads_on);
FUNCTION(skips_reads_on, "movq (%rsp), %rdx\nmovzbl 1(%rdx), %eax\naddl %eax, distances(%rip)\nret\n");

int main(int argc, char **argv)
{
	(void)argv;
	for (int i = 0; i < 7; i++)
		printf("%ld %ld %ld %ld %ld %ld\n", behind_return(i + argc),
		       through_tail(i + argc), after_loop(i + argc), by_copy(i + argc),
		       jumps_on(i + argc), reads_on(i + argc));
	printf("%u\n", distances);
	return 0;
}
