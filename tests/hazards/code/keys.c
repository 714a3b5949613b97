// SPDX-License-Identifier: Apache-2.0
// Static keys of the program's own: a writable table of instructions that it overwrites, in a section of its own. Between two
// of these addresses stand other fields, and one instruction is the first of its function.
// modes: pie nopie static
// stays: first later other
// moves: main
// run: ./prog
// run: ./prog on
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../hazard.h"

struct site {
	unsigned char *at;
	int *key;
	long length;
};

extern struct site __start_keys[] __attribute__((visibility("hidden")));
extern struct site __stop_keys[] __attribute__((visibility("hidden")));
int key = 0;

#define KEY                                                                                        \
	({                                                                                         \
		int on_;                                                                           \
		__asm__ volatile("1: movl $0, %%eax\n"                                             \
				 ".pushsection keys, \"aw\"\n"                                     \
				 ".balign 8\n"                                                     \
				 ".quad 1b, key, 5\n"                                              \
				 ".popsection"                                                     \
				 : "=a"(on_));                                                     \
		on_;                                                                               \
	})

KEEP int first(int n)
{
	if (KEY)
		n += 100;
	return n * 3;
}

KEEP int later(int n)
{
	while (n < 50 && KEY)
		n += 10;
	return n * 5;
}

KEEP int other(int n)
{
	return n > 2 && KEY ? n * 7 : n;
}

static void turn_on(struct site *from, struct site *to)
{
	unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);

	for (; from < to; from++) {
		unsigned long start = (unsigned long)from->at & -page;

		if (mprotect((void *)start, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC))
			continue;
		from->at[1] = 1;
	}
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		turn_on(__start_keys, __stop_keys);
	printf("%d %d %d\n", first(argc), later(argc), other(argc + 2));
	return 0;
}
