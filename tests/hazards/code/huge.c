// SPDX-License-Identifier: Apache-2.0
// Functions with tens of thousands of blocks: one with a switch, and one without any jump table.
// levels: -O1
// long: it takes a while to compile
// moves: by_table by_branches
#include <stdio.h>

#include "../hazard.h"

#define C1(n)                                              \
	case n:                                            \
		v = (v ^ (n)) * 3 + ((v >> 5) & (n));      \
		if (v & 64)                                \
			v += (n) ^ 0x1357;                 \
		break;
#define C10(n) C1(n##0) C1(n##1) C1(n##2) C1(n##3) C1(n##4) C1(n##5) C1(n##6) C1(n##7) C1(n##8) C1(n##9)
#define C100(n) C10(n##0) C10(n##1) C10(n##2) C10(n##3) C10(n##4) C10(n##5) C10(n##6) C10(n##7) C10(n##8) C10(n##9)
#define C1000(n) C100(n##0) C100(n##1) C100(n##2) C100(n##3) C100(n##4) C100(n##5) C100(n##6) C100(n##7) C100(n##8) C100(n##9)

KEEP long by_table(unsigned int n, long v)
{
	switch (n) {
		C1000(1) C1000(2) C1000(3) C1000(4) C1000(5) C1000(6)
	}
	return v;
}

#define I1(n)                         \
	if (v & (1 + (n) % 61))       \
		v = v * 5 + (n);      \
	else                          \
		v ^= (n) << 3;
#define I10(n) I1(n##0) I1(n##1) I1(n##2) I1(n##3) I1(n##4) I1(n##5) I1(n##6) I1(n##7) I1(n##8) I1(n##9)
#define I100(n) I10(n##0) I10(n##1) I10(n##2) I10(n##3) I10(n##4) I10(n##5) I10(n##6) I10(n##7) I10(n##8) I10(n##9)
#define I1000(n) I100(n##0) I100(n##1) I100(n##2) I100(n##3) I100(n##4) I100(n##5) I100(n##6) I100(n##7) I100(n##8) I100(n##9)

KEEP long by_branches(long v)
{
	I1000(1) I1000(2) I1000(3) I1000(4) I1000(5) I1000(6) I1000(7) I1000(8) I1000(9)
	return v;
}

int main(void)
{
	long v = 1;

	for (unsigned int i = 0; i < 20000; i++)
		v = by_table(i % 7500, v);
	for (int i = 0; i < 50; i++)
		v = by_branches(v + i);
	printf("%ld\n", v);
	return 0;
}
