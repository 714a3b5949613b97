// SPDX-License-Identifier: Apache-2.0
// A stack for gdb, backtrace() and perf to read: outer, middle, inner; inner stops or spins.
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile unsigned long sink;

NOINLINE int inner(int n, const char *what)
{
	if (!strcmp(what, "backtrace")) {
		void *frames[16];

		fflush(stdout);
		backtrace_symbols_fd(frames, backtrace(frames, 16), 1);
	} else if (!strcmp(what, "abort")) {
		abort();
	} else {
		for (unsigned long i = 0; i < 200000000ul; i++)
			sink += i ^ (unsigned long)n;
	}
	return n + 1;
}

NOINLINE int middle(int n, const char *what)
{
	int r = 0;

	for (int i = 0; i < 1; i++)
		r += 2 * inner(n + i, what); /* not a tail call */
	return r;
}

NOINLINE int outer(int n, const char *what)
{
	return middle(n * 2, what) + 1;
}

int main(int argc, char **argv)
{
	printf("%d\n", outer(3, argc > 1 ? argv[1] : "backtrace"));
	return 0;
}
