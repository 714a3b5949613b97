// SPDX-License-Identifier: Apache-2.0
// A shared object whose code moves: callbacks into the program and back, its own exports compared.
#include <dlfcn.h>

#include "library.h"

#define NOINLINE __attribute__((noinline, noclone))

static int total;
__thread int library_tls = 3;

NOINLINE int library_add(int x)
{
	total += x;
	return total;
}

library_fn library_address(void)
{
	return library_add;
}

NOINLINE int library_apply(library_fn fn, int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++) {
		switch (i % 8) {
		case 0: sum += fn(i); break;
		case 1: sum ^= fn(i + 1); break;
		case 2: sum -= i; break;
		case 3: sum += library_add(1); break;
		case 4: sum *= 3; break;
		case 5: sum |= 1; break;
		case 6: sum += library_tls++; break;
		default: sum &= 0xffffff; break;
		}
	}
	return sum;
}

int library_same(library_fn fn)
{
	return fn == library_add;
}

/* Finds a symbol that the program may export. */
library_fn library_find(const char *name)
{
	return (library_fn)dlsym(RTLD_DEFAULT, name);
}

/* The loader fills these in from symbols; the last one has an offset to its symbol. */
library_fn library_table[2] = {library_add, library_find ? library_add : 0};
const char *library_inside = (const char *)library_apply + 1;
