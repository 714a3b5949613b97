// SPDX-License-Identifier: Apache-2.0
// Code added by a compiler: entry and exit hooks, which get the addresses of functions and callers;
// counters; checks of sanitizers.
// flags: -finstrument-functions -fsanitize=undefined -fno-sanitize-recover -fstack-protector-all -fprofile-arcs
// link: -fsanitize=undefined -fprofile-arcs
// only: gcc
// modes: pie nopie
// run: rm -rf gcda; GCOV_PREFIX=$PWD/gcda ./prog; find gcda -name '*.gcda' | wc -l
#include <stdio.h>

#include "../hazard.h"

#define QUIET __attribute__((no_instrument_function))
static int depth, deepest, entries;
static void *last_entered, *stack[64];
static int mismatches;

QUIET void __cyg_profile_func_enter(void *function, void *site)
{
	(void)site;
	entries++;
	last_entered = function;
	stack[depth++ & 63] = function;
	deepest = depth > deepest ? depth : deepest;
}
QUIET void __cyg_profile_func_exit(void *function, void *site)
{
	(void)site;
	mismatches += stack[--depth & 63] != function;
}

KEEP int leaf(int n) { return n % 5 ? n * 3 : n - 7; }
KEEP int middle(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += leaf(i) & 7;
	return sum;
}
KEEP int saw_leaf(int n)
{
	leaf(n);
	return last_entered == (void *)leaf;
}

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 50; i++)
		sum = sum * 3 % 100000 + middle(i);
	printf("%ld %d %d %d %d\n", sum, saw_leaf(4), entries, deepest, mismatches);
	return 0;
}
