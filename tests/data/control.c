// SPDX-License-Identifier: Apache-2.0
// Control flow that is easy to break: switches dense, sparse and nested, computed goto in all its
// forms, tail calls, setjmp and longjmp, nested functions with non-local goto, varargs, recursion.
#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

static unsigned int rng = 12345;

static unsigned int next(void)
{
	rng = rng * 1103515245u + 12345u;
	return rng >> 16 & 0x7fff;
}

static NOINLINE int dense(int n, int x)
{
	switch (n) {
	case 0: return x + 1;
	case 1: return x * 3;
	case 2: x ^= 0x55; /* fall through */
	case 3: return x - 7;
	case 4: return x << 2;
	case 5: return -x;
	case 6: return x / 3;
	case 7: return x % 5;
	case 8: return ~x;
	case 9: return x * x;
	case 12: return x & 0xff;
	case 13: return x | 0x100;
	default: return 0;
	}
}

static NOINLINE int sparse(int n)
{
	switch (n) {
	case -1000: return 1;
	case -5: return 2;
	case 17: return 3;
	case 1000: return 4;
	case 100000: return 5;
	case 0x7fffffff: return 6;
	default: return 7;
	}
}

static NOINLINE int biased(unsigned char c)
{
	switch (c) {
	case 'a': return 10;
	case 'b': return 21;
	case 'c': return 32;
	case 'd': return 43;
	case 'e': return 54;
	case 'f': return 65;
	case 'g': return 76;
	case 'h': return 87;
	default: return 1;
	}
}

static NOINLINE int nested_switch(int a, int b)
{
	int r = 0;

	switch (a) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4:
		switch (b) {
		case 0: r = 1; break;
		case 1: r = 22; break;
		case 2: r = 333; break;
		case 3: r = 4444; break;
		case 4: r = 55555; break;
		case 5: r = 666666; break;
		}
		r += a;
		break;
	case 5: r = b * 5; break;
	case 6: r = b * 6; break;
	case 7: r = b - 7; break;
	}
	return r;
}

/* A byte-code interpreter with label addresses in a constant table. */
static NOINLINE long interpret(const unsigned char *code)
{
	static const void *const labels[] = {&&push, &&add, &&mul, &&dup, &&swap, &&stop};
	long stack[64], *sp = stack, t;

	goto *labels[*code++];
push:
	*sp++ = *code++;
	goto *labels[*code++];
add:
	sp--;
	sp[-1] += sp[0];
	goto *labels[*code++];
mul:
	sp--;
	sp[-1] *= sp[0];
	goto *labels[*code++];
dup:
	sp[0] = sp[-1];
	sp++;
	goto *labels[*code++];
swap:
	t = sp[-1];
	sp[-1] = sp[-2];
	sp[-2] = t;
	goto *labels[*code++];
stop:
	return sp[-1];
}

/* The same with label differences, as in position-independent interpreters. */
static NOINLINE long interpret_differences(const unsigned char *code)
{
	static const int labels[] = {&&inc - &&inc, &&dec - &&inc, &&twice - &&inc, &&end - &&inc};
	long v = 1;

	goto *(&&inc + labels[*code++]);
inc:
	v++;
	goto *(&&inc + labels[*code++]);
dec:
	v -= 3;
	goto *(&&inc + labels[*code++]);
twice:
	v *= 2;
	goto *(&&inc + labels[*code++]);
end:
	return v;
}

/* Labels that are stored, compared and counted. */
static NOINLINE int label_identity(int n)
{
	static void *const table[] = {&&a, &&b, &&c};
	void *kept = table[n % 3];
	int same = 0;

	for (int i = 0; i < 3; i++)
		same += table[i] == kept;
	if (kept == &&b)
		same += 10;
	goto *kept;
a:
	return same + 100;
b:
	return same + 200;
c:
	return same + 300;
}

static NOINLINE int tail_b(int n, int acc);
static NOINLINE int tail_a(int n, int acc)
{
	if (n <= 0)
		return acc;
	return tail_b(n - 1, acc + n);
}

static NOINLINE int tail_b(int n, int acc)
{
	if (n & 1)
		return tail_a(n - 2, acc ^ n);
	return tail_a(n, acc + 1);
}

static int twice(int x) { return 2 * x; }
static int thrice(int x) { return 3 * x; }
static int (*const operations[])(int) = {twice, thrice, abs};

static NOINLINE int tail_through_table(unsigned int i, int x)
{
	return operations[i % 3](x);
}

static jmp_buf env;

static NOINLINE void jumps(int depth)
{
	if (depth == 0)
		longjmp(env, 5);
	jumps(depth - 1);
	next();
}

static NOINLINE int lands(int depth)
{
	volatile int seen = 0;
	int v = setjmp(env);

	seen += v + 1;
	if (v < 5)
		jumps(depth);
	return seen;
}

#ifdef __clang__
static int nonlocal(int n) { return n > 3 ? n * 7 : n; }
#else
static NOINLINE int nonlocal(int n)
{
	__label__ out;
	int result = n;

	NOINLINE void inner(int k)
	{
		if (k > 3) {
			result = k * 7;
			goto out;
		}
		result += 0 * k;
	}
	int (*callback)(int) = NULL;
	inner(n);
	(void)callback;
out:
	return result;
}
#endif

static NOINLINE double sum(const char *types, ...)
{
	double total = 0;
	va_list ap;

	va_start(ap, types);
	for (; *types; types++) {
		switch (*types) {
		case 'i': total += va_arg(ap, int); break;
		case 'd': total += va_arg(ap, double); break;
		case 'l': total += va_arg(ap, long); break;
		case 's': total += strlen(va_arg(ap, const char *)); break;
		}
	}
	va_end(ap);
	return total;
}

static NOINLINE int aligned_locals(int n)
{
	float v[16] __attribute__((aligned(32)));
	char *more = alloca(n + 16);

	memset(more, n, n + 16);
	for (int i = 0; i < 16; i++)
		v[i] = i * 0.5f + more[i % (n + 1)];
	return (int)v[7] + (int)((unsigned long)v % 32);
}

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(int argc, char **argv)
{
	static const unsigned char program[] = {0, 5, 3, 2, 0, 9, 4, 1, 3, 2, 5};
	static const unsigned char diffs[] = {0, 2, 1, 2, 0, 3};
	int values[200];
	long check = 0;

	(void)argv;
	for (int i = 0; i < 5000; i++) {
		int x = (int)next();

		check = check * 31 + dense(x % 16 - 1, x);
		check = check * 31 + sparse(i == 77 ? 100000 : i % 20 == 0 ? -5 : x);
		check = check * 31 + biased((unsigned char)x);
		check = check * 31 + nested_switch(x % 9, (x >> 4) % 7);
		check = check * 31 + interpret(program);
		check = check * 31 + interpret_differences(diffs);
		check = check * 31 + label_identity(x);
		check = check * 31 + tail_a(x % 50, argc);
		check = check * 31 + tail_through_table((unsigned int)x, x);
		check = check * 31 + lands(x % 5);
		check = check * 31 + nonlocal(x % 8);
		check = check * 31 + (long)sum("idls", x, 0.5, 7L, "four");
		check = check * 31 + aligned_locals(x % 40);
	}
	for (int i = 0; i < 200; i++)
		values[i] = (int)next();
	qsort(values, 200, sizeof(values[0]), compare);
	for (int i = 0; i < 200; i++)
		check = check * 31 + values[i];
	printf("%ld\n", check);
	return (int)(check & 63);
}
