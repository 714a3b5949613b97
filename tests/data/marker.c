// SPDX-License-Identifier: Apache-2.0
/* marker - loops with code markers by hand, and a variable that only has a marker's name. */
#include <stdio.h>
#include <stdlib.h>

#include "editor/marker/plugin/morph_marker.h"

static unsigned long long own __asm__("__morph_marker_own");

__attribute__((noinline)) static unsigned long collatz(unsigned long n)
{
	unsigned long steps = 0;

	while (n != 1) {
		MORPH_MARKER(collatz);
		n = n & 1 ? 3 * n + 1 : n / 2;
		steps++;
	}
	return steps;
}

__attribute__((noinline)) static unsigned int hash(const char *text)
{
	unsigned int h = 5381;

	for (; *text; text++) {
		MORPH_MARKER(hash);
		h = h * 33 ^ (unsigned char)*text;
		if (h % 7 == 3)
			own++;
	}
	return h;
}

int main(int argc, char **argv)
{
	unsigned long sum = 0;

	for (int i = 1; i < 300 * argc; i++) {
		MORPH_MARKER(main);
		sum += collatz((unsigned long)i);
	}
	printf("%lu %u\n", sum, hash(argc > 1 ? argv[1] : "a text that is hashed"));
	/* Its name is a marker's, but the program reads it, so it must keep its value. */
	printf("%llu\n", own);
	return 0;
}
