// SPDX-License-Identifier: Apache-2.0
// Code that a tracer or the program finds by a note and overwrites: static probes, patchable
// entries, a jump label. The program patches its own code and tests the effect.
// moves: main
// stays: switched patched
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../hazard.h"

extern char *__start___patchable_function_entries[] __attribute__((weak, visibility("hidden")));
extern char *__stop___patchable_function_entries[] __attribute__((weak, visibility("hidden")));

KEEP int probed(int n)
{
	__asm__ volatile("990: nop\n"
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"
			 ".balign 4\n"
			 ".4byte 992f-991f, 994f-993f, 3\n"
			 "991: .asciz \"stapsdt\"\n"
			 "992: .balign 4\n"
			 "993: .8byte 990b\n"
			 ".8byte 0\n"
			 ".8byte 0\n"
			 ".asciz \"hazard\"\n"
			 ".asciz \"probe\"\n"
			 ".asciz \"4@%0\"\n"
			 "994: .balign 4\n"
			 ".popsection"
			 :
			 : "r"(n));
	return n % 3 ? n + 2 : n * 5;
}

/* A switch that is turned on by writing a jump, like the kernel's jump labels. */
KEEP int switched(int n)
{
	__asm__ goto("1: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
		     ".pushsection __jump_table, \"aw\"\n"
		     ".balign 8\n"
		     ".quad 1b, %l[on]\n"
		     ".popsection"
		     :
		     :
		     :
		     : on);
	return n + 1;
on:
	return n * 100;
}
extern uint64_t __start___jump_table[][2] __attribute__((weak, visibility("hidden")));

__attribute__((patchable_function_entry(8, 0))) KEEP int patched(int n) { return n % 7 + 3; }

static int write_code(uint64_t where, const void *bytes, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = where & ~(page - 1);

	if (mprotect((void *)from, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC))
		return -1;
	memcpy((void *)where, bytes, size);
	return mprotect((void *)from, 2 * page, PROT_READ | PROT_EXEC);
}

int main(void)
{
	/* mov $77, %eax; ret */
	static const unsigned char answer[] = {0xb8, 77, 0, 0, 0, 0xc3};
	long sum = 0;
	int nr = 0;

	for (int i = 0; i < 20; i++)
		sum = sum * 31 + probed(i) + switched(i) + patched(i);
	for (char **p = __start___patchable_function_entries; p < 
	     __stop___patchable_function_entries; p++) {
		nr++;
		if (*p >= (char *)patched && *p <= (char *)patched + 4 &&
		    write_code((uint64_t)*p, answer, sizeof(answer)))
			return 2;
	}
	sum = sum * 31 + patched(OPAQUE(4));
	{
		unsigned char jump[5] = {0xe9};
		int32_t distance = (int32_t)(__start___jump_table[0][1] - __start___jump_table[0][0] - 5);

		memcpy(jump + 1, &distance, 4);
		if (write_code(__start___jump_table[0][0], jump, 5))
			return 3;
	}
	sum = sum * 31 + switched(OPAQUE(6));
	printf("%ld %d\n", sum, nr > 0);
	return 0;
}
