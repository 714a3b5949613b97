// SPDX-License-Identifier: Apache-2.0
// Exported functions, and a table of their distances from its own words, as relative pointers are: both lead to one address.
// link: -ldistances -ldl
// modes: pie nopie
// library: libdistances.so -DLIBRARY
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#include "../hazard.h"

int number_of(const void *function);

#ifdef LIBRARY

/* A name of its own, which the linker resolves inside of the library. */
#define FUNCTION(name, body)                                                                       \
	int name(int x) { return body; }                                                           \
	__asm__(".set own_" #name ", " #name)

FUNCTION(triple, x > 5 ? x * 3 : x * OPAQUE(x) + 1);
FUNCTION(five, x & 1 ? x * 5 : x ^ OPAQUE(x) * 7);
FUNCTION(square, x *OPAQUE(x) + 1);

__asm__(".pushsection .rodata\n"
	".balign 4\n"
	".globl distances\n"
	".hidden distances\n"
	"distances: .long own_triple - ., own_five - ., own_square - .\n"
	".popsection\n");
extern const int distances[3] __attribute__((visibility("hidden")));

int number_of(const void *function)
{
	for (int i = 0; i < 3; i++)
		if ((intptr_t)&distances[i] + distances[i] == (intptr_t)function)
			return i + 1;
	return 0;
}

#else

int main(void)
{
	static const char *const names[] = {"triple", "five", "square"};

	for (int i = 0; i < 3; i++) {
		void *function = dlsym(RTLD_DEFAULT, names[i]);

		printf("%d %d\n", number_of(function), ((int (*)(int))function)(i + 4));
	}
	return 0;
}

#endif
