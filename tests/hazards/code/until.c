// SPDX-License-Identifier: Apache-2.0
// Sums over code, in loops that end where a pointer equals an address: from one function to another, and from _init to
// _fini, which have no unwind information.
// run: ./prog
// run: ./prog all
#include <stdint.h>
#include <stdio.h>

#include "../hazard.h"

typedef unsigned char byte;

extern void _init(void), _fini(void);

KEEP int first(int x) { return x * 3 + 1; }
KEEP int inner(int x)
{
	int sum = 0;

	for (int i = 0; i < x; i++)
		sum += i ^ x;
	return sum;
}
KEEP int last(int x) { return x * 5 - 2; }

KEEP static uint32_t until(const byte *from, const byte *to)
{
	uint32_t value = 1;

	for (; from != to; from++)
		value = value * 31 + *from;
	return value;
}

KEEP static uint32_t between(void)
{
	uint32_t value = 7;
	const byte *at = (const byte *)first;

	do
		value = value * 33 ^ *at;
	while (++at != (const byte *)last);
	return value;
}

int main(int argc, char **argv)
{
	(void)argv;
	printf("%d %d %d\n", first(argc), inner(argc + 3), last(argc));
	if (argc > 1)
		printf("%x\n", until((const byte *)_init, (const byte *)_fini));
	else if ((const byte *)first < (const byte *)last)
		printf("%x %x\n", until((const byte *)first, (const byte *)last), between());
	return 0;
}
