// SPDX-License-Identifier: Apache-2.0
// A program counts its frames by an unwinder that is a part of it: stripped, no name says so.
// flags: -fexceptions
// link: -static-libgcc
// only: gcc
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>

#include "../hazard.h"

static volatile int frames, end = 100;

static _Unwind_Reason_Code count(struct _Unwind_Context *context, void *unused)
{
	(void)context, (void)unused;
	frames++;
	return _URC_NO_REASON;
}

KEEP int deep(int n)
{
	if (n == end)
		_Unwind_Backtrace(count, NULL);
	return n * 3;
}
KEEP int one(int n) { return (deep(n) + 1) * 2; }
KEEP int two(int n) { return (one(n) + 3) ^ 5; }
KEEP int three(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += two(i);
	return sum;
}

int main(int argc, char **argv)
{
	(void)argv;
	end = argc + 2;
	printf("%d\n", three(argc + 5));
	printf("%d frames\n", frames);
	return 0;
}
