// SPDX-License-Identifier: Apache-2.0
/*
 * Distances of labels that the program computes, and keeps in two bytes: those of copies may be larger. A label
 * passes through the frame.
 */
#include <stdio.h>
#include <stdlib.h>
static short kept[5];
static volatile int first;
__attribute__((noinline)) static long run(const unsigned char *pc, long n)
{
	static void *const table[] = { &&a0, &&a1, &&a2, &&a3, &&a4 };
	const char *volatile one;
	long x = n, y = 1;

	if (!kept[4])
		for (int i = 0; i < 5; i++) {
			one = table[i];
			kept[i] = (short)(one - (const char *)table[first]);
		}
#define NEXT goto *table[*pc]
	NEXT;
a0: x += y; pc++; NEXT;
a1: y ^= x >> 3; pc++; NEXT;
a2: if (x & 8) { pc++; NEXT; } pc += 2; NEXT;
a3: x = x * 5 + 1; pc++; NEXT;
a4: return x ^ y;
}
int main(int argc, char **argv)
{
	static const unsigned char code[] = { 0, 1, 2, 3, 0, 2, 1, 3, 0, 4 };
	long sum = 0, n = argc > 1 ? atol(argv[1]) : 5000000;

	for (long i = 0; i < n; i++)
		sum += run(code, i);
	for (int i = 0; i < 5; i++)
		sum = sum * 3 + kept[i];
	printf("%ld\n", sum);
	return 0;
}
