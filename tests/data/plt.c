// SPDX-License-Identifier: Apache-2.0
/*
 * plt - calls functions of libraries: from loops, by tail jumps, by conditional jumps, by pointers, with more
 * arguments than registers, and one that returns twice. Prints what came back.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OTHER
int other_value(int n); /* in a library of the test */
#else
static int other_value(int n)
{
	return 3 * n;
}
#endif

static jmp_buf again;

__attribute__((noinline)) int tail(const char *text)
{
	return atoi(text);
}

__attribute__((noinline)) void maybe(void *memory)
{
	if (memory) /* by some compilers a conditional jump to the stub */
		free(memory);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

__attribute__((noinline)) static int twice(int n)
{
	volatile int rounds = 0;

	if (setjmp(again) < n) {
		rounds++;
		longjmp(again, rounds);
	}
	return rounds;
}

int main(int argc, char **argv)
{
	const char *words[] = {"pear", "apple", "fig", "quince"};
	unsigned int hash = 0;
	char line[100];

	(void)argv;
	for (int i = 0; i < 200; i++) {
		int n = snprintf(line, sizeof(line), "%d %d %d %d %d %d %s", i, i + 1, i + 2, i + 3,
				 i + argc, i * argc, words[i % 4]);

		hash = hash * 31 + (unsigned int)n + (unsigned int)tail(line) +
		       (unsigned int)strlen(strchr(line, ' '));
		maybe(i % 3 ? malloc((size_t)i) : NULL);
		hash += (unsigned int)other_value(i);
	}
	qsort(words, 4, sizeof(words[0]), compare);
	printf("%u %s %s %d\n", hash, words[0], words[3], twice(5));
	return 0;
}
