// SPDX-License-Identifier: Apache-2.0
/*
 * control_words - how long a loop takes that loads a control word twice, with different values, by the addresses of the
 * two loads in one page. Tells apart whether they share a slot by me_control_load_slot(). Prints a Markdown table.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "editor/evidence/control_word.h"

#define PAGE   4096
#define PAIRS  20000
#define ROUNDS 400 /* of the loop, for one measurement */
#define SLOW   8   /* times the median of loads that share no slot: mispredicted */

/* The loop's first part ends in a jump to the second part, which ends in a branch to the first part. */
__asm__(".macro part name load at next\n.globl \\name, \\name\\()_rel, \\name\\()_end\n\\name: \\load \\at(%rdi)\n"
	" \\next\n\\name\\()_rel: .long 0\n\\name\\()_end:\n.endm\n"
	".macro jumps\n .byte 0xe9\n.endm\n.macro branches\n dec %esi\n .byte 0x0f, 0x85\n.endm\n"
	".data\n"
	"part fldcw_first fldcw 0 jumps\npart fldcw_second fldcw 4 branches\n ret\n"
	"part ldmxcsr_first ldmxcsr 8 jumps\npart ldmxcsr_second ldmxcsr 12 branches\n ret\n"
	".text\n");

#define PART(name) extern uint8_t name[], name##_rel[], name##_end[]
PART(fldcw_first);
PART(fldcw_second);
PART(ldmxcsr_first);
PART(ldmxcsr_second);

struct part {
	const uint8_t *code, *rel, *end; /* a ret follows the second part's end */
};

/* Two of the x87 unit, with its usual rounding and without, and two of SSE. */
static const uint32_t words[] = {0x037f, 0x0f7f, 0x1f80, 0x7f80};

static void copy(uint8_t *to, const struct part *part, const uint8_t *next)
{
	uint8_t *rel = to + (part->rel - part->code);
	int32_t distance = (int32_t)(next - (rel + 4));

	memcpy(to, part->code, (size_t)(part->end + 1 - part->code));
	memcpy(rel, &distance, sizeof(distance));
}

/* The least of three, in nanoseconds for each round of the loop. */
static double measure(const uint8_t *code)
{
	void (*loop)(const uint32_t *words, int rounds);
	double least = 1e18;

	memcpy(&loop, &code, sizeof(loop));
	for (int i = 0; i < 3; i++) {
		struct timespec from, to;
		double ns;

		clock_gettime(CLOCK_MONOTONIC, &from);
		loop(words, ROUNDS);
		clock_gettime(CLOCK_MONOTONIC, &to);
		ns = ((double)(to.tv_sec - from.tv_sec) * 1e9 +
		      (double)(to.tv_nsec - from.tv_nsec)) /
		     ROUNDS;
		if (ns < least)
			least = ns;
	}
	return least;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void report(const char *name, const struct part *first, const struct part *second,
		   uint8_t *page)
{
	static double ns[2][PAIRS];
	size_t nr[2] = {0}, contrary[2] = {0};
	double limit;

	for (int i = 0; i < PAIRS;) {
		uint32_t a = (uint32_t)rand() % (PAGE - 64), b = (uint32_t)rand() % (PAGE - 64);
		int shared = me_control_load_slot(a) == me_control_load_slot(b);

		if (a < b + 32 && b < a + 32)
			continue; /* they would overlap */
		copy(page + a, first, page + b);
		copy(page + b, second, page + a);
		ns[shared][nr[shared]++] = measure(page + a);
		i++;
	}
	for (int shared = 0; shared < 2; shared++)
		qsort(ns[shared], nr[shared], sizeof(double), compare);
	limit = SLOW * ns[0][nr[0] / 2];
	for (size_t i = 0; i < nr[0]; i++)
		contrary[0] += ns[0][i] > limit;
	for (size_t i = 0; i < nr[1]; i++)
		contrary[1] += ns[1][i] <= limit;
	for (int shared = 0; shared < 2; shared++)
		printf("| %s | %s | %zu | %.1f | %zu |\n", name, shared ? "shared" : "not shared",
		       nr[shared], ns[shared][nr[shared] / 2], contrary[shared]);
}

int main(void)
{
	static const struct part fldcw[] = {{fldcw_first, fldcw_first_rel, fldcw_first_end},
					    {fldcw_second, fldcw_second_rel, fldcw_second_end}};
	static const struct part ldmxcsr[] = {{ldmxcsr_first, ldmxcsr_first_rel, ldmxcsr_first_end},
					      {ldmxcsr_second, ldmxcsr_second_rel,
					       ldmxcsr_second_end}};
	uint8_t *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED) {
		perror("control_words: no memory for code");
		return 1;
	}
	srand(1);
	puts("| instruction | slot | pairs of addresses | ns a round (median) | contrary pairs |\n"
	     "|---|---|---:|---:|---:|");
	report("fldcw", &fldcw[0], &fldcw[1], page);
	report("ldmxcsr", &ldmxcsr[0], &ldmxcsr[1], page);
	return 0;
}
