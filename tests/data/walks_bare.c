// SPDX-License-Identifier: Apache-2.0
/* walks_bare - see walks_bare.h. */
#include "walks_bare.h"

#define APART __attribute__((noipa))

APART static long bare_leaf(long n)
{
	long sum = 0;

	for (long i = 0; i < n % 16; i++)
		sum += i ^ n;
	return sum;
}

APART static long bare_inner(void (*f)(long), volatile long *words, long n)
{
	long sum = 0;

	for (long i = 0; i < n % 4; i++)
		words[i] += bare_leaf(n + i);
	f(n);
	for (long i = 0; i < n % 4; i++)
		sum += words[i];
	return sum;
}

long bare_outer(void (*f)(long), long n)
{
	volatile long words[4] = {0};

	return bare_inner(f, words, n) + bare_leaf(n);
}
