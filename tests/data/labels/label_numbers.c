// SPDX-License-Identifier: Apache-2.0
/*
 * label_numbers - a function with labels also names numbers, none of which is a difference of labels. A test of verify
 * then writes such differences there, in the original and the output alike.
 */
#include <stdio.h>

static const int numbers[8] = {0x40000001, 0x40000002, 0x40000003, 0x40000004,
			       0x40000005, 0x40000006, 0x40000007, 0x40000008};
static const volatile int *volatile kept;
static void *volatile base;
static void *const *volatile all;

__attribute__((noinline)) static long run(const char *code, long v)
{
	static void *const labels[] = {&&plus, &&twice, &&minus, &&end};

	if (!code) {
		base = &&plus;
		kept = numbers;
		all = labels;
		return 0;
	}
	goto *labels[(int)*code++];
plus:
	v += 3;
	goto *labels[(int)*code++];
twice:
	v *= 2;
	goto *labels[(int)*code++];
minus:
	v -= 7;
	goto *labels[(int)*code++];
end:
	return v;
}

int main(int argc, char **argv)
{
	(void)argv;
	run(NULL, 0);
	printf("%ld %d %d\n", run("\0\1\2\1\3", argc), kept[argc & 7], base == all[0]);
	return 0;
}
