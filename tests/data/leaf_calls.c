// SPDX-License-Identifier: Apache-2.0
/*
 * leaf_calls - calls functions that call others themselves, or end in jumps to them: directly, through pointers, in
 * libraries, with arrays and arguments in the stack, with a call that does not return, or one that returns twice.
 * "steps" as in leaf_stack.c. As C++, exceptions pass such functions, or are caught by their callers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include "steps.h"

#define LEAF __attribute__((noinline, noclone, noipa))

#ifdef __cplusplus
extern "C" {
#endif
unsigned long asm_inner(unsigned long a, unsigned long b);
unsigned long asm_calls(unsigned long a, unsigned long b);
unsigned long asm_tails(unsigned long a, unsigned long b);
unsigned long asm_only_tails(unsigned long a, unsigned long b);
unsigned long asm_itself(unsigned long a, unsigned long b);
unsigned long asm_at_once(unsigned long a, unsigned long b);
unsigned long asm_looks_up(unsigned long a, unsigned long b);
#ifdef __cplusplus
}
#endif

__asm__("begin asm_inner\n"
	" lea 3(%rdi,%rsi,4), %rax\n imul $0x5e3779b1, %rax, %rax\n ret\n"
	"end asm_inner\n"
	/* Calls with saved registers, in a loop; two returns. */
	"begin asm_calls\n"
	" save rbx\n save r12\n lower 8\n mov %rdi, %rbx\n mov %rsi, %r12\n and $3, %ebx\n"
	"1: mov %r12, %rdi\n mov %rbx, %rsi\n call asm_inner\n add %rax, %r12\n"
	" test $5, %al\n je 2f\n dec %ebx\n jns 1b\n mov %r12, %rax\n raise 8\n back r12\n back rbx\n ret\n"
	"2: .cfi_adjust_cfa_offset 24\n .cfi_rel_offset %rbx, 16\n .cfi_rel_offset %r12, 8\n"
	" lea 9(%r12), %rax\n raise 8\n back r12\n back rbx\n ret\n"
	"end asm_calls\n"
	/* A call, and then a jump to another function, or a return; the unwind rows of the pops stay behind. */
	"begin asm_tails\n"
	" save rbx\n mov %rsi, %rbx\n call asm_inner\n mov %rax, %rdi\n mov %rbx, %rsi\n"
	" test $3, %al\n je 1f\n pop %rbx\n .cfi_adjust_cfa_offset -8\n jmp asm_inner\n"
	"1: .cfi_adjust_cfa_offset 8\n back rbx\n ret\n"
	"end asm_tails\n"
	/* Uses no stack. */
	"begin asm_only_tails\n"
	" xor %rsi, %rdi\n test $8, %sil\n jne 1f\n jmp asm_inner\n1: add $77, %rsi\n jmp asm_calls\n"
	"end asm_only_tails\n"
	"begin asm_itself\n"
	" lower 8\n mov %rdi, %rax\n and $7, %edi\n je 1f\n dec %edi\n call asm_itself\n inc %rax\n"
	"1: raise 8\n ret\n"
	"end asm_itself\n"
	/* A call with the stack pointer of the entry: what it calls may look for the caller. */
	"begin asm_at_once\n"
	" call asm_looks_up\n add %rdi, %rax\n ret\n"
	"end asm_at_once\n"
	/* Was the caller called? */
	"begin asm_looks_up\n"
	" mov 8(%rsp), %rdx\n xor %eax, %eax\n cmpb $0xe8, -5(%rdx)\n sete %al\n ret\n"
	"end asm_looks_up\n");

LEAF static unsigned long inner(unsigned long a, unsigned long b)
{
	return a * 31 + (b ^ a >> 7);
}

LEAF static unsigned long twice(unsigned long a, unsigned long b)
{
	unsigned long x = inner(a, b);

	return x ^ inner(b, x + a);
}

LEAF static unsigned long tails(unsigned long a, unsigned long b)
{
	return inner(b, a + 1);
}

LEAF static unsigned long tails_or_not(unsigned long a, unsigned long b)
{
	unsigned long x = a * b;

	if (x & 6)
		return x + 9;
	x = inner(a, x);
	return x & 1 ? twice(x, b) : x;
}

/* Calls and jumps that lead to a library */
LEAF static unsigned long in_library(const char *s, unsigned long b)
{
	unsigned long n = strlen(s);

	n += strspn(s, "123456789");
	return n * b + strtoul(s, NULL, 16);
}

LEAF static unsigned long tails_to_library(const char *s)
{
	return strtoul(s + 1, NULL, 16);
}

