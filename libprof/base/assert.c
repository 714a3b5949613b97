// SPDX-License-Identifier: Apache-2.0
#include "libprof/base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void mp_assert_failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: a fault of Morph: this must hold, and does not: %s\n", file, line,
		what);
	abort();
}
