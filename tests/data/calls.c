// SPDX-License-Identifier: Apache-2.0
/* calls - main calls outer() through a pointer; outer() calls left() three times as long as right(). */
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned long sink;

__attribute__((noinline)) void spin(unsigned long n)
{
	while (n--)
		sink += n ^ sink >> 3;
}

__attribute__((noinline)) void left(unsigned long n)
{
	spin(3 * n);
	sink++;
}

__attribute__((noinline)) void right(unsigned long n)
{
	spin(n);
	sink--;
}

__attribute__((noinline)) void outer(unsigned long n)
{
	left(n);
	right(n);
	sink++;
}

static void (*volatile indirect)(unsigned long) = outer;

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;

	for (unsigned long i = 0; i < 200; i++)
		indirect(n * 1000);
	return sink == 1;
}
