// SPDX-License-Identifier: Apache-2.0
// Switches and computed gotos in the shapes that compilers make tables of. Prints a number that
// depends on every case, so that it can also be run.
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

volatile int sink;

NOINLINE int dense(int x)
{
	switch (x) {
	case 0: sink = 3; return 11;
	case 1: sink = 1; return 27;
	case 2: sink = 4; return x * sink;
	case 3: sink = 1; return 31 + sink;
	case 4: sink = 5; return 49;
	case 5: sink = 9; return sink * 3;
	case 6: sink = 2; return 77 - sink;
	default: return -1;
	}
}

/* The cases start at 20, so the index is biased. */
NOINLINE int biased(unsigned int x)
{
	switch (x) {
	case 20: sink += 3; return sink ^ 1;
	case 21: sink += 1; return sink ^ 27;
	case 22: sink += 4; return sink ^ 5;
	case 23: sink += 7; return sink ^ 31;
	case 25: sink += 5; return sink ^ 49;
	case 26: sink += 9; return sink ^ 19;
	case 29: sink += 2; return sink ^ 77;
	default: sink--; return -2;
	}
}

/* Every possible value has a case. */
NOINLINE int full_byte(unsigned char c)
{
	switch (c >> 5) {
	case 0: sink ^= 13; return 1;
	case 1: sink += 11; return sink;
	case 2: sink -= 4; return 9;
	case 3: sink ^= 31; return sink + 4;
	case 4: sink *= 5; return 14;
	case 5: sink ^= 9; return sink - 9;
	case 6: sink += 2; return 8;
	default: sink ^= 6; return sink + 1;
	}
}

NOINLINE int masked(int x)
{
	switch (x & 7) {
	case 0: sink = x + 13; break;
	case 1: sink = x - 11; break;
	case 2: sink = x * 4; break;
	case 3: sink = x ^ 31; break;
	case 4: sink = x * 5; break;
	case 5: sink = x ^ 9; break;
	case 6: sink = x + 2; break;
	case 7: sink = x ^ 6; break;
	}
	return sink;
}

NOINLINE void cold_exit(int x)
{
	printf("bad opcode %d\n", x);
	exit(3);
}

/* A switch in a loop: the base is hoisted, some cases are cold. */
NOINLINE int loop(const unsigned char *code, int n)
{
	int acc = 1;

	for (int i = 0; i < n; i++) {
		switch (code[i]) {
		case 'a': acc += 3; break;
		case 'b': acc *= 3; break;
		case 'c': acc ^= 0x55; break;
		case 'd': acc -= 7; break;
		case 'e': acc = acc << 1 | 1; break;
		case 'f': acc = sink; break;
		case 'g': acc ^= acc >> 3; break;
		case 'h': sink = acc; break;
		case 'i': cold_exit(acc); break;
		case 'j': cold_exit(-acc); break;
		default: acc++; break;
		}
	}
	return acc;
}

/* Two switches on one value. */
NOINLINE int twice(long x)
{
	int r = 0;

	switch (x) {
	case 1: r = sink + 1; break;
	case 2: r = sink * 7; break;
	case 3: r = sink - 3; break;
	case 4: r = sink ^ 21; break;
	case 5: r = sink / 3; break;
	case 6: r = sink % 5; break;
	}
	sink = r;
	switch (x) {
	case 1: r += dense(sink); break;
	case 2: r -= biased((unsigned int)sink); break;
	case 3: r ^= full_byte((unsigned char)sink); break;
	case 4: r += masked(sink) * 3; break;
	case 5: r -= sink; break;
	case 6: r ^= 99; break;
	}
	return r;
}

/* Computed gotos: one table of labels, many jumps. */
NOINLINE int threaded(const unsigned char *code)
{
	static const void *const labels[] = {&&stop, &&inc, &&twice, &&neg, &&mix, &&skip, &&dump};
	int acc = 5;

#define NEXT goto *labels[*code++]
	NEXT;
inc:
	acc += 1;
	NEXT;
twice:
	acc *= 2;
	NEXT;
neg:
	acc = -acc;
	NEXT;
mix:
	acc ^= sink + 0x1234;
	NEXT;
skip:
	code++;
	NEXT;
dump:
	sink = acc;
	NEXT;
stop:
	return acc;
}

/* An array of functions looks like a switch, but leaves the function. */
static int one(int x) { return x + sink; }
static int two(int x) { return x * 2 - sink; }
static int three(int x) { return x ^ sink; }
static int four(int x) { return x - 5 * sink; }
static int (*const functions[])(int) = {one, two, three, four};

NOINLINE int dispatch(unsigned int i, int x)
{
	return functions[i & 3](x);
}

NOINLINE int dispatch_checked(unsigned int i, int x)
{
	if (i > 3)
		return 0;
	return functions[i](x);
}

struct object {
	const struct ops {
		int (*get)(struct object *);
		int (*set)(struct object *, int);
	} *ops;
	int value;
};

static int get(struct object *o) { return o->value; }
static int set(struct object *o, int v) { return o->value = v; }
static const struct ops ops = {get, set};

NOINLINE int method(struct object *o, int v)
{
	if (v < 0)
		return o->ops->get(o);
	return o->ops->set(o, v);
}

NOINLINE int sparse(int x)
{
	switch (x) {
	case 1: return 10 + sink;
	case 1000: return 20 - sink;
	case 100000: return 30 ^ sink;
	case -7: return 40 * sink;
	default: return 0;
	}
}

int main(void)
{
	static const unsigned char code[] = {1, 2, 4, 3, 6, 5, 0, 1, 2, 6, 4, 0};
	struct object o = {&ops, 3};
	long sum = 0;

	for (int i = -3; i < 600; i++) {
		sum = sum * 31 + dense(i) + biased((unsigned int)i) + full_byte((unsigned char)i);
		sum = sum * 31 + masked(i) + twice(i % 9) + sparse(i * 100);
		sum = sum * 31 + loop((const unsigned char *)"abcdefghgfedcbaxyz", 18);
		sum = sum * 31 + threaded(code) + dispatch((unsigned int)i, i);
		sum = sum * 31 + dispatch_checked((unsigned int)i, i) + method(&o, i % 5 - 1);
	}
	printf("%ld\n", sum);
	return 0;
}
