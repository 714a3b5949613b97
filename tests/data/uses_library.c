// SPDX-License-Identifier: Apache-2.0
// A program beside library.c: function pointers must be equal on both sides.
#include <stdio.h>

#include "library.h"

static int callback(int x) { return x * 5 + library_add(x & 3); }

int main(void)
{
	int same = 0;

	same += library_same(library_add);
	same += library_address() == library_add;
	same += !library_same(callback);
	printf("%d %d %d %d\n", same, library_apply(callback, 1000), library_apply(library_add, 77),
	       library_tls);
	return 0;
}
