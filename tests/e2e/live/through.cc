// SPDX-License-Identifier: Apache-2.0
// A library (-DLIBRARY) and a program: exceptions of each pass through code of the other.
#include <cstdio>
#include <stdexcept>
#include <string>

#define NOINLINE __attribute__((noinline))

extern "C" int library_calls(int (*call)(int), int n);
extern "C" int library_throws(int n);

#ifdef LIBRARY
namespace {
int nr_left;
struct guard {
	~guard() { nr_left++; }
};
}

extern "C" NOINLINE int library_throws(int n)
{
	guard g;

	if (n % 3 == 0)
		throw std::runtime_error("library " + std::to_string(n));
	return n;
}

extern "C" NOINLINE int library_calls(int (*call)(int), int n)
{
	guard g;

	try {
		return call(n) + nr_left;
	} catch (const std::out_of_range &e) {
		std::printf("library caught %s\n", e.what());
		return -1;
	}
}
#else
static NOINLINE int throws(int n)
{
	if (n % 5 == 0)
		throw std::out_of_range("program " + std::to_string(n));
	if (n % 7 == 0)
		throw n;
	return library_throws(n);
}

int main()
{
	int sum = 0;

	for (int n = 1; n < 60; n++) {
		try {
			sum += library_calls(throws, n);
		} catch (const std::runtime_error &e) {
			std::printf("program caught %s\n", e.what());
		} catch (int k) {
			sum -= k;
		}
	}
	std::printf("%d\n", sum);
	return 0;
}
#endif
