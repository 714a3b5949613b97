// SPDX-License-Identifier: Apache-2.0
/*
 * walks - a program with what is hard for walkers of stacks and is not in contexts.c:
 * `walks CASE [TIMES]`.
 *
 * tests/e2e/bench/walks.sh compares walks with exact stacks, tests/e2e/morphd/bpf-stacks.sh those of
 * the BPF program with the reference's. walks_bare.c, a library, is built without unwind tables.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "walks_bare.h"

#define APART __attribute__((noipa))

static volatile long sink;

APART static void leaf(long n)
{
	for (long i = 0; i < n % 16; i++)
		sink += i;
}

/* ---- rbp as an ordinary register, with values that look like frames ---- */

long with_rbp(long value, void (*f)(long));
__asm__(".text\n.type with_rbp, @function\nwith_rbp:\n.cfi_startproc\n"
	"	push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"
	"	mov %rdi, %rbp\n	call *%rsi\n	mov %rbp, %rax\n"
	"	pop %rbp\n.cfi_def_cfa_offset 8\n	ret\n.cfi_endproc\n"
	".size with_rbp, .-with_rbp\n");

static void rbp(void)
{
	void *frame[4] = {frame, (void *)leaf, frame, (void *)rbp};

	for (long i = 0; i < 200; i++) {
		sink += with_rbp(i, leaf);
		sink += with_rbp((long)&frame[i % 3], leaf);
		sink += with_rbp((long)__builtin_frame_address(0), leaf);
		sink += with_rbp(-1, leaf);
	}
}

/* ---- deep recursion, with frames of several sizes ---- */

APART static long deep(long n)
{
	char local[64];

	memset(local, (int)n, sizeof(local));
	sink += local[n & 63];
	return n ? deep(n - 1) + local[1] : 0;
}

static void depth(void)
{
	for (long i = 0; i < 4; i++)
		sink += deep(3000);
}

/* ---- callbacks of libc ---- */

static int compare(const void *a, const void *b)
{
	leaf(*(const int *)a);
	return *(const int *)a - *(const int *)b;
}

static void callbacks(void)
{
	int numbers[64];

	for (int i = 0; i < 64; i++)
		numbers[i] = i * 37 % 64;
	qsort(numbers, 64, sizeof(numbers[0]), compare);
	for (int i = 0; i < 64; i++)
		sink += bsearch(&i, numbers, 64, sizeof(numbers[0]), compare) != NULL;
}

/* ---- code that is made at run time ---- */

typedef void made(void (*f)(long), long n);

/* push %rbp; mov %rsp, %rbp; push $0 (4 times); mov %rdi, %rax; mov %rsi, %rdi; call *%rax; leave; ret */
static const unsigned char framed[] = {0x55, 0x48, 0x89, 0xe5, 0x6a, 0x00, 0x6a, 0x00,
				       0x6a, 0x00, 0x6a, 0x00, 0x48, 0x89, 0xf8, 0x48,
				       0x89, 0xf7, 0xff, 0xd0, 0xc9, 0xc3};
/* The same with sub $32, %rsp: the frame has what earlier calls left there. */
static const unsigned char unset[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0x48,
				      0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0xc9, 0xc3};
/* push %rbx; mov %rdi, %rax; mov %rsi, %rdi; call *%rax; pop %rbx; ret */
static const unsigned char frameless[] = {0x53, 0x48, 0x89, 0xf8, 0x48, 0x89,
					  0xf7, 0xff, 0xd0, 0x5b, 0xc3};
/* push %rbp; lea 16(%rsp), %rbp; mov %rdi, %rax; mov %rsi, %rdi; call *%rax; pop %rbp; ret */
static const unsigned char misused[] = {0x55, 0x48, 0x8d, 0x6c, 0x24, 0x10, 0x48, 0x89,
					0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};
/* 1: dec %rdi; jns 1b; ret */
static const unsigned char bare_leaf[] = {0x48, 0xff, 0xcf, 0x79, 0xfb, 0xc3};

