// SPDX-License-Identifier: Apache-2.0
// Self tests sum up all code from one function to another, and a program asks whether a return address lies between
// two functions. Their own order is no matter: the sum goes from the lower address to the higher one.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../hazard.h"

typedef unsigned char byte;

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

KEEP static uint32_t sum(const byte *from, const byte *to)
{
	uint32_t value = 1;

	for (; from < to; from++)
		value = value * 31 + *from;
	return value;
}

KEEP static uint32_t sum_of(const byte *from, size_t size)
{
	uint32_t value = 7;

	while (size--)
		value = value * 17 + *from++;
	return value;
}

KEEP static uint32_t by_ends(void)
{
	return (const byte *)low < (const byte *)high ? sum((const byte *)low, (const byte *)high)
						      : sum((const byte *)high, (const byte *)low);
}

KEEP static uint32_t by_size(void)
{
	if ((const byte *)low < (const byte *)high)
		return sum_of((const byte *)low, (size_t)((const byte *)high - (const byte *)low));
	return sum_of((const byte *)high, (size_t)((const byte *)low - (const byte *)high));
}

KEEP static int asked(const void *at)
{
	uintptr_t address = (uintptr_t)at;

	return address >= (uintptr_t)low && address < (uintptr_t)high;
}

KEEP int apart(int x)
{
	printf("apart %d\n", x);
	return x + 1;
}

int main(int argc, char **argv)
{
	int value = outer(argc) + apart(argc);

	(void)argv;
	printf("%d %d %d\n", value, asked((const void *)outer), asked((const void *)apart));
	printf("%x %x\n", by_ends(), by_size());
	return 0;
}
