// SPDX-License-Identifier: Apache-2.0
// A program asks whether a return address lies between two functions, and never reads them.
// moves: apart main
#include <stdint.h>
#include <stdio.h>

#include "../hazard.h"

KEEP static int asked(const void *at);

KEEP void low(void)
{
	__asm__ volatile("nop");
}
KEEP int inner(int x)
{
	printf("inner %d\n", x);
	return x * 3 + asked(__builtin_return_address(0));
}
KEEP int outer(int x)
{
	return inner(x) + 2 * inner(x + 1);
}
KEEP void high(void)
{
	__asm__ volatile("nop; nop");
}

KEEP static int asked(const void *at)
{
	uintptr_t address = (uintptr_t)at;

	return (address >= (uintptr_t)low && address < (uintptr_t)high) ||
	       (address >= (uintptr_t)high && address < (uintptr_t)low);
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
