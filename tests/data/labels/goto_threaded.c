// SPDX-License-Identifier: Apache-2.0
/*
 * Direct threading: label addresses are stored into code objects at run time and jumped through, as
 * in PHP and PostgreSQL.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct op { void *handler; long arg; };
/* With KNOWN, clang finds out what these hold, and main() has the addresses of labels in its own instructions. */
#ifdef KNOWN
#define MAY_CHANGE
#else
#define MAY_CHANGE volatile
#endif
static void *const *MAY_CHANGE labels;
static int nr_labels;
static void *MAY_CHANGE halt;
__attribute__((noinline)) static long run(struct op *ip, long n)
{
	static void *const table[] = { &&op_push, &&op_add, &&op_sub, &&op_mul, &&op_dup, &&op_jnz, &&op_swap, &&op_halt };
	long st[16], *sp = st;

	if (!ip) {
		halt = &&op_halt;
		labels = table;
		nr_labels = 8;
		return 0;
	}
	*++sp = n;
	goto *ip->handler;
op_push: *++sp = ip->arg; ip++; goto *ip->handler;
op_add: sp[-1] += *sp; sp--; ip++; goto *ip->handler;
op_sub: sp[-1] -= *sp; sp--; ip++; goto *ip->handler;
op_mul: sp[-1] *= *sp; sp--; ip++; goto *ip->handler;
op_dup: sp[1] = *sp; sp++; ip++; goto *ip->handler;
op_swap: { long t = *sp; *sp = sp[-1]; sp[-1] = t; } ip++; goto *ip->handler;
op_jnz: if (*sp) { ip += ip->arg; goto *ip->handler; } ip++; goto *ip->handler;
op_halt: return sp[-1];
}
/*
 * Finds the number of a label address, by comparing and by searching a sorted array, as a debugger
 * of such an interpreter does.
 */
static int cmp(const void *a, const void *b) { const char *x = *(char *const *)a, *y = *(char *const *)b; return x < y ? -1 : x > y; }
static int number_of(const void *handler)
{
	for (int i = 0; i < nr_labels; i++)
		if (labels[i] == handler)
			return i;
	return -1;
}
int main(int argc, char **argv)
{
	static const struct { int op; long arg; } code[] = { {0, 1}, {6, 0}, {4, 0}, {0, 3}, {3, 0}, {1, 0}, {0, 1}, {2, 0}, {7, 0} };
	struct op prog[16];
	void *sorted[8];
	long sum = 0, n = argc > 1 ? atol(argv[1]) : 3000000;

	run(NULL, 0);
	memcpy(sorted, labels, sizeof(sorted));
	qsort(sorted, 8, sizeof(*sorted), cmp);
	for (unsigned i = 0; i < sizeof(code) / sizeof(*code); i++)
		prog[i] = (struct op){ labels[code[i].op], code[i].arg };
	for (long i = 0; i < n; i++)
		sum += run(prog, i);
	for (unsigned i = 0; i < sizeof(code) / sizeof(*code); i++)
		printf("%d %d\n", number_of(prog[i].handler), bsearch(&prog[i].handler, sorted, 8, sizeof(*sorted), cmp) != NULL);
	printf("%d %ld\n", prog[8].handler == halt, sum);
	return 0;
}
