// SPDX-License-Identifier: Apache-2.0
/* enclosing - a program that looks for functions in its stack, by the function that encloses a return address. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>

#ifdef REGION
#define START(context) (void *)_Unwind_GetRegionStart(context)
#else
#define START(context) _Unwind_FindEnclosingFunction((char *)_Unwind_GetIP(context))
#endif

struct search {
	void *function;
	int nr_frames, found;
};

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *arg)
{
	struct search *search = arg;

	search->nr_frames++;
	if (START(context) == search->function)
		search->found = search->found * 10 + search->nr_frames;
	return _URC_NO_REASON;
}

__attribute__((noinline)) int is_in_stack(void *function)
{
	struct search search = {function, 0, 0};

	_Unwind_Backtrace(look, &search);
	return search.found;
}

#ifndef REGION
/* By a jump. */
__attribute__((noinline)) void *function_around(void *address)
{
	return _Unwind_FindEnclosingFunction(address);
}
#endif

__attribute__((noinline)) int inner(int n)
{
	int found = n & 1 ? is_in_stack((void *)inner) : n;

	if (__builtin_expect(n == 8, 0)) {
		printf("cold %d\n", is_in_stack((void *)inner));
		fflush(stdout);
		abort();
	}
	return found + n;
}

__attribute__((noinline)) int outer(int n)
{
	return inner(n) + is_in_stack((void *)outer) + is_in_stack((void *)inner) * 7;
}

int main(int argc, char **argv)
{
	int (*volatile by_pointer)(int) = inner;

	(void)argv;
	for (int n = 0; n < 7; n++)
		printf("%d %d %d\n", inner(n), outer(n + argc), by_pointer(n));
#ifndef REGION
	printf("%d %d\n", function_around((char *)outer + 2) == (void *)outer,
	       function_around((char *)by_pointer + 1) == (void *)inner);
#endif
	return inner(9) == 0;
}
