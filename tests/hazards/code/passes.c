// SPDX-License-Identifier: Apache-2.0
// Hand-written assembly that passes arithmetic flags in calls, jumps and returns: see passes.S.
// asm: passes.S
// moves: main gets_two
#include <stdio.h>

int chain_a(int, int), gets_by_label(int, int), to_bare_reader(int, int), to_place(int, int);
int to_pointer(int, int, int (*)(void)), reads_by_pointer(void), to_calling_label(int, int);
int bare_function(int, int), to_middle(int, int), has_middle(int, int), gets_two(int, int);
int gets_through(int, int);

int main(void)
{
	for (int i = 0; i < 14; i++)
		for (int k = 0; k < 14; k++) {
			printf("%d %d: %d %d %d", i, k, chain_a(i, k), gets_by_label(i, k),
			       to_bare_reader(i, k));
			printf(" %d %d", to_place(i, k), to_pointer(i, k, reads_by_pointer));
			printf(" %d %d", to_calling_label(i, k), bare_function(i, k));
			printf(" %d %d %d", to_middle(i, k), has_middle(i, k), gets_two(i, k));
			printf(" %d\n", gets_through(i, k));
		}
	return 0;
}
