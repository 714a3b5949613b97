// SPDX-License-Identifier: Apache-2.0
/*
 * bias-density - a program whose calls are unequally spaced in time (Lee, Adaptive correction of sampling
 * bias in dynamic call graphs, 2015, figure 1). Each turn of a loop draws 2, 10 or 100 calls of work(),
 * and takes about the same time: the fewer the calls, the more work each of them does. So samples of
 * time see all three callers equally often. Prints the turns of each kind. For
 * tests/e2e/bench/bias.sh.
 */
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))
#define TURN	 6000 /* multiplications in a turn */

static volatile unsigned int sink;

static NOINLINE unsigned int work(unsigned int nr)
{
	unsigned int x = nr;

	for (unsigned int i = 0; i < nr; i++)
		x = x * 1664525u + sink;
	return x;
}

static NOINLINE unsigned int call_2(void)
{
	unsigned int x = 0;

	for (int i = 0; i < 2; i++)
		x += work(TURN / 2);
	return x;
}

static NOINLINE unsigned int call_10(void)
{
	unsigned int x = 0;

	for (int i = 0; i < 10; i++)
		x += work(TURN / 10);
	return x;
}

static NOINLINE unsigned int call_100(void)
{
	unsigned int x = 0;

	for (int i = 0; i < 100; i++)
		x += work(TURN / 100);
	return x;
}

int main(int argc, char **argv)
{
	long turns = argc > 1 ? atol(argv[1]) : 100000, drawn[3] = {0};
	unsigned long long seed = 1;
	unsigned int x = 0;

	for (long i = 0; i < turns; i++) {
		unsigned int kind;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		kind = (unsigned int)((seed >> 33) % 3);
		drawn[kind]++;
		x += kind == 0 ? call_2() : kind == 1 ? call_10() : call_100();
	}
	printf("%ld %ld %ld\n", 2 * drawn[0], 10 * drawn[1], 100 * drawn[2]);
	return x == 12345;
}
