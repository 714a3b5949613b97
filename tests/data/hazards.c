// SPDX-License-Identifier: Apache-2.0
// Calls what hazards.S offers, often, and sums up.
#include <stdio.h>

int past_lock(int), past_lock_known(int), falls_into(int), fallen_into(int), slots(int), by_difference(void);
long own_address(void);
int reads_itself(void), no_fde(int), entered_in_the_middle(int), loops(int), tight_loop(int);
int through_data(void), call_and_constant(int);

int main(void)
{
	long sum = 0;

	for (int i = 1; i < 300; i++) {
		sum = sum * 7 + past_lock(i & 1) + past_lock_known(i & 1);
		sum = sum * 7 + falls_into(i) + fallen_into(i);
		sum = sum * 7 + slots(i);
		sum = sum * 7 + by_difference() + own_address();
		sum = sum * 7 + reads_itself() + no_fde(i) + entered_in_the_middle(i);
		sum = sum * 7 + loops(i % 30 + 1) + tight_loop(i);
		sum = sum * 7 + through_data() + call_and_constant(i);
	}
	printf("%ld %d %d %d %d %ld\n", sum, past_lock(0), slots(2), falls_into(5), no_fde(1),
	       own_address());
	return 0;
}
