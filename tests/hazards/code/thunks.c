// SPDX-License-Identifier: Apache-2.0
// Indirect calls, jumps and returns through thunks that replace a return address on the stack.
// only: gcc
// flags: -mindirect-branch=thunk -mfunction-return=thunk -fcf-protection=none
#include <stdio.h>

#include "../hazard.h"

typedef long function(long);
KEEP static long add(long v) { return v + 3; }
KEEP static long mul(long v) { return v * 3; }
KEEP static long tail(long v);
static function *volatile functions[] = {add, mul, tail};
KEEP static long tail(long v) { return functions[v & 1](v - 1); }

KEEP static long pick(int n, long v)
{
	switch (n) {
	case 0: return v + 1;
	case 1: return v ^ 0x33;
	case 2: return tail(v);
	case 3: return v >> 1;
	case 4: return v - 9;
	case 5: return add(v) * 2;
	case 6: return -v;
	default: return 0;
	}
}

int main(void)
{
	long v = 1;

	for (int i = 0; i < 1000; i++)
		v = functions[i % 3](v) + pick(i % 8, v);
	printf("%ld\n", v);
	return 0;
}
