// SPDX-License-Identifier: Apache-2.0
// Cold parts: reached by branches, by jump tables and by landing pads, with frames of every size,
// with shared calls that do not return, and with jumps back to the hot part.
// flags: -freorder-blocks-and-partition
// levels: -O2 -O3
// only: gcc
// moves: main mixed
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "../hazard.h"

__attribute__((cold)) KEEP void complain(const char *what, int n)
{
	static int said;

	if (said++ < 5)
		printf("%s %d\n", what, n);
}

[[noreturn]] __attribute__((cold)) KEEP void fails(int n) { throw std::runtime_error(n & 1 ? "odd" : "even"); }

struct guard {
	int *p;
	~guard() { ++*p; }
};

KEEP long mixed(int n, int *left)
{
	guard g{left};
	long v = n;
	char room[256];

	snprintf(room, sizeof(room), "%d", n);
	switch (n % 12) {
	case 0: v += 3; break;
	case 1: v *= 2; break;
	case 2: complain("two", n); v -= 5; break;
	case 3: v ^= 9; break;
	case 4: complain("four", n); break;
	case 5: fails(n);
	case 6: v += room[0]; break;
	case 7: if (n > 90) { complain("seven", n); v = 1; complain("again", n); } break;
	case 8: v <<= 2; break;
	case 9: try { if (n > 60) fails(n + 1); v++; } catch (const std::exception &e) { complain(e.what(), n); v += e.what()[0]; } break;
	case 10: v -= n; break;
	default: v = ~v;
	}
	if (__builtin_expect(v == 12345, 0)) {
		complain("never", n);
		abort();
	}
	return v;
}

KEEP int bounds(const int *v, int nr, int i)
{
	if (__builtin_expect(i >= nr, 0)) {
		complain("bounds", i);
		return i > 1000 ? (fails(i), 0) : -1;
	}
	return v[i];
}

int main()
{
	static const int v[] = {1, 2, 3, 4, 5, 6, 7, 8};
	long sum = 0;
	int left = 0;

	for (int i = 0; i < 200; i++) {
		try {
			sum = sum * 31 + mixed(i, &left);
			sum = sum * 31 + bounds(v, 8, i % 50 ? i % 8 : i * 20);
		} catch (const std::exception &e) {
			sum += e.what()[0];
		}
	}
	printf("%ld %d\n", sum, left);
	return 0;
}
