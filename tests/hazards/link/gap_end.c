// SPDX-License-Identifier: Apache-2.0
// A linker script names the end of .text, in the gap before the next section with code, and the program asks whether a return
// address lies before it.
// link: -Wl,--script=@/gap_end.ld
// modes: pie nopie
// stays: calls called
// copies: apart
#include <stdint.h>
#include <stdio.h>

#include "../hazard.h"

extern const char text_begins[] __attribute__((visibility("hidden")));
extern const char text_ends[] __attribute__((visibility("hidden")));

KEEP int is_mine(const void *at)
{
	return (uintptr_t)at >= (uintptr_t)text_begins && (uintptr_t)at < (uintptr_t)text_ends;
}

KEEP int called(int x)
{
	return OPAQUE(x) * 2 + is_mine(__builtin_return_address(0));
}

KEEP int calls(int x)
{
	return called(x) + called(x + 1) * 3;
}

/* Not between both. */
__attribute__((section(".text_apart"), aligned(64))) KEEP int apart(int x)
{
	int sum = 1;

	for (int i = 0; i < x; i++)
		sum = sum * 3 + OPAQUE(i);
	return sum + called(x);
}

int main(int argc, char **argv)
{
	(void)argv;
	printf("%d %d %d\n", calls(argc), called(argc), apart(argc + 5));
	return 0;
}
