// SPDX-License-Identifier: Apache-2.0
/*
 * refused - linked with fixed addresses, verify refuses the copies of two of its functions: numbers in
 * a section whose name begins as that of unwind information are addresses of these functions' second
 * bytes, so a jump over their starts might have a target inside.
 */
#include <stdio.h>

int first(int a), second(int a), third(int a);
volatile int three = 3;
__attribute__((section(".eh_frame_numbers"))) char *volatile numbers[] = {
	(char *)first + 2,
	(char *)second + 2,
};

__attribute__((noinline)) int first(int a)
{
	return a * 3 + three;
}

__attribute__((noinline)) int second(int a)
{
	return a * 5 - three;
}

__attribute__((noinline)) int third(int a)
{
	return a * 7 ^ three;
}

int main(int argc, char **argv)
{
	(void)argv;
	printf("%d %d %d\n", first(argc), second(argc), third(argc));
	return 0;
}
