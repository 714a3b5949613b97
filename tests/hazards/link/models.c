// SPDX-License-Identifier: Apache-2.0
// The large code model: all addresses are 64-bit immediates, or differences to an address that the
// code reads.
// flags: -mcmodel=large
// modes: pie nopie
#include <stdio.h>
#include <stdlib.h>

#include "../hazard.h"

static int data[100];
KEEP static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

KEEP static int pick(int n)
{
	switch (n) {
	case 0: return data[3];
	case 1: return 7;
	case 2: return data[5] * 3;
	case 3: return 11;
	case 4: return data[1] ^ 2;
	case 5: return 13;
	case 6: return data[9];
	default: return n;
	}
}
static int (*const functions[])(int) = {pick, abs};

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 100; i++)
		data[i] = (int)hazard_next();
	qsort(data, 100, sizeof(data[0]), order);
	for (int i = 0; i < 200; i++)
		sum = sum * 31 + pick(i % 9) + functions[i & 1](i % 9);
	printf("%ld\n", sum);
	return 0;
}
