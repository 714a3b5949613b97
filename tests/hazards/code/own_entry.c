// SPDX-License-Identifier: Apache-2.0
// Functions whose first instruction takes their own address, and add distances from it: code of the large model finds
// the global offset table so.
#include <stdio.h>

#include "../hazard.h"

__asm__(".text\n"
	".macro reader name, data\n"
	".p2align 4\n"
	".type \\name, @function\n"
	"\\name:\n"
	".cfi_startproc\n"
	"	leaq \\name(%rip), %rax\n"
	"	movabsq $_GLOBAL_OFFSET_TABLE_ - \\name, %rcx\n"
	"	addq %rax, %rcx\n"
	"	movabsq $\\data@GOTOFF, %rax\n"
	"	movq (%rcx,%rax,1), %rsi\n"
	"	movabsq $sum@GOTOFF, %rdx\n"
	"	jmp *(%rcx,%rdx,1)\n"
	".cfi_endproc\n"
	".size \\name, . - \\name\n"
	".endm\n"
	"reader read_odd, odd\n"
	"reader read_even, even\n"
	".data\n"
	".p2align 3\n"
	"odd:	.quad 3\n"
	"even:	.quad 4\n"
	"sum:	.quad own_entry_sum\n"
	"readers: .quad read_odd, read_even\n"
	".text\n");

extern int (*readers[2])(int) __attribute__((visibility("hidden")));
int own_entry_sum(int a, long b) __attribute__((visibility("hidden")));

KEEP int own_entry_sum(int a, long b)
{
	return a * 3 + (int)b;
}

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 400; i++)
		sum = sum * 7 + readers[i & 1](i % 5 == 4 ? -1 : i % 4);
	printf("%ld\n", sum);
	return 0;
}
