// SPDX-License-Identifier: Apache-2.0
/* Unwind rows with expressions. One has a constant equal to the opcode of the program counter. */
int twice(int n);
int aligned(int n);

__asm__(".text\n"
	".globl aligned\n"
	".type aligned, @function\n"
	"aligned:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset rbp, -16\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa rbp, 16\n"
	"	and $-32, %rsp\n"
	"	sub $128, %rsp\n"
	"	mov %r14, (%rsp)\n"
	/* DW_CFA_expression r14: lit8 minus const4s -32 and const4s -128 plus */
	"	.cfi_escape 0x10, 0x0e, 0x0e, 0x38, 0x1c, 0x0d, 0xe0, 0xff, 0xff, 0xff, 0x1a,"
	" 0x0d, 0x80, 0xff, 0xff, 0xff, 0x22\n"
	"	lea 1(%rdi), %r14d\n"
	"	mov %r14d, %edi\n"
	"	call twice\n"
	"	add %r14d, %eax\n"
	"	mov (%rsp), %r14\n"
	"	leave\n"
	"	.cfi_def_cfa rsp, 8\n"
	"	.cfi_restore rbp\n"
	"	.cfi_restore r14\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size aligned, .-aligned\n");

__attribute__((noinline)) int twice(int n)
{
	return 2 * n;
}

int main(int argc, char **argv)
{
	(void)argv;
	return aligned(argc) == 3 * (argc + 1) ? 0 : 1;
}
