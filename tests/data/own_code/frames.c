// SPDX-License-Identifier: Apache-2.0
/*
 * frames - a runtime that finds the frame of each call by a table of return addresses, as
 * OCaml's collector does. Ends with status 1 if a call's return address is not in the table.
 * pick() also has a switch, so that it jumps indirectly. -DNO_TABLE: words of 0 in the same places.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct frame {
	uintptr_t ret;
	uint16_t size, live;
	uint32_t line;
};

#ifdef NO_TABLE
#define WORD "0"
static volatile int strict __attribute__((section(".data"))) = 0;
#else
#define WORD "1b"
static volatile int strict = 1;
#endif

/* The table grows by one frame for each call; its end is where the next object's data begins. */
__asm__(".pushsection .data, 1\n"
	".balign 16\n"
	"frames:\n"
	".popsection\n"
	".pushsection .data, 2\n"
	"frames_end:\n"
	".quad 0\n"
	".popsection\n");
extern const struct frame frames[] __attribute__((visibility("hidden")));
extern const struct frame frames_end[] __attribute__((visibility("hidden")));

static unsigned long found;

__attribute__((used, noinline)) void collect(void)
{
	uintptr_t ret = (uintptr_t)__builtin_return_address(0);

	for (const struct frame *f = frames; f < frames_end; f++)
		if (f->ret == ret) {
			found += f->line;
			return;
		}
	if (strict) {
		printf("no frame of a call\n");
		exit(1);
	}
}

#define COLLECT(line)                                                                              \
	__asm__ volatile("call collect\n"                                                          \
			 "1:\n"                                                                    \
			 ".pushsection .data, 1\n"                                                 \
			 ".quad " WORD "\n"                                                        \
			 ".short 24, 2\n"                                                          \
			 ".long " #line "\n"                                                       \
			 ".popsection\n" ::                                                        \
				 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",    \
				   "memory", "cc")

__attribute__((noinline)) static unsigned int pick(unsigned int what, unsigned int n)
{
	unsigned int sum = n;

	switch (what) {
	case 0: sum += 3; COLLECT(3); break;
	case 1: sum *= 5; COLLECT(5); sum ^= n; break;
	case 2:
		while (n--)
			sum += n ^ what;
		COLLECT(7);
		break;
	case 3: COLLECT(11); sum = sum % 13 ? sum : n; COLLECT(13); break;
	case 4: sum -= n / 3; break;
	case 5: sum |= n << 3; COLLECT(17); break;
	case 6: sum = n * n; COLLECT(19); sum += 4; break;
	default: sum++; COLLECT(23); sum += what; break;
	}
	return sum + 1;
}

int main(void)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < 40000; i++)
		sum += pick((i ^ sum) % 9, i % 17);
	printf("%u %lu\n", sum, found);
	return 0;
}
