// SPDX-License-Identifier: Apache-2.0
/* spread ROUNDS - a command whose blocks lie far apart. */
#include <stdio.h>
#include <stdlib.h>

#include "steps.h"

/*
 * A work meter needs a place that runs some 2,000 to 50,000 times a second. On a processor that is this call, in an
 * emulator the one of mix().
 */
__attribute__((noinline)) static unsigned int run(unsigned int x, int rounds)
{
	for (; rounds > 20; rounds -= 20)
		x = mix(x, 20);
	return mix(x, rounds);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	unsigned int x = 1;

	for (; rounds > 400; rounds -= 400)
		x = run(x, 400);
	printf("%u\n", run(x, rounds));
	return 0;
}
