// SPDX-License-Identifier: Apache-2.0
/* A static function that stays, since it makes a system call itself; another file has one of its name. */
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
