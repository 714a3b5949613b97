// SPDX-License-Identifier: Apache-2.0
/*
 * leaf_cold - calls functions that have a part for cold code, apart from their main part, with unwind rows of its own:
 * it returns, goes back, jumps to another function, calls one, or ends in a call that does not return. "steps" as in
 * leaf_stack.c. The cold parts execute, too.
 */
#include <stdlib.h>

#include "steps.h"

#define LEAF __attribute__((noinline, noclone, noipa))
#define COLD __attribute__((noinline, noclone, noipa, cold))
#define RARE(x) __builtin_expect(!!(x), 0)

COLD static unsigned long rare(unsigned long a, unsigned long b)
{
	return a * 0x9e3779b1UL + (b ^ a >> 9);
}

COLD __attribute__((noreturn)) static void never(unsigned long a)
{
	printf("never: %lx\n", a);
	exit(1);
}

LEAF static unsigned long inner(unsigned long a, unsigned long b)
{
	return a * 31 + (b ^ a >> 7);
}

/* No stack in the main part. */
LEAF static unsigned long plain(unsigned long a, unsigned long b)
{
	if (RARE((a & 15) == 3))
		return rare(a, b) + rare(b, a) * 3;
	return a * 5 + b;
}

/* The cold part jumps to another function. */
LEAF static unsigned long tails(unsigned long a, unsigned long b)
{
	if (RARE((a & 7) == 5))
		return rare(b, a + 1);
	return a * 7 - b;
}

/* Saves registers; the cold part goes back into the loop. */
LEAF static unsigned long loops(unsigned long a, unsigned long b)
{
	unsigned long sum = b;

	for (unsigned int i = 0; i < 4; i++) {
		if (RARE((sum & 7) == 1))
			sum += rare(sum, a);
		sum = sum * 3 + inner(a, i);
	}
	return sum;
}

/* Variables in the stack, and two ways into the cold part. */
LEAF static unsigned long array(unsigned long a, unsigned long b)
{
	unsigned long x[6];

	for (unsigned int i = 0; i < 6; i++)
		x[i] = inner(a, b + i);
	if (RARE((x[5] & 7) == 2))
		return rare(x[1], x[4]);
	if (RARE((x[3] & 7) == 2))
		x[2] = rare(x[b & 3], x[0]);
	return x[a & 3] ^ x[2];
}

/* The last instruction of the cold part is a call that does not return. */
LEAF static unsigned long stops(unsigned long a, unsigned long b)
{
	unsigned long x = inner(a, b);

	if (RARE(nr_wrong > 1000000))
		never(x);
	return inner(x, a);
}

LEAF unsigned long work(unsigned long n)
{
	unsigned long m = n;

	for (unsigned int i = 0; i < n; i++) {
		m += plain(m, i);
		m ^= tails(m, i);
		m += loops(m, i);
		m ^= array(m, i);
		m += stops(m, i);
	}
	return m;
}

int main(int argc, char **argv)
{
	return run_steps(argc, argv, 20000);
}
