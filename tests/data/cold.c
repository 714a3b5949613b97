// SPDX-License-Identifier: Apache-2.0
// Functions with a cold part of their own: GCC puts what leads to a cold call elsewhere.
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

volatile int sink;

NOINLINE __attribute__((noreturn)) void fatal(int x)
{
	printf("fatal %d\n", x);
	exit(1);
}

NOINLINE __attribute__((cold)) void complain(int x)
{
	printf("odd %d\n", x);
}

NOINLINE int first(const int *v, int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++) {
		if (__builtin_expect(v[i] < 0, 0)) {
			complain(v[i]);
			sink = sum * 3;
			continue;
		}
		sum += v[i] * sink;
		if (__builtin_expect(sum == 123456, 0))
			fatal(sum);
	}
	return sum;
}

NOINLINE int second(int x)
{
	int keep = sink;

	if (__builtin_expect(x > 1000, 0)) {
		complain(x);
		complain(keep);
		return keep * 2;
	}
	return x + keep;
}

int main(int argc, char **argv)
{
	int v[] = {1, 2, 3, 4};

	sink = argc;
	printf("%d %d\n", first(v, 4), second(argc));
	return argc > 9 ? atoi(argv[1]) : 0;
}
