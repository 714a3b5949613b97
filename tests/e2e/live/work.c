// SPDX-License-Identifier: Apache-2.0
/*
 * Work with switches, calls through pointers (also as first instruction of a block), computed gotos, qsort's calls
 * back, and addresses of functions and labels that are kept and compared. NR: how much of it.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef NR
#define NR 4
#endif
#define NOINLINE __attribute__((noinline))

typedef int step_fn(int);

static NOINLINE int twice(int x)
{
	return x * 2 + 1;
}
static NOINLINE int halve(int x)
{
	return x & 1 ? x * 3 + 1 : x / 2;
}
static NOINLINE int rotate(int x)
{
	return (int)((unsigned int)x << 5 | (unsigned int)x >> 27);
}
step_fn *exported = rotate;

/* The first instruction has room for a jump. */
static NOINLINE int starts_long(long x)
{
	int r;

	__asm__("mov $0x1234567, %%eax\n\tlea 0x54321(%%rax,%1), %0" : "=a"(r) : "D"(x));
	return r;
}

/* They have names that the linker sees. */
int kinds(int x);
int interpret(const unsigned char *code, int x);
int repeat(step_fn *f, int n);
int jumps(int n);

NOINLINE int kinds(int x)
{
	switch (x % 9) {
	case 0: return x / 3;
	case 1: return x ^ 0x55;
	case 2: return x - 7;
	case 3: return x % 11;
	case 4: return ~x;
	case 5: return x * 5;
	case 6: return x | 3;
	default: return 1;
	}
}

/* Addresses of functions and labels that outlive each change of the code. */
static step_fn *kept[4];
static const void *label;
static int nr_changed;

NOINLINE int interpret(const unsigned char *code, int x)
{
	static const void *const labels[] = {&&add, &&sub, &&mul, &&end};

	if (label && label != labels[1])
		nr_changed++;
	label = labels[1];
	goto *labels[*code++];
add:
	x += 3;
	goto *labels[*code++];
sub:
	x = kinds(x - 1);
	goto *labels[*code++];
mul:
	x *= 7;
	goto *labels[*code++];
end:
	return x;
}

/* The loop begins with a call through a register, and the call with the loop. */
NOINLINE int repeat(step_fn *f, int n)
{
	int x = n;

	do
		x = f(x) + n;
	while (--n);
	return x;
}

static int compare(const void *a, const void *b)
{
	int x = kinds(*(const int *)a & 0xffff), y = kinds(*(const int *)b & 0xffff);

	return x < y ? -1 : x > y ? 1 : *(const int *)a - *(const int *)b;
}

static jmp_buf back;

NOINLINE int jumps(int n)
{
	volatile int tries = 0;
	int x = setjmp(back);

	if (x < n % 5) {
		tries = tries + 1;
		longjmp(back, x + 1);
	}
	return tries;
}

static NOINLINE unsigned int round_of(unsigned int seed)
{
	static const unsigned char code[] = {0, 1, 2, 1, 1, 0, 2, 3};
	step_fn *now[4] = {twice, halve, exported, kinds};
	int items[64];
	unsigned int sum = seed;

	for (int i = 0; i < 4; i++) {
		if (kept[i] && kept[i] != now[i])
			nr_changed++;
		kept[i] = now[i];
		sum = sum * 31 + (unsigned int)repeat(now[i], (int)(seed % 17) + 2);
	}
	for (int i = 0; i < 64; i++)
		items[i] = (int)(sum = sum * 1664525u + 1013904223u) & 0x7fffff;
	qsort(items, 64, sizeof(items[0]), compare);
	for (int i = 0; i < 64; i++)
		sum = sum * 33 + (unsigned int)items[i];
	sum += (unsigned int)starts_long((int)sum);
	return sum + (unsigned int)interpret(code, (int)(sum & 0xfff)) +
	       (unsigned int)jumps((int)seed);
}

int main(int argc, char **argv)
{
	unsigned int sum = (unsigned int)argc;

	(void)argv;
	for (unsigned int i = 0; i < NR * 1000; i++)
		sum = sum * 7 + round_of(i + sum % 13);
	printf("%08x %d\n", sum, nr_changed);
	return 0;
}
