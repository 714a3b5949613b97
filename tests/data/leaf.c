// SPDX-License-Identifier: Apache-2.0
/*
 * leaf - calls small functions that call nothing: with integers, floating point, memory, addresses of data and
 * functions; one that does nothing; some with branches, loops and several returns. Others may not replace their calls:
 * they use the stack or call. Compiles as C and as C++, there with exceptions that a signal handler throws out of
 * such functions.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAF __attribute__((noinline, noclone, noipa))

static const char *const texts[] = {"17", "  4", "-3", "+99", "x", "12345678901", " -  1"};
static unsigned int total;
static int table[16] = {5, 3, 8, 1, 9, 2};
static int (*chosen)(int);

LEAF static int add(int a, int b)
{
	return a + b;
}

LEAF static void count(unsigned int n)
{
	total = total * 31 + n;
}

LEAF static int get(int i)
{
	return table[i & 15];
}

LEAF static void nothing(void)
{
}

LEAF static double scale(double x, double y)
{
	return x * y + 0.5;
}

LEAF static void choose(void)
{
	chosen = get;
}

LEAF static int *place(void)
{
	return &table[3];
}

LEAF static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	return x ^ x >> 29;
}

/* Its seventh argument is in the stack. */
LEAF static int stacked(int a, int b, int c, int d, int e, int f, int g)
{
	return a + b + c + d + e + f + g;
}

/* Some of its blocks run for few texts only. */
LEAF static long parse(const char *s)
{
	long value = 0;
	int negative = 0;

	while (*s == ' ')
		s++;
	if (*s == '-') {
		negative = 1;
		s++;
	} else if (*s == '+') {
		s++;
	}
	if (*s < '0' || *s > '9')
		return -1;
	for (; *s >= '0' && *s <= '9'; s++) {
		if (value > 100000)
			return -2;
		value = value * 10 + *s - '0';
	}
	return negative ? -value : value;
}

LEAF static int looped(int n)
{
	int sum = 0;

	for (volatile int i = 0; i < n; i++)
		sum += i;
	return sum;
}

LEAF static int branched(int n)
{
	if (n < 3)
		count(7);
	return n / 3;
}

LEAF static int read_at(const int *p)
{
	return *p + 1;
}

/* Three returns. */
LEAF static int read_some(const int *p, int n)
{
	if (n < 0)
		return -1;
	if (n > 40)
		return total & 7;
	return *p + n;
}

LEAF static void set(int *p, int value)
{
	if (p)
		*p = value;
	total++;
}

/* Longer than what replaces calls without counts. */
LEAF static int kind(int c)
{
	if (c >= '0' && c <= '9')
		table[1]++;
	else if (c == '_')
		table[2] += c;
	else if (c == '+' || c == '-')
		table[3] ^= c;
	else if (c >= 'a' && c <= 'z')
		return table[c & 15] + 1;
	return table[0];
}

#ifdef __cplusplus
static void on_fault(int sig)
{
	(void)sig;
	throw 5;
}

LEAF static int caught(const int *p)
{
	int n = 1;

	try {
		n = add(n, 2);
		n = read_at(p);
	} catch (int value) {
		sigset_t all;

		sigfillset(&all);
		sigprocmask(SIG_UNBLOCK, &all, NULL);
		n = n * 100 + value;
	}
	return n;
}
#endif

#ifdef __cplusplus
LEAF static int caught_between(const int *p, int nr)
{
	int n = 1;

	try {
		n = read_some(p, nr);
		set(&n, n + 2);
	} catch (int value) {
		sigset_t all;

		sigfillset(&all);
		sigprocmask(SIG_UNBLOCK, &all, NULL);
		n = n * 100 + value;
	}
	return n;
}
#endif

LEAF static unsigned int work(int rounds)
{
	double x = 1;
	uint64_t m = 1;
	int n = 0;

	for (int i = 0; i < rounds; i++) {
		n = add(n, get(i));
		count((unsigned int)n);
		nothing();
		x = scale(x, i % 2 ? 0.25 : 1.5);
		m = mix(m + (unsigned int)n);
		if (i % 64 == 0)
			choose();
		*place() += chosen(i);
		n = add(stacked(n, i, 2, 3, 4, 5, 6), looped(i % 5));
		n += (int)parse(texts[i % 7]);
		n = add(n, branched(i)) & 0xffffff;
		n = read_at(&n);
		n = add(n, read_some(&n, i % 64 - 8)) & 0xffffff;
		set(i % 3 ? &table[5] : NULL, i);
		n += kind(i % 128);
	}
	return total + (unsigned int)n + (unsigned int)(x * 1000) + (unsigned int)m;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000, fine = 41;

	printf("%u\n", work(rounds));
#ifdef __cplusplus
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_fault;
	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < 3; i++)
		printf("%d %d %d %d %d\n", caught(&fine), caught(NULL), caught_between(NULL, -1),
		       caught_between(NULL, 2), caught_between(&fine, 2));
#endif
	return read_at(&fine) != 42;
}
