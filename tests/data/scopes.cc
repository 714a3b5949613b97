// SPDX-License-Identifier: Apache-2.0
// Inlined calls in blocks that move, templates, hot and cold parts, variables in registers: what
// debug information has to say.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

static inline __attribute__((always_inline)) int leaf(int x)
{
	int y = x * 3;
	if (y > 1000)
		std::puts("big"); // the breakpoint
	return y + 1;
}

template <class T> struct Sum {
	T total = 0;
	inline __attribute__((always_inline)) void add(T x)
	{
		T z = leaf(static_cast<int>(x) + 2);
		for (int i = 0; i < static_cast<int>(x) % 3; i++)
			z += leaf(i);
		total += z;
	}
};

template <class T> __attribute__((noinline)) T outer(int n)
{
	Sum<T> sum;
	for (int i = 0; i < n; i++) {
		sum.add(static_cast<T>(i));
		if (sum.total < 0)
			throw std::runtime_error("negative");
	}
	return sum.total;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? std::atoi(argv[1]) : 10;
	int times = argc > 2 ? std::atoi(argv[2]) : 1;

	try {
		for (int i = 1; i < times; i++)
			outer<long>(n);
		std::printf("%d %ld\n", outer<int>(n), outer<long>(n / 2));
	} catch (const std::exception &e) {
		std::puts(e.what());
	}
	return 0;
}
