// SPDX-License-Identifier: Apache-2.0
/* An array of labels in the frame, which clang fills by memcpy(). The program keeps their distances in one byte. */
#include <stdio.h>
#include <stdlib.h>
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18)
#define LABEL(n) &&a##n,
#define CODE(n) a##n: x += y * (n + 3); y ^= x >> (n % 7 + 1); pc++; goto *table[*pc];
static volatile int first;
static signed char kept[20];
__attribute__((noinline)) static long run(const unsigned char *pc, long n)
{
	static const void *const table[] = { EACH(LABEL) &&a19 };
	const void *frame[] = { EACH(LABEL) &&a19 };
	long x = n, y = 1;

	frame[first] = frame[first + 1];
	for (int i = 0; !kept[19] && i < 20; i++)
		kept[i] = (signed char)((const char *)frame[i + first] - (const char *)frame[first]);
	goto *table[*pc];
	EACH(CODE)
a19:	return x ^ y;
}
int main(int argc, char **argv)
{
	unsigned char code[64];
	long sum = 0, n = argc > 1 ? atol(argv[1]) : 100000;

	for (long k = 0; k < n; k++) {
		for (int i = 0; i < 63; i++)
			code[i] = (unsigned char)((k * 7 + i * i) % 19);
		code[63] = 19;
		sum += run(code, k);
	}
	for (int i = 0; i < 20; i++)
		sum = sum * 3 + kept[i];
	printf("%ld\n", sum);
	return 0;
}
