// SPDX-License-Identifier: Apache-2.0
// Functions without code, with one instruction, with symbols without size, that fall into the next
// function, that end in a call which does not return; aliases; a label at the end of the text.
// asm: empty.S
// moves: last_call
#include <stdio.h>
#include <stdlib.h>

#include "../hazard.h"

KEEP void unreachable_one(void) { __builtin_unreachable(); }
KEEP void nothing(void) {}
KEEP int behind(int n) { return n + 3; }
KEEP __attribute__((noreturn)) void ends(int n)
{
	printf("%d\n", n);
	exit(0);
}
KEEP void last_call(int n) { ends(n); }
int also_behind(int n) __attribute__((alias("behind")));
extern int weak_behind(int n) __attribute__((weak, alias("behind")));

int no_size(int), no_size_2(int), runs_on(int), second_entry(int), only_ret(int), no_fde_between(int);
void only_trap(void), end_of_all(void);
extern const char text_here[], text_there[];

static void (*const never[])(void) = {unreachable_one, only_trap, end_of_all};

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 100; i++) {
		nothing();
		sum = sum * 31 + behind(i) + also_behind(i) + weak_behind(i);
		sum = sum * 31 + no_size(i) + no_size_2(i) + runs_on(i) + second_entry(i);
		sum = sum * 31 + only_ret(i) + no_fde_between(i);
	}
	sum += never[0] == never[1];
	sum += text_there - text_here;
	printf("%ld %d\n", sum, OPAQUE(behind) == OPAQUE(also_behind));
	last_call((int)(sum & 63));
}
