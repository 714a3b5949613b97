// SPDX-License-Identifier: Apache-2.0
// GNU C's nested functions: trampolines on the stack, and goto from a nested function into its
// outer function, past frames between.
// only: gcc
// flags: -fexceptions
// link: -Wl,-z,execstack
#include <stdio.h>
#include <stdlib.h>

#include "../hazard.h"

static int unwound;
static void leave(int *n) { unwound += *n; }

KEEP void calls(void (*f)(int), int depth, int n)
{
	__attribute__((cleanup(leave))) int scope = depth + 1;

	if (depth)
		calls(f, depth - 1, n);
	else
		f(n);
}

KEEP int search(const int *v, int nr, int wanted)
{
	__label__ found, none;
	int at = -1, looked = 0;

	NOINLINE void look(int i)
	{
		looked++;
		if (v[i] == wanted) {
			at = i;
			goto found;
		}
		if (i == nr - 1)
			goto none;
	}
	for (int i = 0; i < nr; i++)
		calls(look, i % 4, i);
	return -2;
found:
	return at * 100 + looked;
none:
	return -1 - looked;
}

KEEP long sorted(int *v, int nr, int flip)
{
	long compares = 0;

	int order(const void *a, const void *b)
	{
		compares++;
		return flip * (*(const int *)a - *(const int *)b);
	}
	qsort(v, nr, sizeof(v[0]), order);
	return compares > 0;
}

int main(void)
{
	int v[40];
	long sum = 0;

	for (int i = 0; i < 40; i++)
		v[i] = (int)(hazard_next() % 100);
	for (int i = 0; i < 100; i++)
		sum = sum * 31 + search(v, 40, i);
	sum += sorted(v, 40, 1);
	for (int i = 0; i < 40; i++)
		sum = sum * 31 + v[i];
	sum += sorted(v, 40, -1);
	printf("%ld %d %d %d\n", sum, v[0], v[39], unwound);
	return 0;
}
