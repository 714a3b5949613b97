// SPDX-License-Identifier: Apache-2.0
/* round - multiples of powers of two. */
#ifndef MP_ROUND_H
#define MP_ROUND_H

#include <stdint.h>

/* The first multiple of @align, a power of two, from @value on. */
static inline uint64_t mp_round_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) & ~(align - 1);
}

#endif
