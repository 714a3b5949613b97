// SPDX-License-Identifier: Apache-2.0
/*
 * marker_flags - increments of markers in front of instructions that replace flags, or perhaps do
 * not. Functions named goes_* do not use a flag of the increment, those named stays_* may use one. A
 * marker in a cold part lies in front of the code of other functions.
 */
#include <stdio.h>

#include "editor/marker/plugin/morph_marker.h"

#define FUNCTION(name, insns)                                                                      \
	__asm__(".section .morph.totals, \"aw\"\n"                                                 \
		".balign 64\n"                                                                     \
		".type __morph_marker_" #name ", @object\n"                                        \
		".size __morph_marker_" #name ", 8\n"                                              \
		"__morph_marker_" #name ": .quad 0\n"                                              \
		".text\n"                                                                          \
		".type " #name ", @function\n" #name ":\n"                                         \
		".cfi_startproc\n"                                                                 \
		"addq $1, __morph_marker_" #name "(%rip)\n" insns "\n"                             \
		"movzbl %al, %eax\n"                                                               \
		"ret\n"                                                                            \
		".cfi_endproc\n"                                                                   \
		".size " #name ", . - " #name "\n");                                               \
	int name(int n, int by, int none, int shift, double x, double y)

FUNCTION(goes_ucomisd, "ucomisd %xmm1, %xmm0\n setbe %al");
FUNCTION(goes_comiss, "comiss %xmm1, %xmm0\n seto %al");
FUNCTION(goes_bt, "bt %esi, %edi\n setc %al");
FUNCTION(stays_bt, "bt %esi, %edi\n setz %al");
FUNCTION(stays_btr, "btr $3, %edi\n sets %al");
FUNCTION(goes_bsf, "bsf %edi, %eax\n setz %al");
FUNCTION(stays_bsf, "bsf %edi, %eax\n setc %al");
FUNCTION(goes_tzcnt, "tzcnt %edi, %eax\n setz %al");
FUNCTION(stays_tzcnt, "tzcnt %edi, %eax\n setc %al");
FUNCTION(goes_shl, "shl $3, %edi\n setz %al");
FUNCTION(goes_shr_1, "shr %rdi\n setc %al");
FUNCTION(goes_shr_byte, "shr $4, %dil\n setz %al");
FUNCTION(stays_shl_overflow, "shl $3, %edi\n seto %al");
FUNCTION(stays_shl_0, "shl $32, %edi\n setz %al");
FUNCTION(stays_shl_cl, "shl %cl, %edi\n setz %al");
FUNCTION(stays_shl_byte, "shl $9, %dil\n setc %al");

static int (*const all[])(int, int, int, int, double, double) = {
	goes_ucomisd,	    goes_comiss, goes_bt,      stays_bt,       stays_btr,  goes_bsf,
	stays_bsf,	    goes_tzcnt,	 stays_tzcnt,  goes_shl,       goes_shr_1, goes_shr_byte,
	stays_shl_overflow, stays_shl_0, stays_shl_cl, stays_shl_byte,
};

/* A function whose cold part lies apart, as compilers place it. */
__asm__(".section .morph.totals, \"aw\"\n"
	".balign 64\n"
	".type __morph_marker_cold, @object\n"
	".size __morph_marker_cold, 8\n"
	"__morph_marker_cold: .quad 0\n"
	".section .text.unlikely, \"ax\"\n"
	".type parted.cold, @function\n"
	"parted.cold:\n"
	".cfi_startproc\n"
	"addq $1, __morph_marker_cold(%rip)\n"
	"neg %edi\n"
	"jmp .Lpositive\n"
	".cfi_endproc\n"
	".size parted.cold, . - parted.cold\n"
	".text\n"
	".type parted, @function\n"
	"parted:\n"
	".cfi_startproc\n"
	"test %edi, %edi\n"
	"js parted.cold\n"
	".Lpositive:\n"
	"mov %edi, %eax\n"
	"and $3, %eax\n"
	"ret\n"
	".cfi_endproc\n"
	".size parted, . - parted\n");
int parted(int n);

int main(int argc, char **argv)
{
	int sum = 0;

	(void)argv;
	for (int i = 1; i < 40 * argc; i++) {
		MORPH_MARKER(main);
		for (unsigned int k = 0; k < sizeof(all) / sizeof(all[0]); k++)
			sum += all[k](i, 3, 0, i & 1, i, 20);
		sum += parted(i % 2 ? i : -i);
	}
	printf("%d\n", sum);
	return 0;
}
