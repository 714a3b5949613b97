// SPDX-License-Identifier: Apache-2.0
// A switch whose other cases are impossible: clang lets their entries of the table lead to the
// function's end, where no instruction of it stands.
// moves: pick
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static int pick(unsigned k, int v)
{
	int r;

	switch (k) {
	case 0: r = v * 3; break;
	case 2: r = v ^ 5; break;
	case 3: r = v - 77; break;
	case 5: r = v / 3; break;
	case 8: r = v << 2; break;
	case 11: r = ~v; break;
	case 12: r = v % 7; break;
	default: __builtin_unreachable();
	}
	return r * 31 + (int)k;
}
int main(void)
{
	static const unsigned cases[] = {0, 2, 3, 5, 8, 11, 12};
	int h = 1;

	for (int i = 0; i < 1000; i++)
		h = pick(cases[(unsigned)h % 7], h + i);
	printf("%d\n", h);
	return 0;
}
