// SPDX-License-Identifier: Apache-2.0
// A tail call through a parameter that stays in its register across calls of local functions
// (-fipa-ra), and one after many tests.
// moves: walk visit main
// levels: -O2 -O3 -Os
#include <stdio.h>

#include "../hazard.h"

KEEP static void check(void) { __asm__ volatile(""); }

KEEP int show(void *p, void *q)
{
	(void)q;
	printf("%d\n", *(int *)p);
	return 0;
}

KEEP int walk(int *n, int (*then)(void *, void *), void *ctx)
{
	check();
	if (*n == 3) {
		check();
		return 0;
	}
	return then(n + 1, ctx);
}

KEEP int visit(int **n, int (*then)(void *, void *), void *ctx)
{
	int ret;

#define VISIT(i)                                                                                   \
	if (n[i] && (ret = then(n[i], ctx)))                                                       \
	return ret
	VISIT(0);
	VISIT(1);
	VISIT(2);
	VISIT(3);
	VISIT(4);
	VISIT(5);
	VISIT(6);
	VISIT(7);
	VISIT(8);
	VISIT(9);
	VISIT(10);
	VISIT(11);
	VISIT(12);
	VISIT(13);
	VISIT(14);
	VISIT(15);
	return then(n[16], ctx);
}

int main(int argc, char **argv)
{
	int v[17], *p[17];

	(void)argv;
	for (int i = 0; i < 17; i++) {
		v[i] = i * argc;
		p[i] = i % 5 ? &v[i] : NULL;
	}
	p[16] = &v[16];
	for (int i = 0; i < 8; i++)
		walk(&v[i], show, 0);
	return visit(p, show, 0);
}
