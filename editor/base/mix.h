/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix - the last step of splitmix64: neighbouring numbers become numbers that look random. Good enough for stress
 * and simulations.
 */
#ifndef ME_MIX_H
#define ME_MIX_H

#include <stdint.h>

static inline uint64_t me_mix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* splitmix64: the next number of the sequence that @state stands for. */
static inline uint64_t me_next_random(uint64_t *state)
{
	return me_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

#endif
