// SPDX-License-Identifier: Apache-2.0
// Functions that change their return address in C, by the address of their frame, and in assembly behind pushes, or in the
// middle of an FDE: they return behind a jump of two bytes that follows the call. Control reaches the code behind the jump by branches, too.
// flags: -fno-omit-frame-pointer
// levels: -O0 -O1 -O2
// stays: counts_c counts_asm counts_pointer counts_middle counts_stack
// moves: main
#include <stdio.h>

#include "../hazard.h"

NOINLINE __attribute__((used)) void skips_in_c(long n)
{
	volatile unsigned long *frame = __builtin_frame_address(0);

	if (n & 1)
		frame[1] += 2;
}

/* The same by a pointer that is kept. */
NOINLINE __attribute__((used)) void skips_by_pointer(long n)
{
	unsigned long *volatile frame = __builtin_frame_address(0);

	if (n & 1)
		*OPAQUE(frame + 1) += 2;
}

long counts_c(long n), counts_asm(long n), counts_pointer(long n), counts_middle(long n);
long counts_stack(long n);

/* The sum of 11 for each odd number, and of 1 for each even one, up to n; 4 counts as an odd one. */
#define COUNTS(name, callee)                                                                       \
	__asm__(".text\n"                                                                          \
		".globl " name "\n"                                                                \
		".type " name ", @function\n" name ":\n"                                           \
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
		"call " callee "\n"                                                                \
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
		".size " name ", . - " name "\n")

COUNTS("counts_c", "skips_in_c");
COUNTS("counts_pointer", "skips_by_pointer");
COUNTS("counts_asm", "skips_in_asm");
COUNTS("counts_middle", "skips_in_middle");
COUNTS("counts_stack", "skips_by_stack");

__asm__(".text\n"
	".type skips_in_asm, @function\n"
	"skips_in_asm:\n"
	".cfi_startproc\n"
	"pushq %rbx\n"
	".cfi_adjust_cfa_offset 8\n"
	".cfi_offset rbx, -16\n"
	"movq %rdi, %rbx\n"
	"andl $1, %ebx\n"
	"addq %rbx, 8(%rsp)\n"
	"addq %rbx, 8(%rsp)\n"
	"popq %rbx\n"
	".cfi_adjust_cfa_offset -8\n"
	"ret\n"
	".cfi_endproc\n"
	".size skips_in_asm, . - skips_in_asm\n");

/* The same code behind other code that has the same unwind information. */
__asm__(".text\n"
	".type other_entry, @function\n"
	"other_entry:\n"
	".cfi_startproc\n"
	"movl $1, %eax\n"
	"ret\n"
	"skips_in_middle:\n"
	"movq %rdi, %rax\n"
	"andl $1, %eax\n"
	"addq %rax, (%rsp)\n"
	"addq %rax, (%rsp)\n"
	"ret\n"
	".cfi_endproc\n"
	".size other_entry, . - other_entry\n"
	".type skips_by_stack, @function\n"
	"skips_by_stack:\n"
	".cfi_startproc\n"
	"movq %rsp, %rax\n"
	"andl $1, %edi\n"
	"addq %rdi, (%rax)\n"
	"addq %rdi, (%rax)\n"
	"ret\n"
	".cfi_endproc\n"
	".size skips_by_stack, . - skips_by_stack\n");

int main(int argc, char **argv)
{
	(void)argv;
	for (int i = 0; i < 7; i++)
		printf("%ld %ld %ld %ld %ld\n", counts_c(i + argc), counts_asm(i + argc),
		       counts_pointer(i + argc), counts_middle(i + argc),
		       counts_stack(i + argc));
	return 0;
}
