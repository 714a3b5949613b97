// SPDX-License-Identifier: Apache-2.0
/*
 * The table's address is kept in a register, or spilled to the stack over calls and reloaded before
 * the jump, as in CPython.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noipa)) long help(long a, long b, long *mem) { mem[b & 7] ^= a; return a * 3 + b; }
__attribute__((noinline)) static long run(const unsigned char *pc, long n, long *mem)
{
	static const void *const table[] = { &&a0, &&a1, &&a2, &&a3, &&a4, &&a5, &&a6, &&a7 };
	const void *const *volatile t = table; /* on the stack, loaded for each jump */
	long x = n, y = 1, z = 2, u = 3, v = 4, w = 5;

	goto *t[*pc];
a0: x = help(x, y, mem); pc++; goto *t[*pc & 7];
a1: y = help(y, z, mem) + u; pc++; goto *t[*pc & 7];
a2: z = help(z, u, mem) - v; pc++; goto *t[*pc & 7];
a3: u = help(u, v, mem) ^ w; pc++; goto *t[*pc & 7];
a4: v = help(v, w, mem) + x; pc++; goto *t[*pc & 7];
a5: w = help(w, x, mem) - y; pc++; goto *t[*pc & 7];
a6: if ((x ^ w) & 16) pc++; else pc += 2; goto *t[*pc & 7];
a7: return x + y + z + u + v + w;
}
int main(int argc, char **argv)
{
	static const unsigned char code[] = { 0, 1, 2, 3, 6, 4, 5, 0, 6, 2, 1, 0, 3, 4, 7 };
	long mem[8] = {0}, sum = 0, n = argc > 1 ? atol(argv[1]) : 2000000;

	for (long i = 0; i < n; i++)
		sum += run(code, i, mem);
	printf("%ld\n", sum);
	return 0;
}
