// SPDX-License-Identifier: Apache-2.0
/*
 * variant - one of several programs of equal size and layout. Each has its only busy code in
 * its own slot; the other slots have traps. So a sample that was given to the wrong program
 * lies in a slot where that program never runs.
 *
 *  variantN MS [PROGRAM MS...]  use MS of CPU time, then become the next program
 *
 * With -DLIBRARY it is a library with spin(ms).
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define STRING_(x) #x
#define STRING(x)  STRING_(x)
#define V	   STRING(VARIANT)

/* void hotN(long n) loops n times. */
__asm__(".pushsection .slots, \"ax\", @progbits\n"
	".balign 4096\n"
	".skip 4096 * " V " + 64, 0xcc\n"
	".globl hot" V "\n"
	".type hot" V ", @function\n"
	"hot" V ":\n"
	"1:	dec %rdi\n"
	"	jnz 1b\n"
	"	ret\n"
	".size hot" V ", . - hot" V "\n"
	".balign 4096, 0xcc\n"
	".skip 4096 * (8 - " V "), 0xcc\n"
	".popsection\n");

#define HOT_(v)	 hot##v
#define HOT__(v) HOT_(v)
#define HOT	 HOT__(VARIANT)

void HOT(long n);
void spin(long ms);

void spin(long ms)
{
	struct timespec t, end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	end.tv_nsec += ms % 1000 * 1000000;
	end.tv_sec += ms / 1000 + end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	do {
		HOT(100000);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	} while (t.tv_sec < end.tv_sec || (t.tv_sec == end.tv_sec && t.tv_nsec < end.tv_nsec));
}

#ifndef LIBRARY
int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	spin(atol(argv[1]));
	if (argc > 3)
		execv(argv[2], argv + 2);
	return argc > 3;
}
#endif
