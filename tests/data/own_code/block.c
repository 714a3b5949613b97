// SPDX-License-Identifier: Apache-2.0
/*
 * block - copies all code between two labels outside of functions, and runs the copy. Nothing names the function between
 * them but a call in the block, and its bounds are no function's: a jump over its start would lead astray from the copy.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

__asm__(".text\n"
	"	.p2align 4\n"
	"	ud2\n"
	"first:	call inner\n"
	"	ret\n"
	"	.p2align 4\n"
	"	ud2\n"
	"	.globl inner\n"
	"	.type inner, @function\n"
	"inner:	.cfi_startproc\n"
	"	mov %edi, %eax\n"
	"	imul $3, %eax, %eax\n"
	"	cmp $30, %eax\n"
	"	jl 1f\n"
	"	add $5, %eax\n"
	"1:	add $1, %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size inner, . - inner\n"
	"last:	ud2\n"
	"	ud2\n"
	"	ud2\n");

extern char first[], last[];
int inner(int n);
static int (*copied)(int n);

static void take(const void *from, size_t size)
{
	void *to = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	if (to != MAP_FAILED)
		copied = (int (*)(int))memcpy(to, from, size);
}

static void (*volatile hook)(const void *from, size_t size) = take;

int main(void)
{
	hook(first, (size_t)(last - first));
	printf("%d %d\n", copied(10), inner(4));
	return 0;
}
