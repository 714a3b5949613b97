// SPDX-License-Identifier: Apache-2.0
// Computed goto in every form: tables of addresses and of differences (int, short), tables written
// at run time, labels in structures, stored, compared, passed to functions; threaded code.
// moves: main
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../hazard.h"

KEEP long absolute(const unsigned char *code)
{
	static const void *const labels[] = {&&push, &&add, &&mul, &&dup, &&jump, &&stop};
	long stack[64], *sp = stack;
	int budget = 200;

#define NEXT                          \
	if (--budget < 0)             \
		goto stop;            \
	goto *labels[*code++]
	*sp = 1;
	NEXT;
push:
	*++sp = *code++;
	NEXT;
add:
	sp--;
	sp[0] += sp[1];
	NEXT;
mul:
	sp--;
	sp[0] *= sp[1];
	NEXT;
dup:
	sp[1] = sp[0];
	sp++;
	NEXT;
jump:
	code -= *code;
	NEXT;
stop:
	return sp[0] + budget;
#undef NEXT
}

KEEP long differences(const unsigned char *code)
{
	static const int labels[] = {&&base - &&base, &&one - &&base, &&two - &&base,
				     &&three - &&base, &&end - &&base};
	long v = 3;

	goto *(&&base + labels[*code++]);
base:
	v += 1;
	goto *(&&base + labels[*code++]);
one:
	v *= 5;
	goto *(&&base + labels[*code++]);
two:
	v -= 77;
	goto *(&&base + labels[*code++]);
three:
	v ^= 0x1234;
	goto *(&&base + labels[*code++]);
end:
	return v;
}

/* The program is an array of label addresses. */
KEEP long threaded(int rounds)
{
	void *program[16];
	void **pc = program;
	long v = rounds;

	for (int i = 0; i < 15; i++)
		program[i] = i % 3 == 0 ? &&a : i % 3 == 1 ? &&b : &&c;
	program[15] = &&d;
	goto **pc++;
a:
	v += 3;
	goto **pc++;
b:
	v *= 3;
	goto **pc++;
c:
	v -= 11;
	goto **pc++;
d:
	if (--rounds > 0) {
		pc = program;
		goto **pc++;
	}
	return v;
}

/* A table that is written before its use, and labels that are compared with each other. */
KEEP long written(int n)
{
	static void *labels[4];
	static struct {
		int key;
		void *where;
	} known[2];
	long v = n;

	if (!labels[0]) {
		labels[0] = &&first;
		labels[1] = &&second;
		labels[2] = &&third;
		labels[3] = &&first;
		known[0].where = &&second;
		known[1].where = &&third;
	}
	for (int i = 0; i < 2; i++)
		if (labels[n & 3] == known[i].where)
			v += 1000 * (i + 1);
	goto *labels[n & 3];
first:
	return v + 1;
second:
	return v * 2;
third:
	return v * 3;
}

/* A label is passed to a function and returned by it. */
KEEP void *keep(void *p) { return OPAQUE(p); }

KEEP long given(int n)
{
	void *where = keep(n & 1 ? &&odd : &&even);
	long far = (char *)&&odd - (char *)&&even;

	if (n > 50)
		goto *keep((char *)&&even + far);
	goto *where;
odd:
	return n * 5 + (far != 0);
even:
	return n / 2;
}

/* The middle of a table, a biased base, two jumps through one table. */
KEEP long shared(int a, int b)
{
	static const void *const labels[] = {&&m2, &&m1, &&zero, &&p1, &&p2};
	const void *const *middle = labels + 2;
	long v = 0;
	int turn = 0;

	goto *middle[a];
m2:
	v += 10;
	goto again;
m1:
	v += 200;
	goto again;
zero:
	v += 3000;
	goto again;
p1:
	v += 40000;
	goto again;
p2:
	v += 500000;
again:
	if (turn++)
		return v;
	goto *labels[b];
}

int main(void)
{
	static const unsigned char loop[] = {0, 3, 1, 0, 2, 2, 3, 1, 4, 9, 5};
	static const unsigned char diffs[] = {0, 1, 3, 2, 1, 0, 3, 4};
	long sum = 0;

	for (int i = 0; i < 300; i++) {
		unsigned char code[40];

		for (int k = 0; k < 38; k++)
			code[k] = (unsigned char)(hazard_next() % 4);
		code[38] = 4;
		sum = sum * 31 + absolute(loop);
		sum = sum * 31 + differences(diffs);
		sum = sum * 31 + differences(code);
		sum = sum * 31 + threaded(i % 5);
		sum = sum * 31 + written(i);
		sum = sum * 31 + given(i % 100);
		sum = sum * 31 + shared(i % 5 - 2, i % 3);
	}
	printf("%ld\n", sum);
	return 0;
}
