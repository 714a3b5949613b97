// SPDX-License-Identifier: Apache-2.0
// A program asks whether a return address lies between two labels outside of functions, as linker scripts define them. Other
// instructions stand between a comparison and the one that reads its flags.
// stays: inner outer
// moves: apart main
#include <stdio.h>

#include "../hazard.h"

/* The order of sections in the object, and so in the file. */
__asm__(".section .text.ordered.a, \"ax\"\n"
	".globl ordered_start\n"
	"ordered_start:\n"
	"	nop\n"
	".section .text.ordered.m, \"ax\"\n"
	".section .text.ordered.z, \"ax\"\n"
	".globl ordered_stop\n"
	"ordered_stop:\n"
	"	nop\n"
	".text\n");

#define ORDERED __attribute__((section(".text.ordered.m")))

extern const char ordered_start[] __attribute__((visibility("hidden")));
extern const char ordered_stop[] __attribute__((visibility("hidden")));

KEEP static int asked(const char *at)
{
	return (at >= ordered_start) & (at < ordered_stop);
}

ORDERED KEEP int inner(int x)
{
	printf("inner %d\n", x);
	return x * 3 + asked(__builtin_return_address(0));
}

ORDERED KEEP int outer(int x)
{
	return inner(x) + 2 * inner(x + 1);
}

KEEP int apart(int x)
{
	printf("apart %d\n", x);
	return x + asked(__builtin_return_address(0));
}

int main(int argc, char **argv)
{
	(void)argv;
	printf("%d\n", outer(argc));
	printf("%d\n", apart(argc));
	return 0;
}
