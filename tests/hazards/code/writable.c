// SPDX-License-Identifier: Apache-2.0
// Code in writable memory that the program changes: an operand, an instruction, and a call's
// target; the loader writes one operand. No note describes these places.
// moves: main plain
// stays: constant variable calls
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../hazard.h"

__asm__(".pushsection .patched, \"awx\", @progbits\n"
	".globl constant, variable, calls\n"
	".type constant, @function\n"
	"constant: .cfi_startproc\n"
	"	movl	$1, %eax\n"
	"	addl	%edi, %eax\n"
	"	imull	$3, %eax, %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	constant, . - constant\n"
	".type variable, @function\n"
	"variable: .cfi_startproc\n"
	"	movabsq	$number, %rax\n"
	"	movl	(%rax), %eax\n"
	"	addl	%edi, %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	variable, . - variable\n"
	".type calls, @function\n"
	"calls: .cfi_startproc\n"
	"	subq	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call	plain\n"
	"	addq	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	calls, . - calls\n"
	".popsection\n");
int constant(int), variable(int), calls(int);
int number = 5;

KEEP __attribute__((used)) int plain(int v) { return v % 5 ? v * 7 : v + 1; }

/* Return: the address @off bytes after the start of @f. */
KEEP unsigned char *inside(int (*f)(int), int off) { return (unsigned char *)(uintptr_t)f + off; }

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 40; i++) {
		int value = i * 11;

		memcpy(inside(constant, 1), &value, sizeof(value));
		*inside(constant, 5) = i & 1 ? 0x01 : 0x29; /* add, or sub */
		sum = sum * 31 + constant(i) + variable(i);
		if (i == 20) {
			int32_t far = (int32_t)(inside(constant, 0) - inside(calls, 9));

			memcpy(inside(calls, 5), &far, sizeof(far));
		}
		sum = sum * 31 + calls(i) + plain(i);
		printf("%ld\n", sum);
	}
	return 0;
}
