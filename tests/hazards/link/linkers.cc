// SPDX-License-Identifier: Apache-2.0
// Parts of a file that linkers lay out differently: sections, program headers, unwind tables,
// folded identical functions, exceptions, jump tables, thread-locals, a library.
// linkers: lld gold mold
// flags: -ffunction-sections -fdata-sections
// link: -llinkers
// modes: pie nopie
// library: liblinkers.so -DLIBRARY
// refused: program header|no room
#include <cstdio>
#include <stdexcept>

#include "../hazard.h"

static thread_local int mine = 3;

KEEP int classify(int n)
{
	switch (n) {
	case 0: return 5;
	case 1: return 17;
	case 2: return n * 3;
	case 3: return 1;
	case 4: mine++; return 99;
	case 5: return mine;
	case 6: throw std::out_of_range("six");
	default: return n;
	}
}

#ifdef LIBRARY
extern "C" int guarded(int n)
{
	try {
		return classify(n);
	} catch (const std::out_of_range &e) {
		if (n == 6)
			throw std::runtime_error(e.what());
		return -1;
	}
}
#else
extern "C" int guarded(int n);

KEEP int twin_a(int n) { return n * 7 + 3; }
KEEP int twin_b(int n) { return n * 7 + 3; }
static int (*const twins[])(int) = {twin_a, twin_b, classify};

int main()
{
	long sum = 0;

	for (int i = 0; i < 100; i++) {
		try {
			sum = sum * 31 + classify(i % 9) + guarded(i % 8) + twins[i % 3](i % 5);
		} catch (const std::out_of_range &) {
			sum += 1;
		} catch (const std::runtime_error &e) {
			sum += e.what()[0];
		}
	}
	printf("%ld\n", sum);
	return 0;
}
#endif
