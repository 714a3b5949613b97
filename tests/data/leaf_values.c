// SPDX-License-Identifier: Apache-2.0
/*
 * leaf_values - functions with many variables call functions that save registers or use the stack, and call nothing.
 * While code of the called functions stands in place of calls, debuggers must show the variables' values, or none.
 * With ONLY_CALLED or ONLY_CALLING, the file is one half of the program. A file that may walk its stack keeps calls of
 * functions that call others; with DEEP, this one does not say so.
 */
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __clang__
#define LEAF __attribute__((noinline))
#else
#define LEAF __attribute__((noinline, noclone, noipa))
#endif

#ifdef ONLY_CALLING
unsigned long saves(unsigned long a, const unsigned long *p, int n);
unsigned long array(unsigned long a, unsigned int n);
unsigned long several(unsigned long a, unsigned long b);
double mean(const double *p, int n);
#else
/* Saves registers. */
LEAF unsigned long saves(unsigned long a, const unsigned long *p, int n)
{
	unsigned long x[7];

	for (int i = 0; i < 7; i++)
		x[i] = p[i] ^ a;
	for (int i = 0; i < n; i++) {
		x[0] += x[1] * a;
		x[1] ^= x[2] + (unsigned int)n;
		x[2] += x[3] * 3;
		x[3] ^= x[4];
		x[4] += x[5] << 3;
		x[5] ^= x[6] >> 2;
		x[6] += x[0];
	}
	return x[0] ^ x[1] ^ x[2] ^ x[3] ^ x[4] ^ x[5] ^ x[6];
}

/* Lowers the stack pointer. */
LEAF unsigned long array(unsigned long a, unsigned int n)
{
	volatile unsigned char bytes[200];

	for (unsigned int i = 0; i < 200; i += 64)
		bytes[i] = (unsigned char)(a >> (i & 31));
	if (n % 3 == 0)
		return bytes[n % 200 & 192];
	return (unsigned long)bytes[n % 200 & 192] + bytes[(n + 7) % 200 & 192];
}

/* Several returns */
LEAF unsigned long several(unsigned long a, unsigned long b)
{
	if (a % 5 == 0)
		return b;
	if (a & 1)
		return a * 7 + b;
	return a ^ b;
}

/* Changes vectors. */
LEAF double mean(const double *p, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += p[i] * (i + 1);
	return sum / n;
}

#endif

#ifndef ONLY_CALLED
#ifndef DEEP
int (*volatile walks)(void **, int) = backtrace;
#endif

struct pair {
	long first, second;
};

LEAF unsigned long work(unsigned long n, struct pair pair, const char *text)
{
	unsigned long keep = n * 3 + 1, sum = 0, words[7], twice = n * 2;
	const char *at = text;

	for (int i = 0; i < 7; i++)
		words[i] = n + (unsigned long)i;
	for (unsigned long i = 0; i < n; i++) {
		unsigned long local = i ^ keep;

		sum += saves(i, words, (int)(i & 7));
		if (i & 1) {
			unsigned long inner = array(sum, (unsigned int)i);

			sum ^= several(inner, local);
			sum += inner * (unsigned long)pair.second;
		}
		sum += local * twice + (unsigned long)*at;
		at += at[1] ? 1 : 0;
	}
	return sum + keep + (unsigned long)pair.first;
}

LEAF double floats(int n)
{
	double sum = 0.5, half = n / 2.0, values[4] = {1, 2, half, sum};
	float small = (float)n;

	for (int i = 1; i <= n; i++) {
		sum += mean(values, i & 3 ? i & 3 : 4) * half;
		sum += (double)several((unsigned long)i, 3);
		values[i & 3] += (double)small;
	}
	return sum;
}

#ifndef __cplusplus
/* The size of an array is a variable. */
LEAF unsigned long sized(int n)
{
	unsigned long row[n + 7], sum = 0;

	for (int i = 0; i < n + 7; i++)
		row[i] = (unsigned long)i * 3;
	for (int i = 0; i < n; i++)
		sum += saves((unsigned long)i, row, i) + row[i];
	return sum;
}
#else
static unsigned long sized(int n)
{
	return (unsigned long)n;
}
#endif

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 4;
	struct pair pair = {n + 1, n + 2};
	unsigned long sum = work((unsigned long)n, pair, "a text of some length");

	printf("%lu %.3f %lu\n", sum, floats(n), sized(n));
	return 0;
}
#endif
