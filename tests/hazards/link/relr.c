// SPDX-License-Identifier: Apache-2.0
// Relative relocations packed as bits (DT_RELR), also for pointers to functions.
// link: -Wl,-z,pack-relative-relocs -lrelr
// modes: pie
// library: librelr.so -DLIBRARY
// library-link: -Wl,-z,pack-relative-relocs
// linkers: bfd lld
// refused: program header
#include <stdio.h>

#include "../hazard.h"

typedef int function(int);
#define F(n)                                                 \
	KEEP static int f##n(int x)                          \
	{                                                    \
		return x % (n + 2) ? x * (n + 3) : x - (n);  \
	}
F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
#define ALL f0, f1, f2, f3, f4, f5, f6, f7
static function *table[64] = {ALL, ALL, ALL, ALL, ALL};
static struct {
	long pad;
	function *f;
	const char *name;
} records[] = {{1, f0, "a"}, {2, f3, "b"}, {3, f5, "c"}, {4, f7, "d"}};

#ifdef LIBRARY
int from_library(int i, int x) { return table[i % 40](x) + records[i & 3].f(x); }
function *library_pointer(int i) { return table[i]; }
#else
int from_library(int i, int x);
function *library_pointer(int i);

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 200; i++) {
		sum = sum * 31 + table[i % 40](i) + records[i % 4].f(i) + records[i % 4].name[0];
		sum = sum * 31 + from_library(i, i) + library_pointer(i % 40)(i);
	}
	printf("%ld %d %d\n", sum, table[3] == OPAQUE(f3), library_pointer(8) == library_pointer(0));
	return 0;
}
#endif
