// SPDX-License-Identifier: Apache-2.0
/*
 * copied - a runtime that copies its built-in functions to other memory and calls them
 * there, as V8 does. They are leaves without unwind information. A label without type and size
 * names the beginning of the area.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

__asm__(".text\n"
	"area:\n"
	".balign 64, 0xcc\n"
	".type low, @function\n"
	"low:\n"
	"mov %edi, %eax\n"
	"1: cmp $10, %eax\n"
	"jb 2f\n"
	"sub $7, %eax\n"
	"jmp 1b\n"
	"2: ret\n"
	".size low, . - low\n"
	".balign 64, 0xcc\n"
	".type high, @function\n"
	"high:\n"
	"mov %edi, %eax\n"
	"test $1, %al\n"
	"je 1f\n"
	"lea 1(%rax,%rax,2), %eax\n"
	"ret\n"
	"1: shr $1, %eax\n"
	"ret\n"
	".size high, . - high\n"
	".balign 64, 0xcc\n"
	".globl area_end\n"
	".set area_end, .\n");
extern const char area[], low[], high[], area_end[];

typedef unsigned int function(unsigned int);

int main(void)
{
	unsigned int sum = 0;
	size_t size = (size_t)(area_end - area);
	function *first, *second;
	char *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return 1;
	memcpy(copy, area, size);
	if (mprotect(copy, size, PROT_READ | PROT_EXEC))
		return 1;
	first = (function *)(copy + (low - area));
	second = (function *)(copy + (high - area));
	for (unsigned int i = 0; i < 3000; i++)
		sum += first(i % 100) ^ second(i);
	printf("%u\n", sum);
	return 0;
}
