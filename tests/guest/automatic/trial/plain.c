// SPDX-License-Identifier: Apache-2.0
/* plain ROUNDS - a small interpreter in one page: no layout makes much of a difference. */
#include <stdio.h>
#include <stdlib.h>

/* Each version of a program has another constant. */
#ifndef TRIAL_VERSION
#define TRIAL_VERSION 1
#endif

__attribute__((noinline)) static unsigned int run(const unsigned char *code, int size, int rounds)
{
	unsigned int x = 1;

	for (int i = 0, at = 0; i < rounds; i++, at = at + 1 == size ? 0 : at + 1) {
		switch (code[at]) {
		case 'a': x = x * 5 + TRIAL_VERSION; break;
		case 'b': x ^= x >> 7; break;
		case 'c': x += x << 3; break;
		case 'd': x = (x >> 2) | (x << 30); break;
		case 'e': x -= 77; break;
		default: x = ~x;
		}
	}
	return x;
}

int main(int argc, char **argv)
{
	static const unsigned char code[] = "abacabadabacabaeabacabfdab";

	printf("%u\n", run(code, sizeof(code) - 1, argc > 1 ? atoi(argv[1]) : 1000));
	return 0;
}
