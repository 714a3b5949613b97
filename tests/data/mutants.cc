// SPDX-License-Identifier: Apache-2.0
// Little of everything that verify looks at, in as few bytes as possible: jump tables, a function
// pointer in data, a tail call, cleanups, handlers, an exception specification's successor
// (noexcept), a block that is taken backwards. Its output says that all of it ran.
#include <cstdio>

#define NOINLINE __attribute__((noinline, noclone))

struct guard {
	int *p;
	~guard()
	{
		++*p;
	}
};

NOINLINE static int pick(int n)
{
	switch (n) {
	case 0: return 17;
	case 1: puts("one"); return 4;
	case 2: return n * 31;
	case 3: puts("three"); return 9;
	case 4: return -n;
	case 5: puts("five"); return 1;
	default: return 0;
	}
}

NOINLINE static int thrower(int n)
{
	if (n == 2)
		throw n;
	if (n == 4)
		throw "four";
	return pick(n);
}

NOINLINE static int catcher(int n)
{
	int count = 0;

	try {
		guard g = {&count};

		count += thrower(n);
	} catch (int i) {
		count += i;
	} catch (const char *s) {
		puts(s);
	}
	return count;
}

NOINLINE static int quiet(int n) noexcept
{
	return n > 100 ? catcher(n - 100) : thrower(n & 1);
}

typedef int (*step)(int);
static step volatile steps[] = {catcher, quiet};

int main(int argc, char **)
{
	int sum = 0;

	for (int i = 0; i < 8 * argc; i++)
		sum += steps[i & 1](i);
	printf("%d\n", sum);
	return 0;
}
