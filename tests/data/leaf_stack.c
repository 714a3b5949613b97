// SPDX-License-Identifier: Apache-2.0
/*
 * leaf_stack - calls functions that save registers or use the stack, and call nothing: with arrays, arguments in the
 * stack, the red zone, addresses of variables, several returns. With the argument "steps", a trap behind each
 * instruction unwinds to the program's start, and compares the registers and the frame that the unwinder finds there.
 * As C++, a signal handler throws out of such functions, through their callers. Prints what came out, and how often
 * the unwinder was wrong.
 */
#include <signal.h>
#include <stdio.h>

#include "steps.h"

#define LEAF __attribute__((noinline, noclone, noipa))

#ifdef __cplusplus
extern "C" {
#endif
unsigned long asm_saves(unsigned long a, unsigned long b);
unsigned long asm_array(unsigned long a, unsigned long b);
unsigned long asm_early(unsigned long a, unsigned long b);
unsigned long asm_place(unsigned long a, unsigned long b);
unsigned long calls_at_once(unsigned long a, unsigned long b);
unsigned long by_frame_pointer(unsigned long n);
#ifdef __cplusplus
}
#endif

__asm__(	/* Only registers are saved. */
	"begin asm_saves\n"
	" save rbx\n save r12\n mov %rdi, %rbx\n lea (%rbx,%rsi,2), %r12\n test $1, %dil\n je 1f\n"
	" xor %rsi, %r12\n1: lea 7(%r12), %rax\n back r12\n back rbx\n ret\n"
	"end asm_saves\n"
	/* An array in a frame, and a register that is changed only behind a branch. */
	"begin asm_array\n"
	" lower 40\n save rbp\n mov %rdi, 8(%rsp)\n mov %rsi, 16(%rsp)\n and $1, %edi\n"
	" mov 8(%rsp,%rdi,8), %rbp\n lea 8(%rsp), %rdx\n add 8(%rdx), %rbp\n mov %rbp, %rax\n"
	" test %esi, %esi\n js 2f\n xor %ebp, %ebp\n back rbp\n raise 40\n ret\n"
	"2: .cfi_adjust_cfa_offset 48\n .cfi_rel_offset %rbp, 0\n"
	" not %rax\n back rbp\n raise 40\n ret\n"
	"end asm_array\n"
	/* A return before anything is saved; the red zone. */
	"begin asm_early\n"
	" mov %rsi, -24(%rsp)\n test $6, %dil\n je 1f\n save rbx\n imul $77, %rdi, %rbx\n"
	" mov %rbx, %rax\n back rbx\n1: add -24(%rsp), %rax\n ret\n"
	"end asm_early\n"
	/* The address of a variable. */
	"begin asm_place\n"
	" lower 24\n mov %rdi, (%rsp)\n mov %rsp, %rdx\n add (%rdx), %rsi\n lea (%rsi,%rdi), %rax\n"
	" raise 24\n ret\n"
	"end asm_place\n"
	/* A call with the stack pointer of the entry, as in assembly code. */
	"begin calls_at_once\n"
	" call asm_saves\n add $5, %rax\n ret\n"
	"end calls_at_once\n"
	/* The calling function finds its frame by %rbp. */
	"begin by_frame_pointer\n"
	" push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n"
	" mov %rsp, %rbp\n .cfi_def_cfa_register %rbp\n"
	" push %rbx\n .cfi_offset %rbx, -24\n push %r12\n .cfi_offset %r12, -32\n"
	" mov %rdi, %rbx\n mov %rdi, %rsi\n call asm_saves\n mov %rax, %r12\n"
	" mov %rbx, %rdi\n mov %r12, %rsi\n xor %eax, %eax\n call asm_early\n add %r12, %rax\n"
	" mov %rax, %rsi\n mov %rbx, %rdi\n call asm_array\n"
	" pop %r12\n pop %rbx\n pop %rbp\n .cfi_def_cfa %rsp, 8\n ret\n"
	"end by_frame_pointer\n"
);

LEAF static unsigned long saves(unsigned long a, const unsigned long *p, int n)
{
	unsigned long x[7];

	for (int i = 0; i < 7; i++)
		x[i] = p[i] ^ a;
	for (int i = 0; i < n; i++) {
		x[0] += x[1] * a;
		x[1] ^= x[2] + (unsigned int)n;
		x[2] += x[3] * 3;
		x[3] ^= x[4];
		x[4] += x[5] << 3;
		x[5] ^= x[6] >> 2;
		x[6] += x[0];
	}
	return x[0] ^ x[1] ^ x[2] ^ x[3] ^ x[4] ^ x[5] ^ x[6];
}

