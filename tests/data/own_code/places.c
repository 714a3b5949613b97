// SPDX-License-Identifier: Apache-2.0
/*
 * places - data that knows no place in code. A test of verify then writes such a place into it, in the original and the
 * output alike.
 */
#include <stdio.h>

static volatile unsigned long numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static volatile unsigned long *volatile pointers[4] = {numbers, numbers + 1, numbers + 2,
						       numbers + 3};

__attribute__((noinline)) static unsigned long plain(unsigned long n)
{
	while (n % 7)
		n = n & 1 ? n * 3 + numbers[n % 8] : n / 2;
	return n + 11;
}

/* Jumps through a table, and names no other data. */
__attribute__((noinline)) static unsigned long chooses(unsigned long n)
{
	switch (n) {
	case 0: return n + 3;
	case 1: return n ^ 77;
	case 2: return n * 7;
	case 3: return n - 11;
	case 4: return -n;
	case 5: return n | 129;
	case 6: return n / 3;
	case 7: return plain(n);
	default: return n * n;
	}
}

int main(int argc, char **argv)
{
	unsigned long sum = 0;

	(void)argv;
	for (int i = 0; i < 10; i++) {
		unsigned long n = (unsigned long)(argc + i);

		sum = sum * 31 + plain(n) + chooses(n) + *pointers[n % 4];
	}
	printf("%lu\n", sum);
	return 0;
}
