// SPDX-License-Identifier: Apache-2.0
/* For test_verify_versions.c: a function with a switch, and one that only names data. */
#include <stdio.h>

volatile int sink;

__attribute__((noinline)) int chosen(int x, int y)
{
	switch (x) {
	case 0: sink += y; return y * 3;
	case 1: sink ^= y; return y - 7;
	case 2: sink -= 3; return y ^ 5;
	case 3: sink *= 5; return y + 100;
	case 4: sink++; return y * y;
	case 5: return y / 3;
	case 6: return sink + y;
	default: return x;
	}
}

__attribute__((noinline)) int said(int x)
{
	fputs(x & 1 ? "odd\n" : "even\n", stdout);
	for (int i = 0; i < x; i++)
		sink += i;
	return x + 1;
}

int main(void)
{
	int s = 0;

	for (int i = 0; i < 400; i++)
		s += chosen(i % 9, i);
	for (int i = 0; i < 4; i++)
		s += said(i);
	printf("%d\n", s);
	return 0;
}
