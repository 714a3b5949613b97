// SPDX-License-Identifier: Apache-2.0
/*
 * callgraph - calls of each kind, whose numbers follow from N: direct, through a pointer, through a
 * pointer to a thunk, by a tail call, by a tail call to a function that was passed on, from two places of
 * one function, and through the PLT. Functions take
 * different times, so that time says little about how often they are called. For
 * tests/e2e/bench/callgraph.sh.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))
#define NR	 40000

static volatile unsigned int sink;
static unsigned int (*volatile through[2])(unsigned int);
static unsigned int (*volatile traversal)(unsigned int, unsigned int (*)(unsigned int));
static char text[64];

static NOINLINE unsigned int work(unsigned int nr)
{
	unsigned int x = nr;

	for (unsigned int i = 0; i < nr; i++)
		x = x * 1664525u + sink;
	return x;
}

/* Called by 2 * NR: dense with short work, sparse with long work. */
static NOINLINE unsigned int dense(unsigned int n)
{
	unsigned int x = 0;

	for (unsigned int i = 0; i < n; i++)
		x += work(2);
	return x;
}

static NOINLINE unsigned int sparse(unsigned int n)
{
	unsigned int x = 0;

	for (unsigned int i = 0; i < n; i++)
		x += work(20);
	return x;
}

static NOINLINE unsigned int quick(unsigned int n)
{
	return (n ^ sink) * 5;
}

static NOINLINE unsigned int slow(unsigned int n)
{
	unsigned int x = n;

	for (unsigned int i = 0; i < 30; i++)
		x = x * 22695477u + sink;
	return x;
}

/* Leads to slow() by a jump. */
static NOINLINE unsigned int thunk(unsigned int n)
{
	return slow(n + 1);
}

static NOINLINE unsigned int ends_in_tail_call(unsigned int n)
{
	sink = n;
	return n & 1 ? quick(n) : slow(n);
}

/* NR calls of quick(), NR / 4 of thunk(). */
static NOINLINE unsigned int indirect(unsigned int n)
{
	unsigned int x = 0;

	for (unsigned int i = 0; i < n; i++) {
		x += through[0](i);
		if (i % 4 == 0)
			x += through[1](i);
	}
	return x;
}

static NOINLINE unsigned int tails(unsigned int n)
{
	unsigned int x = 0;

	for (unsigned int i = 0; i < n; i++)
		x += ends_in_tail_call(i) + 1;
	return x;
}

static NOINLINE unsigned int visit(unsigned int n)
{
	unsigned int x = n;

	for (unsigned int i = 0; i < 10; i++)
		x = x * 69069u + sink;
	return x;
}

/* Ends with a jump to what it is passed. */
static NOINLINE unsigned int traverse(unsigned int n, unsigned int (*f)(unsigned int))
{
	sink = n;
	return f(n + 2);
}

static NOINLINE unsigned int callback(unsigned int n)
{
	unsigned int x = 0;

	for (unsigned int i = 0; i < n; i++)
		x += traversal(i, visit);
	return x;
}

static NOINLINE unsigned int library(unsigned int n)
{
	unsigned int x = 0;

	for (unsigned int i = 0; i < n; i++) {
		text[i % 60] = 'a';
		x += (unsigned int)strlen(text);
	}
	return x;
}

int main(void)
{
	unsigned int x = 0;

	through[0] = quick;
	through[1] = thunk;
	traversal = traverse;
	x += dense(NR) + sparse(NR) + indirect(NR) + tails(NR) + callback(NR) + library(NR);
	printf("%u\n", x);
	return 0;
}