/* An array that does not fit into the red zone. */
LEAF static unsigned long array(unsigned long a, unsigned int n)
{
	volatile unsigned char bytes[200];

	for (unsigned int i = 0; i < 200; i++)
		bytes[i] = (unsigned char)(a >> (i & 31));
	if (n % 3 == 0)
		return bytes[n % 200];
	return (unsigned long)bytes[n % 200] + bytes[(n + 7) % 200];
}

/* Arguments in the stack. */
LEAF static unsigned long stacked(long a, long b, long c, long d, long e, long f, long g, long h)
{
	unsigned long sum = (unsigned long)a;

	for (int i = 0; i < 3; i++)
		sum = sum * (unsigned long)g + (unsigned long)(h - b + c * d - e * f);
	return sum;
}

LEAF static unsigned long looped(unsigned int n)
{
	volatile unsigned int sum = 0;

	for (volatile unsigned int i = 0; i < n; i++)
		sum += i;
	return sum;
}

/* Reads through @p, with registers of the caller saved. */
LEAF static unsigned long reads(const unsigned long *p, unsigned long a, unsigned long b)
{
	unsigned long x[6] = {a, b, a ^ b, a + b, a - b, a * b};

	for (unsigned long i = 0; i < (a & 3) + 1; i++) {
		x[0] += x[5] * p[0];
		x[1] ^= x[0] + x[4];
		x[2] += x[1] * 5;
		x[3] ^= x[2] >> 3;
		x[4] += x[3] ^ b;
		x[5] -= x[4] + i;
	}
	return x[0] ^ x[1] ^ x[2] ^ x[3] ^ x[4] ^ x[5];
}

LEAF unsigned long work(unsigned long n)
{
	static unsigned long p[7] = {1, 2, 3, 4, 5, 6, 7};
	unsigned long m = n;

	for (unsigned int i = 0; i < n; i++) {
		m += saves(m, p, (int)(i % 5));
		m ^= array(m, i);
		m += stacked((long)m, 1, 2, 3, 4, 5, (long)m, i);
		m ^= looped(i % 6);
		m += reads(p, m, i);
		m ^= asm_saves(m, i);
		m += asm_array(m, m ^ i);
		m ^= asm_early(m, i);
		m ^= asm_place(m, i);
		m += calls_at_once(m, i);
		m += by_frame_pointer(m);
		p[i % 7] ^= m;
	}
	return m;
}

/* ---- exceptions ---- */

#ifdef __cplusplus
static void on_fault(int sig)
{
	(void)sig;
	throw 5;
}

/* No landing pad: the exception passes. */
LEAF static unsigned long through(const unsigned long *p, unsigned long n)
{
	unsigned long m = n * 3, k = n * 5, l = n * 7;

	for (unsigned long i = 0; i < n; i++) {
		m += reads(i + 1 == n ? p : &n, m, i);
		k ^= m;
		l += k;
	}
	return m ^ k ^ l;
}

LEAF static unsigned long caught(const unsigned long *p, unsigned long n)
{
	unsigned long m = n;

	try {
		m += through(p, n);
		m ^= n;
	} catch (int value) {
		sigset_t all;

		sigfillset(&all);
		sigprocmask(SIG_UNBLOCK, &all, NULL);
		m = m * 100 + (unsigned long)value;
	}
	return m;
}

/* A call with a landing pad. */
LEAF static unsigned long caught_here(const unsigned long *p, unsigned long n)
{
	unsigned long m = n, k = n * 7;

	try {
		m += reads(&n, m, k);
		m += reads(p, m, k);
	} catch (int value) {
		sigset_t all;

		sigfillset(&all);
		sigprocmask(SIG_UNBLOCK, &all, NULL);
		m = n * 100 + (unsigned long)value;
	}
	return m ^ k;
}
#endif

int main(int argc, char **argv)
{
	int wrong = run_steps(argc, argv, 20000);
#ifdef __cplusplus
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_fault;
	sigaction(SIGSEGV, &action, NULL);
	for (unsigned long i = 1; i < 5; i++)
		printf("%lx %lx %lx %lx\n", caught(&i, i), caught(NULL, i), caught_here(&i, i),
		       caught_here(NULL, i));
#endif
	return wrong;
}
