// SPDX-License-Identifier: Apache-2.0
// Functions for which the source asks for more than the usual alignment, since the program keeps flags in the low bits of
// their addresses. Also functions of a library, by its dynamic symbols.
// link: -ltagged -ldl
// modes: pie nopie
// library: libtagged.so -DLIBRARY
// moves: main
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#include "../hazard.h"

typedef long function(long);

#ifdef LIBRARY

__attribute__((aligned(256))) long far_apart(long x)
{
	for (int i = 0; i < 3; i++)
		x = x * 3 + i;
	return x;
}

__attribute__((aligned(64))) long line(long x) { return x & 1 ? x * 5 : x ^ 77; }

#else

long far_apart(long), line(long);

KEEP static __attribute__((aligned(32))) long half(long x) { return x & 1 ? x * 7 : x + 9; }
KEEP static __attribute__((aligned(64))) long whole(long x)
{
	for (int i = 0; i < 3; i++)
		x = x * 3 + i;
	return x;
}
KEEP static __attribute__((aligned(4096))) long page(long x) { return x * x; }

static volatile uintptr_t tagged[5];

KEEP static void put(int i, function *f, unsigned int flags) { tagged[i] = (uintptr_t)f | flags; }

KEEP static long call(int i, unsigned int mask, long x)
{
	uintptr_t word = tagged[i];

	return ((function *)(word & ~(uintptr_t)mask))(x) * 4096 + (long)(word & mask);
}

int main(void)
{
	long sum = 0;

	put(0, half, 17);
	put(1, whole, 49);
	put(2, page, 4001);
	put(3, line, 44);
	put(4, (function *)dlsym(RTLD_DEFAULT, "far_apart"), 200);
	sum = call(0, 31, 5);
	sum = sum * 31 + call(1, 63, 6);
	sum = sum * 31 + call(2, 4095, 7);
	printf("%ld %ld %ld\n", sum, call(3, 63, 8), call(4, 255, 9));
	return 0;
}

#endif
