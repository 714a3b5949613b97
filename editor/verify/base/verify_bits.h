// SPDX-License-Identifier: Apache-2.0
/*
 * verify_bits - one bit for each byte address in [base, base + nr).
 */
#ifndef ME_VERIFY_BITS_H
#define ME_VERIFY_BITS_H

#include <stdbool.h>
#include <stdint.h>

/* One bit per byte address in [base, base + nr). */
struct vf_bits {
	uint64_t base, nr;
	uint64_t *word;
};

/* Larger spans are refused: their bitmaps would take too much memory. */
#define VF_SPAN_MAX (1ULL << 30)
/* All bits are 0. Return: 0, -ENOMEM, -EBADMSG the range is too large. */
int vf_bits_init(struct vf_bits *bits, uint64_t start, uint64_t end);
void vf_bits_fini(struct vf_bits *bits);
/* First set bit at or after @vaddr and below @end, or @end. */
uint64_t vf_bits_next(const struct vf_bits *bits, uint64_t vaddr, uint64_t end);

static inline bool vf_bits_get(const struct vf_bits *bits, uint64_t vaddr)
{
	uint64_t i = vaddr - bits->base;

	return i < bits->nr && (bits->word[i / 64] >> (i % 64) & 1);
}

static inline void vf_bits_set(struct vf_bits *bits, uint64_t vaddr)
{
	uint64_t i = vaddr - bits->base;

	if (i < bits->nr)
		bits->word[i / 64] |= 1ULL << (i % 64);
}

/* vf_bits_set() for bits that several threads set. */
static inline void vf_bits_share(struct vf_bits *bits, uint64_t vaddr)
{
	uint64_t i = vaddr - bits->base, bit = 1ULL << (i % 64);

	if (i < bits->nr && !(__atomic_load_n(&bits->word[i / 64], __ATOMIC_RELAXED) & bit))
		__atomic_fetch_or(&bits->word[i / 64], bit, __ATOMIC_RELAXED);
}

#endif
