// SPDX-License-Identifier: Apache-2.0
// Hand-written assembly that depends on its own address: see assembly.S.
// asm: assembly.S
// stays: slots_of_eight outside_slots inline_data skips_over lock_or_not picks_entry table_of_offsets pushes_and_returns overlapping
// moves: main
#include <stdio.h>

#include "../hazard.h"

int slots_of_eight(int), outside_slots(const void *, int), picks_entry(int), table_of_offsets(int);
int inline_data(int), skips_over(int), lock_or_not(int), pushes_and_returns(int), overlapping(int);
int filled(int), padded_with_org(int), prefixes(int), notracks(int), middle_of_other(int);
int counts_down(int), back_into(int), aligned_loop(int), shared_tail_a(int), shared_tail_b(int);
extern const char first_slot[];

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 200; i++) {
		sum = sum * 31 + slots_of_eight(i & 3) + outside_slots(first_slot, i & 3);
		sum = sum * 31 + inline_data(i) + skips_over(i) + lock_or_not(i & 1);
		sum = sum * 31 + picks_entry(i % 3) + table_of_offsets(i & 3);
		sum = sum * 31 + pushes_and_returns(i & 1) + overlapping(i & 1);
		sum = sum * 31 + filled(i) + padded_with_org(i) + prefixes(i) + notracks(i % 4);
		sum = sum * 31 + middle_of_other(i) + counts_down(i % 9 + 1) + back_into(i);
		sum = sum * 31 + aligned_loop(i % 7 + 1) + shared_tail_a(i) + shared_tail_b(i);
	}
	printf("%ld\n", sum);
	return 0;
}
