// SPDX-License-Identifier: Apache-2.0
/* sha256 - see sha256.h. The constants are the first bits of roots of primes, as the standard says. */
#include "libprof/base/sha256.h"

#include <cpuid.h>
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#define BLOCK 64

static const uint32_t round_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2};

static uint32_t rotate(uint32_t x, int bits)
{
	return x >> bits | x << (32 - bits);
}

/* In round @j of eight, the first word of the state is s[-j], counted in a circle. */
static inline void make_round(uint32_t s[8], int j, uint32_t add)
{
	uint32_t a = s[-j & 7], b = s[(1 - j) & 7], c = s[(2 - j) & 7];
	uint32_t e = s[(4 - j) & 7], f = s[(5 - j) & 7], g = s[(6 - j) & 7];
	uint32_t up = s[(7 - j) & 7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
		      ((e & f) ^ (~e & g)) + add;

	s[(3 - j) & 7] += up;
	s[(7 - j) & 7] =
		up + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
}

static void add_blocks(uint32_t state[8], const uint8_t *p, size_t nr)
{
	for (; nr; nr--, p += BLOCK) {
		uint32_t w[64], s[8];

		for (int i = 0; i < 16; i++)
			w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
			       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
		for (int i = 16; i < 64; i++) {
			uint32_t a = w[i - 15], b = w[i - 2];

			w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
			       (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
		}
		memcpy(s, state, sizeof(s));
		/* Eight rounds at a time: the words change their roles, and none moves. */
		for (int i = 0; i < 64; i += 8) {
#pragma GCC unroll 8
			for (int j = 0; j < 8; j++)
				make_round(s, j, round_constants[i + j] + w[i + j]);
		}
		for (int i = 0; i < 8; i++)
			state[i] += s[i];
	}
}

/*
 * By the processor's instructions, which make two rounds each. They keep the eight words of the state as (a, b, e, f)
 * and (c, d, g, h), the first one in the highest lane.
 */
__attribute__((target("sha,sse4.1"))) static void
add_blocks_by_processor(uint32_t state[8], const uint8_t *p, size_t nr)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i badc = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
	__m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
	__m128i abef = _mm_alignr_epi8(badc, efgh, 8), cdgh = _mm_blend_epi16(efgh, badc, 0xf0);

	for (; nr; nr--, p += BLOCK) {
		__m128i w[4], first = abef, second = cdgh;

		for (int i = 0; i < 16; i++) {
			__m128i *now = &w[i % 4], with;

			if (i < 4) {
				*now = _mm_shuffle_epi8(
					_mm_loadu_si128((const __m128i *)(p + 16 * i)), swap);
			} else {
				__m128i late = w[(i + 3) % 4];

				*now = _mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(i + 1) % 4]),
						     _mm_alignr_epi8(late, w[(i + 2) % 4], 4));
				*now = _mm_sha256msg2_epu32(*now, late);
			}
			with = _mm_add_epi32(
				*now, _mm_loadu_si128((const __m128i *)(round_constants + 4 * i)));
			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, with);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(with, 0x0e));
		}
		abef = _mm_add_epi32(abef, first);
		cdgh = _mm_add_epi32(cdgh, second);
	}
	badc = _mm_shuffle_epi32(abef, 0x1b);
	efgh = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128((__m128i *)state, _mm_blend_epi16(badc, efgh, 0xf0));
	_mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(efgh, badc, 8));
}

static bool processor_can(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_1) && (c & bit_SSSE3) &&
	       __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

static void hash(void (*add)(uint32_t state[8], const uint8_t *p, size_t nr), const void *data,
		 size_t size, uint8_t out[MP_SHA256_BYTES])
{
	uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
			     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	uint8_t last[2 * BLOCK] = {0};
	size_t rest = size % BLOCK, nr_last = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;

	add(state, data, size / BLOCK);
	if (rest)
		memcpy(last, (const uint8_t *)data + size - rest, rest);
	last[rest] = 0x80;
	for (size_t i = 0; i < 8; i++)
		last[nr_last - 1 - i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
	add(state, last, nr_last / BLOCK);
	for (size_t i = 0; i < MP_SHA256_BYTES; i++)
		out[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}

void mp_sha256_plain(const void *data, size_t size, uint8_t out[MP_SHA256_BYTES])
{
	hash(add_blocks, data, size, out);
}

void mp_sha256(const void *data, size_t size, uint8_t out[MP_SHA256_BYTES])
{
	hash(processor_can() ? add_blocks_by_processor : add_blocks, data, size, out);
}
