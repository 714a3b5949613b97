// SPDX-License-Identifier: Apache-2.0
// A program that counts its frames by a forced unwinding, which a function in place of a call does not have.
// flags: -fexceptions
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>

#include "../hazard.h"

static jmp_buf env;
static struct _Unwind_Exception thrown;
static volatile int frames, end = 100;

static _Unwind_Reason_Code count(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
				 struct _Unwind_Exception *what, struct _Unwind_Context *context,
				 void *unused)
{
	(void)version, (void)class, (void)what, (void)context, (void)unused;
	if (actions & _UA_END_OF_STACK)
		longjmp(env, 1);
	frames++;
	return _URC_NO_REASON;
}

KEEP int deep(int n)
{
	if (n == end)
		_Unwind_ForcedUnwind(&thrown, count, NULL);
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
	printf("%d\n", three(argc + 5));
	end = argc + 2;
	if (!setjmp(env))
		three(argc + 5);
	printf("%d frames\n", frames);
	return 0;
}
