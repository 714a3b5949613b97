// SPDX-License-Identifier: Apache-2.0
// A library calls a function of its own, which changes its return address, as other files could replace it: through a stub
// of the procedure linkage table, and through a slot that the loader fills in. The function skips a jump of two bytes.
// link: -lreturns_stub
// modes: pie
// levels: -O2
// library: libreturns_stub.so -DLIBRARY
#include <stdio.h>

#include "../hazard.h"

long by_stub(long n), by_slot(long n), by_jump(long n);

#ifdef LIBRARY

/* The sum of 11 for each odd number, and of 1 for each even one, up to n; 4 counts as an odd one. */
#define CALLER(name, call)                                                                         \
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
		"1: movq %rbx, %rdi\n" call "\n"                                                   \
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

CALLER(by_stub, "call skips_one@PLT");
CALLER(by_slot, "call *skips_two@GOTPCREL(%rip)");
CALLER(by_jump, "call jumps");

__asm__(".text\n"
	".type jumps, @function\n"
	"jumps: jmp *skips_two@GOTPCREL(%rip)\n"
	".size jumps, . - jumps\n"
	".globl skips_one, skips_two\n"
	".type skips_one, @function\n"
	".type skips_two, @function\n"
	"skips_two:\n"
	"skips_one:\n"
	".cfi_startproc\n"
	"movl %edi, %eax\n"
	"andl $1, %eax\n"
	"addq %rax, (%rsp)\n"
	"addq %rax, (%rsp)\n"
	"ret\n"
	".cfi_endproc\n"
	".size skips_one, . - skips_one\n"
	".size skips_two, . - skips_two\n");

#else

int main(int argc, char **argv)
{
	(void)argv;
	for (int i = 0; i < 7; i++)
		printf("%ld %ld %ld\n", by_stub(i + argc), by_slot(i + argc), by_jump(i + argc));
	return 0;
}

#endif
