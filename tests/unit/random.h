// SPDX-License-Identifier: Apache-2.0
/* random - reproducible numbers for tests: the same after the same seed. */
#ifndef MORPH_TESTS_RANDOM_H
#define MORPH_TESTS_RANDOM_H

#include <stdint.h>

static uint64_t seed;

static inline uint32_t random_below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

#endif
