// SPDX-License-Identifier: Apache-2.0
// Functions whose bytes the kernel or the C library reads or writes: by a system call, and by functions that get their
// address as a destination. The page is made writable by another function's address.
// run: ./prog call
// run: ./prog raw
// run: ./prog length
// run: ./prog copied
// run: ./prog moved
// run: ./prog received
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../hazard.h"

/* mov %edi, %eax; lea 1(%rax,%rax), %eax; ret */
static const char code[] = "\x89\xf8\x8d\x44\x00\x01\xc3\x90\x90\x90\x90\x90\x90\x90\x90\x90"
			   "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
			   "\x90\x90\x90\x90\x90\x90\x90\x90";

#define VICTIM(name, n)                                                                            \
	KEEP int name(int x)                                                                       \
	{                                                                                          \
		int sum = n;                                                                       \
                                                                                                   \
		for (int i = 0; i < x; i++) {                                                      \
			sum = sum * 3 + (i ^ OPAQUE(x));                                           \
			sum = sum > 100000 ? sum - 77777 : sum;                                    \
			sum = sum < -5 ? -sum * OPAQUE(n) : sum;                                   \
		}                                                                                  \
		return sum;                                                                        \
	}
VICTIM(by_call, 1)
VICTIM(by_raw, 2)
VICTIM(by_length, 3)
VICTIM(copied, 4)
VICTIM(moved, 5)
VICTIM(received, 6)

KEEP static char *page(void) { return (char *)((uintptr_t)page & ~(uintptr_t)4095); }

KEEP static void raw_write(const void *from, long size)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"((long)SYS_write), "D"(1L), "S"(from), "d"(size)
			 : "rcx", "r11", "memory");
}

int main(int argc, char **argv)
{
	volatile size_t size = sizeof(code) - 1;
	const char *how = argc > 1 ? argv[1] : "";
	int both[2];

	for (int i = 0; i < 2; i++) {
		printf("%d %d %d ", by_call(argc), by_raw(argc), by_length(argc));
		printf("%d %d %d\n", copied(argc), moved(argc), received(argc));
		fflush(stdout);
		if (i || mprotect(page() - 4096, 3 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
			continue;
		if (!strcmp(how, "call"))
			syscall(SYS_write, 1, (void *)by_call, 16L);
		if (!strcmp(how, "raw"))
			raw_write((void *)by_raw, 16);
		if (!strcmp(how, "length"))
			printf("%d\n", strncmp((const char *)(void *)by_length, "\xe9", 1));
		if (!strcmp(how, "copied"))
			memcpy((void *)copied, code, size);
		if (!strcmp(how, "moved"))
			memmove((void *)moved, code, size);
		if (!strcmp(how, "received") && !pipe(both) && write(both[1], code, size) > 0)
			size -= (size_t)read(both[0], (void *)received, size);
	}
	return 0;
}
