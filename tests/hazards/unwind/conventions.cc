// SPDX-License-Identifier: Apache-2.0
// Other calling conventions and unusual frames: ms_abi in both directions with exceptions,
// realigned and variable frames, functions that save all registers, naked functions, vector
// arguments.
// moves: main
#include <alloca.h>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "../hazard.h"

typedef int __attribute__((ms_abi)) ms_function(int, double, long, const char *, int, int);

KEEP int __attribute__((ms_abi)) windows(int a, double b, long c, const char *d, int e, int f)
{
	if (a % 11 == 0)
		throw std::runtime_error("windows");
	return a + (int)b + (int)c + (int)strlen(d) + e * f;
}

KEEP int calls_windows(ms_function *f, int n)
{
	double kept[8];

	for (int i = 0; i < 8; i++)
		kept[i] = n * i;
	int r = f(n, n / 2.0, n * 3L, "text", 5, 6);
	for (int i = 0; i < 8; i++)
		r += (int)kept[i];
	return r;
}

typedef float v8 __attribute__((vector_size(32)));
KEEP float aligned(int n, const v8 *in)
{
	alignas(64) float v[16];
	char *more = (char *)alloca(n % 50 + 1);

	memset(more, n, n % 50 + 1);
	for (int i = 0; i < 16; i++)
		v[i] = (*in)[i % 8] + more[0];
	if (n % 13 == 0)
		throw n;
	return v[n % 16] + (float)((unsigned long)v % 64);
}

KEEP double variadic(int nr, ...)
{
	double sum = 0;
	va_list ap;

	va_start(ap, nr);
	for (int i = 0; i < nr; i++)
		sum += i & 1 ? va_arg(ap, double) : va_arg(ap, int);
	va_end(ap);
	return sum;
}

extern "C" int naked_one(int n);
__asm__(".text\n"
	".globl naked_one\n"
	".type naked_one, @function\n"
	"naked_one:\n"
	".cfi_startproc\n"
	"	testl %edi, %edi\n"
	"	js 1f\n"
	"	leal 3(%rdi), %eax\n"
	"	ret\n"
	"1:	xorl %eax, %eax\n"
	"	ret\n"
	".cfi_endproc\n"
	".size naked_one, . - naked_one\n");

/* Twelve jumps in one asm statement, to labels of C and of the statement. */
KEEP int branches(int n)
{
	int v = n;

	__asm__ goto("cmpl $10, %0\n"
		     "jl %l[low]\n"
		     "cmpl $20, %0\n"
		     "jl %l[middle]\n"
		     :
		     : "r"(n)
		     : "cc"
		     : low, middle);
	return n + 100;
low:
	__asm__("1: incl %0\n"
		"testl $7, %0\n"
		"jnz 1b\n"
		"jmp 2f\n"
		".fill 3, 1, 0xcc\n"
		"2:"
		: "+r"(v)
		:
		: "cc");
	return v;
middle:
	return n - 200;
}

int main()
{
	v8 in = {1, 2, 3, 4, 5, 6, 7, 8};
	long sum = 0;

	for (int i = 1; i < 200; i++) {
		try {
			sum = sum * 31 + calls_windows(windows, i);
		} catch (const std::runtime_error &e) {
			sum += e.what()[0];
		}
		try {
			sum = sum * 31 + (long)aligned(i, &in);
		} catch (int e) {
			sum += e;
		}
		sum = sum * 31 + (long)variadic(4, i, 0.5, i * 2, 2.5) + naked_one(i - 100) + branches(i % 40);
	}
	printf("%ld\n", sum);
	return 0;
}
