// SPDX-License-Identifier: Apache-2.0
/* For test_verify_forged.c: data holds a function's distance from another one, and code compares addresses. */
#include <stdio.h>

int sink;
__attribute__((noinline, visibility("hidden"))) void other(void)
{
	sink++;
}

__attribute__((noinline)) int pointed(int x)
{
	for (int i = 0; i < x; i++)
		sink += i ^ (sink >> 3);
	return sink;
}

__asm__(".section .rodata\n.balign 4\noffsets: .long 0x12345678, 0, 7, pointed - other\n.text\n");
extern const int offsets[] __attribute__((visibility("hidden")));

__attribute__((noinline)) int same(int (*function)(int))
{
	return (const char *)other + offsets[3] == (const char *)function;
}

int main(void)
{
	int s = 0;

	for (int i = 0; i < 50; i++)
		s += pointed(i);
	printf("%d %d\n", s, same(pointed));
	return 0;
}