LEAF static unsigned long by_pointer(unsigned long (*f)(unsigned long, unsigned long),
				     unsigned long a)
{
	return f(a, 5) + f(a + 1, 6);
}

LEAF static unsigned long sum_of(const unsigned long *x, unsigned long n)
{
	unsigned long sum = 0;

	for (unsigned long i = 0; i < n; i++)
		sum = sum * 3 + x[i];
	return sum;
}

LEAF static unsigned long array(unsigned long a)
{
	unsigned long x[20];

	for (unsigned long i = 0; i < 20; i++)
		x[i] = inner(a, i);
	return sum_of(x, 20);
}

LEAF static void never(unsigned long a)
{
	printf("never: %lx\n", a);
	exit(1);
}

/* The last instruction of its code is a call that does not return. */
LEAF static unsigned long stops(unsigned long a, unsigned long b)
{
	unsigned long x = inner(a, b);

	if (__builtin_expect(nr_wrong > 1000000, 0))
		never(x);
	return inner(x, a);
}

LEAF static unsigned long stacked(long a, long b, long c, long d, long e, long f, long g, long h)
{
	unsigned long sum = inner((unsigned long)g, (unsigned long)h);

	return sum * (unsigned long)(a + b - c * d - e * f) + inner(sum, (unsigned long)h);
}

LEAF static unsigned long passes_stacked(long a, long b)
{
	return stacked(a, b, 3, 4, 5, 6, a ^ b, b - a) + 1;
}

LEAF static unsigned long several(unsigned int n, ...)
{
	unsigned long sum = 0;
	va_list list;

	va_start(list, n);
	while (n--)
		sum = inner(sum, va_arg(list, unsigned long));
	va_end(list);
	return sum;
}

LEAF static void leaps(jmp_buf *to, unsigned long a)
{
	if (inner(a, 3) & 1)
		longjmp(*to, 1);
}

/* Returns twice from a call, with the registers that were saved there. */
LEAF static unsigned long returns_twice(unsigned long a, unsigned long b)
{
	jmp_buf buffer;
	volatile unsigned long k = a ^ b;

	if (setjmp(buffer))
		return k * 3 + b;
	k += inner(a, b);
	leaps(&buffer, k);
	return k + a;
}

LEAF unsigned long work(unsigned long n)
{
	unsigned long m = n;
	char text[20];

	for (unsigned int i = 0; i < n; i++) {
		m += twice(m, i);
		m ^= tails(m, i);
		m += tails_or_not(m, i);
		snprintf(text, sizeof(text), "%lx", m & 0xffff);
		m ^= in_library(text, i);
		m += tails_to_library(text);
		m ^= by_pointer(i & 1 ? inner : asm_inner, m);
		m += array(m);
		m ^= stops(m, i);
		m += passes_stacked((long)m, i);
		m ^= several(3, m, m + i, m ^ i);
		m += returns_twice(m, i);
		m += asm_calls(m, i);
		m ^= asm_tails(m, i);
		m += asm_only_tails(m, i);
		m += asm_itself(m, i);
		m += asm_at_once(m, i);
	}
	return m;
}

#ifdef __cplusplus
LEAF static unsigned long throws(unsigned long a)
{
	if (a % 3 == 0)
		throw (int)a;
	return a * 7;
}

/* No landing pad: exceptions pass. */
LEAF static unsigned long passed(unsigned long a, unsigned long b)
{
	unsigned long x = throws(a) + b;

	return x ^ throws(b + a);
}

LEAF static unsigned long passed_too(unsigned long a, unsigned long b)
{
	unsigned long k = a * 11, m = b * 13, l = passed(a, b);

	return (l ^ passed(k, m)) + k + m;
}

LEAF static unsigned long caught(unsigned long a)
{
	unsigned long m = a * 5, k = a ^ 99;

	try {
		m += passed_too(a, k);
		m ^= k;
	} catch (int value) {
		m = m * 100 + (unsigned long)value;
	}
	return m ^ k;
}

/* The call that throws has a landing pad. */
LEAF static unsigned long caught_here(unsigned long a)
{
	unsigned long m = a * 3, k = a ^ 77;

	try {
		m += passed(k, a);
		k += passed(a, m);
	} catch (int value) {
		m = m * 100 + (unsigned long)value + k;
	}
	return m ^ k;
}
#endif

int main(int argc, char **argv)
{
	int wrong = run_steps(argc, argv, 20000);

#ifdef __cplusplus
	for (unsigned long i = 1; i < 9; i++)
		printf("%lx %lx\n", caught(i), caught_here(i));
#endif
	return wrong;
}