static unsigned char *made_code;

static void *make(const unsigned char *code, size_t size)
{
	unsigned char *at = made_code;

	memcpy(at, code, size);
	made_code += 64;
	return at;
}

static void *code_page(void)
{
	static void *page;

	if (!page)
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		exit(1);
	return made_code = page;
}

static void jit_framed(void)
{
	made *f;

	code_page();
	f = (made *)make(framed, sizeof(framed));
	for (long i = 0; i < 400; i++)
		f(leaf, i);
}

/* Its stack frame, which has ended, is where the next one begins: a return address lies in that. */
APART static void leave_address(long n)
{
	leaf(n);
	sink++;
}

static void jit_unset(void)
{
	made *f;

	code_page();
	f = (made *)make(unset, sizeof(unset));
	for (long i = 0; i < 400; i++) {
		leave_address(i);
		f(leaf, i);
	}
}

/* A leaf that has no frame, below a function that has one, below a function of this file. */
static void jit_leaf(void)
{
	void (*l)(long);
	made *f;

	code_page();
	f = (made *)make(framed, sizeof(framed));
	l = (void (*)(long))make(bare_leaf, sizeof(bare_leaf));
	for (long i = 0; i < 400; i++)
		f(l, i % 32);
}

static void jit_frameless(void)
{
	made *f;

	code_page();
	f = (made *)make(frameless, sizeof(frameless));
	for (long i = 0; i < 400; i++)
		f(leaf, i);
}

static void jit_misused(void)
{
	made *f;

	code_page();
	f = (made *)make(misused, sizeof(misused));
	for (long i = 0; i < 400; i++)
		f(leaf, i);
}

/* ---- other code at the same address, in turns ---- */

/* Maps the page of this program's file that has with_rbp to @at. Return: with_rbp there. */
static void *map_own_code(void *at)
{
	unsigned long start, end, off, place = (unsigned long)(void *)with_rbp;
	FILE *maps = fopen("/proc/self/maps", "r");
	void *page = MAP_FAILED;
	int fd = open("/proc/self/exe", O_RDONLY);
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &off) != 3 || place < start ||
		    place >= end)
			continue;
		off += (place - start) & ~4095UL;
		page = mmap(at, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd,
			    (long)off);
	}
	if (maps)
		fclose(maps);
	close(fd);
	if (page == MAP_FAILED)
		exit(1);
	return (char *)page + (place & 4095);
}

static void remapped(void)
{
	long (*own)(long, void (*)(long));
	void *at = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	made *f;

	if (at == MAP_FAILED)
		exit(1);
	for (long round = 0; round < 20; round++) {
		own = (long (*)(long, void (*)(long)))map_own_code(at);
		for (long i = 0; i < 20000; i++)
			sink += own(i, leaf);
		if (mmap(at, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
			exit(1);
		/* It begins where with_rbp lay. */
		made_code = (unsigned char *)own;
		f = (made *)make(framed, sizeof(framed));
		for (long i = 0; i < 20000; i++)
			f(leaf, i);
	}
	munmap(at, 8192);
}

/* ---- a library without unwind tables ---- */

static void no_rows(void)
{
	for (long i = 0; i < 400; i++)
		sink += bare_outer(leaf, i);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"rbp", rbp},
		{"depth", depth},
		{"callbacks", callbacks},
		{"jit_framed", jit_framed},
		{"jit_unset", jit_unset},
		{"jit_leaf", jit_leaf},
		{"jit_frameless", jit_frameless},
		{"jit_misused", jit_misused},
		{"remapped", remapped},
		{"no_rows", no_rows},
	};

	for (size_t i = 0; argc >= 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!strcmp(argv[1], cases[i].name)) {
			for (long times = argc > 2 ? atol(argv[2]) : 1; times > 0; times--)
				cases[i].run();
			return 0;
		}
	}
	return 2;
}
