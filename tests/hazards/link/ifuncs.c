// SPDX-License-Identifier: Apache-2.0
// Functions chosen by a resolver before the program is relocated: called, pointed at, compared,
// exported by a library. Resolvers that call other functions.
// link: -lifuncs
// modes: pie nopie
// library: libifuncs.so -DLIBRARY
// stays: choose choose_deep
#include <stdio.h>

#include "../hazard.h"

KEEP static int plain(int x) { return x * 2 + 1; }
KEEP static int better(int x) { return x % 5 == 0 ? x * 3 : x * 2 + 2; }
KEEP static int best(int x)
{
	switch (x & 7) {
	case 0: return 5;
	case 1: return x;
	case 2: return x * x;
	case 3: return x - 3;
	case 4: return ~x;
	case 5: return x / 3;
	default: return 9;
	}
}

static int level = 2;
typedef int function(int);

static int which(void) { return 2; }
static function *choose(void)
{
	return which() == 2 ? best : better;
}

#ifdef LIBRARY
int exported(int x) __attribute__((ifunc("choose")));
int calls_exported(int x) { return exported(x) + plain(x) + level; }
#else
static function *choose_deep(void)
{
	switch (which()) {
	case 0: return plain;
	case 1: return better;
	default: return best;
	}
}
int chosen(int x) __attribute__((ifunc("choose")));
static int hidden(int x) __attribute__((ifunc("choose_deep")));
int exported(int x);
int calls_exported(int x);

static function *const table[] = {chosen, hidden, plain, better, exported};

int main(void)
{
	long sum = 0;
	function *p = OPAQUE((function *)chosen);

	for (int i = 0; i < 200; i++) {
		sum = sum * 31 + chosen(i) + hidden(i) + calls_exported(i) + exported(i);
		sum = sum * 31 + table[i % 5](i) + p(i);
	}
	printf("%ld %d %d\n", sum, p == table[0], table[4] == OPAQUE((function *)exported));
	return level != 2;
}
#endif
