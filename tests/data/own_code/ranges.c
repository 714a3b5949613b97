// SPDX-License-Identifier: Apache-2.0
/*
 * ranges - code that others know by a range of addresses or by a table. A test of verify
 * then changes headers and names in the original and the output alike, so that one of these kinds comes about. MARK is a place a little behind an end.
 */
#include <stdio.h>
#include <unistd.h>

extern char etext[], _end[];

__attribute__((section(".inner"), noinline)) static int inner(int n)
{
	return n % 7 ? n * 3 + (int)getpid() % 1 : n - 1;
}

/* A distance to a place inside of it, from the field itself, stands in a table, at which nobody looks but by its name. */
__attribute__((noinline)) static int switched(int n)
{
	if (n == 1000)
		goto on;
	__asm__ goto("1: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
		     ".pushsection .rodata_tabl, \"a\"\n"
		     ".long 1b - ., %l[on] - .\n"
		     ".popsection"
		     :
		     :
		     :
		     : on);
	return n + 1;
on:
	return n * 100;
}

#ifndef __PIC__
/* Addresses of places inside of these, of 8 and of 4 bytes: numbers without meaning stand around each. */
#define ADDRESSED(name, section, type)                                                \
	__attribute__((noinline)) static int name(int n)                              \
	{                                                                             \
		if (n == 1000)                                                        \
			goto on;                                                      \
		__asm__ goto("1: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"               \
			     ".pushsection " section ", \"aw\"\n"                    \
			     ".balign 8\n"                                            \
			     ".long 0x55667788\n" type " 1b\n"                        \
			     ".long 0x55667788\n"                                     \
			     ".balign 8\n"                                            \
			     ".long 0x55667788\n" type " %l[on]\n"                    \
			     ".long 0x55667788\n"                                     \
			     ".popsection"                                            \
			     :                                                        \
			     :                                                        \
			     :                                                        \
			     : on);                                                   \
		return n + sizeof(section);                                           \
	on:                                                                           \
		return n * 100 + sizeof(type);                                        \
	}

ADDRESSED(quads, ".data__quads", ".quad")
ADDRESSED(longs, ".data__longs", ".long")
#else
#define quads switched
#define longs switched
#endif

__attribute__((noinline)) static int below(const void *p)
{
	return (const char *)p < MARK;
}

int main(int argc, char **argv)
{
	(void)argv;
	printf("%d %d %d %d %d %d\n", inner(argc), switched(argc), quads(argc), longs(argc), below(argv),
	       sbrk(0) != NULL);
	return 0;
}
