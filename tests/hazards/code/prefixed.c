// SPDX-License-Identifier: Apache-2.0
// A hash of its type stands before each function whose address is taken, and is checked before calls through
// pointers, as by -fsanitize=kcfi. Copies have no such bytes, so addresses stay.
// moves: main
#include <stdint.h>
#include <stdio.h>

#include "../hazard.h"

typedef int function(int);

#define FUNCTION(name, hash, scale, limit)                                                         \
	__asm__(".text\n.balign 16, 0x90\n.fill 11, 1, 0x90\n"                                     \
		"movl $" #hash ", %eax\n"                                                          \
		".globl " #name "\n.type " #name ", @function\n" #name ":\n"                       \
		".cfi_startproc\n"                                                                 \
		"lea 3(%rdi,%rdi," #scale "), %eax\n"                                              \
		"cmp $" #limit ", %eax\n"                                                          \
		"ja 1f\n"                                                                          \
		"ret\n"                                                                            \
		"1: sub $2, %eax\n"                                                                \
		"ret\n"                                                                            \
		".cfi_endproc\n"                                                                   \
		".size " #name ", . - " #name "\n");                                               \
	extern function name

FUNCTION(first, 0x12345678, 1, 7);
FUNCTION(second, 0x12345678, 2, 9);
FUNCTION(other, 0x55555555, 4, 11);

static function *table[] = {first, second, other};
static function *const constants[] = {second, other, first};

KEEP int checked(function *f, int x)
{
	if (((const uint32_t *)f)[-1] != 0x12345678) {
		printf("bad type\n");
		return -1;
	}
	return f(x);
}

int main(int argc, char **argv)
{
	int sum = 0;

	(void)argv;
	for (int i = 0; i < 9; i++)
		sum = sum * 3 + checked(table[i % 3], i + argc) + checked(constants[i % 3], i);
	printf("%d %d\n", sum, first(argc) + second(argc) + other(argc));
	return 0;
}
