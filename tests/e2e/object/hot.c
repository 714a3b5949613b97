// SPDX-License-Identifier: Apache-2.0
/* A program with the constructs of C that compilers translate in different ways: switches, labels as values,
 * pointers to functions, loops, tail calls, thread-local data, cold paths. Prints one number. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int other_step(int x);
extern int (*const other_table[4])(int);

int dispatch(int op, int x);
int interpret(const unsigned char *code, int x);
int interpret_distances(const unsigned char *code, int x);

static __thread int per_thread;
static int depth;

static int __attribute__((noinline)) one(int x)
{
	return x + 1;
}

static int __attribute__((noinline)) two(int x)
{
	return 2 * x;
}

static int (*const table[])(int) = {one, two, other_step};

static void __attribute__((noinline, cold)) complain(int x)
{
	fprintf(stderr, "%d is wrong\n", x);
	abort();
}

int __attribute__((noinline)) dispatch(int op, int x)
{
	switch (op & 15) {
	case 0: return x + 3;
	case 1: return x * 5;
	case 2: return other_step(x);
	case 3: return x ^ 0x55;
	case 4: per_thread += x; return per_thread;
	case 5: return x - 7;
	case 6: return table[x & 1](x);
	case 7: return x >> 1;
	case 9: return -x;
	case 11: return other_table[x & 3](x);
	default: return x;
	}
}

/* A small interpreter with labels as values. */
int __attribute__((noinline)) interpret(const unsigned char *code, int x)
{
	static const void *const labels[] = {&&add, &&mul, &&xor, &&end};

	goto *labels[*code++ & 3];
add:
	x += 11;
	goto *labels[*code++ & 3];
mul:
	x *= 3;
	goto *labels[*code++ & 3];
	xor : x ^= 0x1234;
	goto *labels[*code++ & 3];
end:
	return x;
}

/* The same with distances, which have no relocations. */
int __attribute__((noinline)) interpret_distances(const unsigned char *code, int x)
{
	static const int distances[] = {&&add - &&add, &&sub - &&add, &&end - &&add};

	goto *(&&add + distances[*code++ % 3]);
add:
	x += 5;
	goto *(&&add + distances[*code++ % 3]);
sub:
	x -= 9;
	goto *(&&add + distances[*code++ % 3]);
end:
	return x;
}

static int __attribute__((noinline)) recurse(int n)
{
	if (n < 0)
		complain(n);
	depth++;
	return n < 2 ? n : recurse(n - 1) + recurse(n - 2);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1000;
	unsigned int sum = 0;
	unsigned char code[64];

	(void)argv;
	for (int i = 0; i < n; i++) {
		for (unsigned int k = 0; k < sizeof(code); k++)
			code[k] = (unsigned char)((i * 31 + (int)k * 7) % 3);
		code[63] = 3;
		sum = sum * 31 + (unsigned int)dispatch(i, (int)(sum & 0xffff));
		sum += (unsigned int)interpret(code, i);
		code[63] = code[40] = 2;
		sum ^= (unsigned int)interpret_distances(code, i);
	}
	printf("%u %d %d\n", sum, recurse(15), depth);
	return 0;
}
