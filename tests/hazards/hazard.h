/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the programs here: values the compiler cannot know, functions it must not inline. */
#ifndef HAZARD_H
#define HAZARD_H

#define NOINLINE __attribute__((noinline))
#ifdef __clang__
#define NOCLONE
#else
#define NOCLONE __attribute__((noclone))
#endif
#define KEEP NOINLINE NOCLONE

/* A value that the compiler cannot know. */
#ifdef __cplusplus
#define HAZARD_AUTO auto
#else
#define HAZARD_AUTO __auto_type
#endif
#define OPAQUE(x)                                    \
	({                                           \
		HAZARD_AUTO opaque_ = (x);           \
		__asm__ volatile("" : "+r"(opaque_)); \
		opaque_;                             \
	})

static unsigned int hazard_state = 12345;

static inline __attribute__((unused)) unsigned int hazard_next(void)
{
	hazard_state = hazard_state * 1103515245u + 12345u;
	return hazard_state >> 16 & 0x7fff;
}

#endif
