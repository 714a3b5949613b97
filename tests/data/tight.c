// SPDX-License-Identifier: Apache-2.0
/*
 * A loop with two branches. Besides the registers of its variables, the function changes only one
 * of the registers that callees may change, so an instrumenter has only that one free.
 */
#include <stdio.h>

__attribute__((noipa)) unsigned long tight(unsigned long n, unsigned long x)
{
	__asm__ volatile("xor %%r11d, %%r11d" : : : "r11");
	do {
		if (n & 3)
			__asm__ volatile(".rept 12\n\trol $5, %0\n\t.endr" : "+r"(x));
		else
			__asm__ volatile(".rept 12\n\tlea 5(%0), %0\n\t.endr" : "+r"(x));
		__asm__ volatile(".rept 12\n\trol $3, %0\n\t.endr" : "+r"(x));
		if (x & 4)
			__asm__ volatile(".rept 12\n\tlea 7(%0), %0\n\t.endr" : "+r"(x));
		else
			__asm__ volatile(".rept 12\n\tnot %0\n\t.endr" : "+r"(x));
		__asm__ volatile(".rept 12\n\tror $5, %0\n\t.endr" : "+r"(x));
	} while (--n);
	return x;
}

int main(int argc, char **argv)
{
	(void)argv;
	return printf("%lx\n", tight(1000 * (unsigned long)argc, 12345)) < 0;
}
