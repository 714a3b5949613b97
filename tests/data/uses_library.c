// SPDX-License-Identifier: Apache-2.0
// A program beside library.c: function pointers must be equal on both sides.
#include <stdio.h>

#include "library.h"

static int callback(int x)
{
	return x * 5 + library_add(x & 3);
}

/* With -rdynamic, this is in the dynamic symbol table. */
__attribute__((noinline)) int exported(int x)
{
	return x ^ library_add(1);
}

static int (*const table[])(int) = {callback, exported};

int main(void)
{
	library_fn found = library_find("exported");
	int same = 0;

	same += library_same(library_add);
	same += library_address() == library_add;
	same += !library_same(callback);
	same += library_table[0] == library_add && library_table[1] == library_table[0];
	same += (void *)library_table[0] == (void *)library_find("library_add");
	same += library_inside == (const char *)library_find("library_apply") + 1;
	same += found && found == exported && found == table[1];
	for (int i = 0; i < 100; i++)
		same ^= table[i & 1](i);
	printf("%d %d %d %d\n", same, library_apply(callback, 1000), library_apply(library_add, 77),
	       library_tls);
	return 0;
}
