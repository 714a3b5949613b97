// SPDX-License-Identifier: Apache-2.0
// Loops that sum up the code between two functions: one ends early in its middle, one reads by blocks, three calls
// deep, and one is three calls deep itself.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../hazard.h"

typedef unsigned char byte;

#ifdef __clang__
#define IN_ORDER KEEP __attribute__((aligned(16)))
#else
#define IN_ORDER KEEP __attribute__((no_reorder, aligned(16)))
#endif

/* Three functions in this order. */
#define RANGE(low, inner, high)                               \
	IN_ORDER int low(int x)                               \
	{                                                     \
		return x > 3 ? x * 5 : x + 9;                 \
	}                                                     \
	IN_ORDER int inner(int x)                             \
	{                                                     \
		int sum = 0;                                  \
                                                              \
		for (int i = 0; i < x; i++)                   \
			sum += low(i) ^ (i % 3 ? 7 : sum);    \
		return sum;                                   \
	}                                                     \
	IN_ORDER int high(int x)                              \
	{                                                     \
		return x & 1 ? x - 1 : x / 2;                 \
	}

RANGE(low, inner, high)
RANGE(low_block, inner_block, high_block)
RANGE(low_deep, inner_deep, high_deep)

KEEP uint32_t add_byte(uint32_t sum, byte b)
{
	return (sum << 5 | sum >> 27) ^ b;
}

/* Ends early where the code looks like a trap and two rare bytes. */
KEEP uint32_t until(const byte *at, const byte *end)
{
	uint32_t sum = 1;

	do {
		if (*at == 0xcc && at[1] == 0xcd && at[2] == 0x99)
			return 7;
		sum = add_byte(sum, *at);
	} while (++at != end);
	return sum;
}

KEEP uint32_t block_bytes(uint32_t sum, const byte *at)
{
	for (int i = 0; i < 16; i++)
		sum = sum * 33 + at[i];
	return sum;
}
KEEP uint32_t block_rounds(uint32_t sum, const byte *at)
{
	return block_bytes(sum, at) + 1;
}
KEEP uint32_t block(uint32_t sum, const byte *at)
{
	return block_rounds(sum, at) * 3;
}
KEEP uint32_t by_blocks(const byte *at, const byte *end)
{
	uint32_t sum = 1;

	while (at != end) {
		sum = block(sum, at);
		at += 16;
	}
	return sum;
}

/* Both ends are read, then the loop comes three calls deep. */
KEEP uint32_t deep_loop(const byte *at, const byte *end, uint32_t sum)
{
	while (at != end)
		sum = sum * 33 + *at++;
	return sum;
}
KEEP uint32_t deep_second(const byte *at, const byte *end, uint32_t sum)
{
	return deep_loop(at, end, sum ^ 3);
}
KEEP uint32_t deep_first(const byte *at, const byte *end, uint32_t sum)
{
	return deep_second(at, end, sum * 5);
}
KEEP uint32_t deep(const byte *at, const byte *end)
{
	return deep_first(at, end, *at * 256u + *end);
}

KEEP uint32_t check_deep(void)
{
	return deep((const byte *)low_deep, (const byte *)high_deep);
}
KEEP uint32_t check_until(void)
{
	return until((const byte *)low, (const byte *)high);
}
/* The functions begin at multiples of 16. */
KEEP uint32_t check_blocks(void)
{
	return by_blocks((const byte *)low_block, (const byte *)high_block);
}

int main(int argc, char **argv)
{
	(void)argv;
	printf("%d\n", inner(argc + 5) + high(argc) + inner_block(argc + 6) + high_block(argc + 1) +
	       inner_deep(argc + 4) + high_deep(argc));
	printf("%x\n", check_until());
	printf("%x\n", check_blocks());
	printf("%x\n", check_deep());
	return 0;
}
