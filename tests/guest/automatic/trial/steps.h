// SPDX-License-Identifier: Apache-2.0
/*
 * Work whose speed depends on the layout of its code: each block that runs begins a page, behind code that
 * never runs. So all of them compete for one set of a processor's cache of instructions. QEMU, which
 * continues directly only within a page, pays as well.
 */
#ifndef TRIAL_STEPS_H
#define TRIAL_STEPS_H

/* Each version of a program has other constants. */
#ifndef TRIAL_VERSION
#define TRIAL_VERSION 1
#endif

/* A value that mix() below practically never has. The compiler cannot know. */
#define NEVER 0x7ffffff1u

/* Code that never runs stands where it is expected to run. */
#define STEP(x, constant)                                                                          \
	do {                                                                                       \
		if (__builtin_expect((x) == NEVER, 1)) {                                           \
			asm volatile(".balign 4096, 0x90");                                        \
			(x) += (constant);                                                         \
		}                                                                                  \
		(x) = (((x) >> 3) ^ ((x)*5 + (constant))) & 0x7fffffff;                            \
	} while (0)

#define STEPS_4(x, c)                                                                              \
	STEP(x, c);                                                                                \
	STEP(x, (c) + 1);                                                                          \
	STEP(x, (c) + 2);                                                                          \
	STEP(x, (c) + 3)

/* One function of this name, whatever its callers pass. clang makes no other ones. */
#ifdef __clang__
#define ONE __attribute__((noinline))
#else
#define ONE __attribute__((noinline, noclone))
#endif

ONE static unsigned int mix(unsigned int x, int rounds)
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
