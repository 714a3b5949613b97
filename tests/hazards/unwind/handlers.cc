// SPDX-License-Identifier: Apache-2.0
// Landing pads in programs that contain the personality routines. In a static program without
// symbols, nothing names these routines.
// moves: thrower catcher cleaner main
#include <cstdio>
#include <string>

#include "../hazard.h"

struct guard {
	int &n;
	~guard() { n++; }
};

extern "C" KEEP int thrower(int n)
{
	if (n % 3 == 1)
		throw n;
	if (n % 3 == 2)
		throw std::string(n, 'x');
	return n;
}

extern "C" KEEP int cleaner(int n, int &cleaned)
{
	guard g = {cleaned};

	return thrower(n) + 1;
}

extern "C" KEEP int catcher(int n, int &cleaned)
{
	try {
		return cleaner(n, cleaned);
	} catch (int x) {
		return x + 10;
	} catch (const std::string &s) {
		return static_cast<int>(s.size()) + 100;
	}
}

int main()
{
	int sum = 0, cleaned = 0;

	for (int i = 0; i < 1000; i++)
		sum += catcher(i % 50, cleaned);
	std::printf("%d %d\n", sum, cleaned);
}
