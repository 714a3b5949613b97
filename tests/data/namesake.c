// SPDX-License-Identifier: Apache-2.0
/*
 * A static function that cannot be moved, since it makes a system call. namesake_too.c has one of
 * the same name.
 */
int other(int x);

static __attribute__((noinline)) long step(long x)
{
	__asm__ volatile("syscall" : "+a"(x) : : "rcx", "r11", "memory");
	return x;
}

int main(int argc, char **argv)
{
	(void)argv;
	return step(39) < 0 || other(argc) != 0;
}
