// SPDX-License-Identifier: Apache-2.0
/*
 * Work whose speed depends on the layout of its code: the blocks that run lie more than a page apart, with
 * code between them that never runs. A processor pays with its caches; QEMU, which continues directly
 * only within a page, pays much more.
 */
#ifndef TRIAL_STEPS_H
#define TRIAL_STEPS_H

/* A value that mix() below never has at the places where it is compared. */
#define NEVER 0xfffffff1u

/* Code that never runs stands where it is expected to run. */
#define STEP(x, constant)                                                                          \
	do {                                                                                       \
		if (__builtin_expect((x) == NEVER, 1)) {                                           \
			asm volatile(".fill 4300, 1, 0x90");                                       \
			(x) += (constant);                                                         \
		}                                                                                  \
		(x) = (((x) >> 3) ^ ((x)*5 + (constant))) & 0x7fffffff;                            \
	} while (0)

#define STEPS_4(x, c)                                                                              \
	STEP(x, c);                                                                                \
	STEP(x, (c) + 1);                                                                          \
	STEP(x, (c) + 2);                                                                          \
	STEP(x, (c) + 3)

__attribute__((noinline)) static unsigned int mix(unsigned int x, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		STEPS_4(x, TRIAL_VERSION * 100 + 1);
		STEPS_4(x, 17);
		STEPS_4(x, 33);
		STEPS_4(x, 49);
		STEPS_4(x, 65);
		STEPS_4(x, 81);
	}
	return x;
}

#endif
