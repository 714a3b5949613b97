// SPDX-License-Identifier: Apache-2.0
/* A program with a hot function and a switch. With two arguments it waits for a line between two results. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) int pick(int x)
{
	switch (x & 7) {
	case 0: return x * 3;
	case 1: return x - 7;
	case 2: return x / 5;
	case 3: return x ^ 0x55;
	case 4: return x % 9;
	default: return ~x;
	}
}
__attribute__((noinline)) int hot(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += i % 7 == 3 ? pick(i + 1) : pick(i);
	return sum;
}
int main(int argc, char **argv)
{
	if (argc > 2) { /* works until it reads a line, and then once more */
		printf("%d\n", hot(atoi(argv[1])));
		fflush(stdout);
		getchar();
	}
	printf("%d\n", hot(argc > 1 ? atoi(argv[1]) : 1000));
	return 0;
}
