// SPDX-License-Identifier: Apache-2.0
// Built for indirect branch tracking and shadow stacks: targets of indirect branches start with
// endbr64, in the copies too; setjmp returns behind a call; every return follows a call.
// flags: -fcf-protection=full -fexceptions
// check: ibt
// moves: target pick main
#include <setjmp.h>
#include <stdio.h>

#include "../hazard.h"

static jmp_buf env;
KEEP int target(int n) { return n % 3 ? n + 1 : n * 3; }
KEEP int other_target(int n)
{
	if (n > 90)
		longjmp(env, n);
	return n - 1;
}
static int (*volatile pointers[])(int) = {target, other_target};

KEEP int pick(int n)
{
	switch (n) {
	case 0: return 4;
	case 1: return 19;
	case 2: return 33;
	case 3: return n * n;
	case 4: return 8;
	case 5: return 71;
	default: return n;
	}
}

KEEP long labels(int n)
{
	static const void *const table[] = {&&a, &&b, &&c};
	long sum = n;

	goto *table[n];
a:
	sum++;
b:
	sum += 2;
c:
	return sum;
}

int main(void)
{
	volatile long sum = 0;
	volatile int i = 0;

	if (setjmp(env))
		sum += 5;
	for (; i < 100; ) {
		int n = i;

		i = n + 1;
		sum = sum * 31 + pointers[n & 1](n) + pick(n % 8);
	}
	printf("%ld\n", sum + labels(OPAQUE(1)));
	return 0;
}
