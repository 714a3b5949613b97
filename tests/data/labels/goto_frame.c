// SPDX-License-Identifier: Apache-2.0
/*
 * Labels in an array of the frame, which is read by an index or a pointer. The program keeps their distances in
 * one byte: those of copies may be larger.
 */
#include <stdio.h>
#include <stdlib.h>
static volatile int first;
static signed char kept[5], passed[5];
#define FILL frame[0] = &&a0, frame[1] = &&a1, frame[2] = &&a2, frame[3] = &&a3, frame[4] = &&a4
#define CODE                                      \
	goto *table[*pc];                         \
a0: x += y; pc++; goto *table[*pc];               \
a1: y ^= x >> 3; pc++; goto *table[*pc];          \
a2: if (x & 8) { pc++; goto *table[*pc]; }        \
	pc += 2; goto *table[*pc];                \
a3: x = x * 5 + 1; pc++; goto *table[*pc];        \
a4: return x ^ y
__attribute__((noinline)) static long indexed(const unsigned char *pc, long n)
{
	static const void *const table[] = { &&a0, &&a1, &&a2, &&a3, &&a4 };
	const char *volatile frame[5];
	long x = n, y = 1;

	FILL;
	for (int i = 0; !kept[4] && i < 5; i++)
		kept[i] = (signed char)(frame[i + first] - frame[first]);
	CODE;
}
__attribute__((noinline)) static long pointed(const unsigned char *pc, long n)
{
	static const void *const table[] = { &&a0, &&a1, &&a2, &&a3, &&a4 };
	const char *volatile frame[5];
	const char *volatile *at = frame + first;
	long x = n, y = 1;

	FILL;
	for (signed char *to = passed; !passed[4] && to < passed + 5; to++)
		*to = (signed char)(at[to - passed] - *at);
	CODE;
}
int main(int argc, char **argv)
{
	static const unsigned char code[] = { 0, 1, 2, 3, 0, 2, 1, 3, 0, 4 };
	long sum = 0, n = argc > 1 ? atol(argv[1]) : 5000000;

	for (long i = 0; i < n; i++)
		sum += indexed(code, i) ^ pointed(code, i);
	for (int i = 0; i < 5; i++)
		sum = sum * 9 + kept[i] * 3 + passed[i];
	printf("%ld\n", sum);
	return 0;
}
