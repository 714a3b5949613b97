// SPDX-License-Identifier: Apache-2.0
/*
 * Labels as 32-bit differences from a first label, as in Ruby and OCaml. They need no relocation in
 * a position-independent file.
 */
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static long run(const unsigned char *pc, long n)
{
	static const int table[] = { &&a0 - &&a0, &&a1 - &&a0, &&a2 - &&a0, &&a3 - &&a0, &&a4 - &&a0 };
	long x = n, y = 1;

	goto *(&&a0 + table[*pc]);
a0: x += y; pc++; goto *(&&a0 + table[*pc]);
a1: y ^= x >> 3; pc++; goto *(&&a0 + table[*pc]);
a2: if (x & 8) { pc++; goto *(&&a0 + table[*pc]); } pc += 2; goto *(&&a0 + table[*pc]);
a3: x = x * 5 + 1; pc++; goto *(&&a0 + table[*pc]);
a4: return x ^ y;
}
int main(int argc, char **argv)
{
	static const unsigned char code[] = { 0, 1, 2, 3, 0, 2, 1, 3, 0, 4 };
	long sum = 0, n = argc > 1 ? atol(argv[1]) : 5000000;

	for (long i = 0; i < n; i++)
		sum += run(code, i);
	printf("%ld\n", sum);
	return 0;
}
