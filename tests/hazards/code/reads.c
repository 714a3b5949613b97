/* SPDX-License-Identifier: Apache-2.0 */
/* Functions whose bytes are read behind an address that went over the stack, another register or bswap. */
#include <stdio.h>

#include "../hazard.h"

#define VICTIM(name, n)                                                                            \
	KEEP int name(int x)                                                                       \
	{                                                                                          \
		return (x ^ n) > 5 ? x * n + 3 * OPAQUE(x) : x - n * OPAQUE(x);                    \
	}
VICTIM(pushed, 11)
VICTIM(exchanged, 13)
VICTIM(turned, 17)
VICTIM(called, 19)

#define READER(name, body)                                                                         \
	unsigned long name(void);                                                                  \
	__asm__(".pushsection .text\n.globl " #name "\n.type " #name ", @function\n" #name         \
		": .cfi_startproc\n" body "ret\n.cfi_endproc\n"                                    \
		".size " #name ", . - " #name "\n.popsection\n")

READER(by_push, "lea pushed(%rip), %rax\npush %rax\n.cfi_adjust_cfa_offset 8\nxor %eax, %eax\n"
		"push %rbx\n.cfi_adjust_cfa_offset 8\npop %rcx\n.cfi_adjust_cfa_offset -8\n"
		"pop %rdx\n.cfi_adjust_cfa_offset -8\nmov (%rdx), %rax\n");
READER(by_xchg, "lea exchanged(%rip), %rax\nxchg %rax, %rdx\nxor %eax, %eax\nmov (%rdx), %rax\n");
READER(by_bswap,
       "lea turned(%rip), %rax\nbswap %rax\nxor %ecx, %ecx\nbswap %rax\nmov (%rax), %rax\n");

int main(void)
{
	int sum = 0;

	for (int i = 0; i < 100; i++)
		sum += pushed(i) ^ exchanged(i) ^ turned(i) ^ called(i);
	printf("%d %lx %lx %lx\n", sum, by_push(), by_xchg(), by_bswap());
	return 0;
}
