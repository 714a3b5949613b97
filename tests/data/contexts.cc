// SPDX-License-Identifier: Apache-2.0
/*
 * contexts - C++ exceptions through frames, for tests/e2e/bench/contexts.sh. Each function counts
 * its activations; at the end the program prints FUNCTION COUNT.
 */
#include <cstdio>
#include <stdexcept>

#define APART __attribute__((noipa))

static unsigned long nr_leaf, nr_thrower, nr_through, nr_catcher, nr_cleanup, nr_rethrower;

extern "C" {
APART void leaf() { nr_leaf++; }

APART void cleanup() { nr_cleanup++; }
}

struct guard {
	~guard() { cleanup(); }
};

extern "C" {
APART void thrower(int n)
{
	nr_thrower++;
	if (n % 2)
		throw std::runtime_error("odd");
	leaf();
}

APART void through(int depth, int n)
{
	guard g;

	nr_through++;
	if (depth)
		through(depth - 1, n);
	else
		thrower(n);
	leaf();
}

APART void rethrower(int n)
{
	nr_rethrower++;
	try {
		through(2, n);
	} catch (const std::exception &) {
		leaf();
		throw;
	}
}

APART void catcher(int n)
{
	nr_catcher++;
	try {
		rethrower(n);
	} catch (const std::exception &) {
		leaf();
	}
	leaf();
}
}

int main()
{
	for (int i = 0; i < 6; i++)
		catcher(i);
	std::printf("leaf %lu\nthrower %lu\nthrough %lu\ncatcher %lu\ncleanup %lu\nrethrower %lu\n",
		    nr_leaf, nr_thrower, nr_through, nr_catcher, nr_cleanup, nr_rethrower);
	return 0;
}
