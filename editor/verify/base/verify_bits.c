// SPDX-License-Identifier: Apache-2.0
/*
 * verify_bits - one bit for each byte address in a range.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"

int vf_bits_init(struct vf_bits *bits, uint64_t start, uint64_t end)
{
	bits->base = start;
	bits->nr = end > start ? end - start : 0;
	if (bits->nr > VF_SPAN_MAX)
		return -EBADMSG;
	bits->word = calloc(bits->nr / 64 + 1, sizeof(*bits->word));
	return bits->word ? 0 : -ENOMEM;
}

void vf_bits_fini(struct vf_bits *bits)
{
	free(bits->word);
	memset(bits, 0, sizeof(*bits));
}

uint64_t vf_bits_next(const struct vf_bits *bits, uint64_t vaddr, uint64_t end)
{
	uint64_t i, stop, w, last = end;

	if (vaddr < bits->base)
		vaddr = bits->base;
	if (last > bits->base + bits->nr)
		last = bits->base + bits->nr;
	/* Return the caller's @end even if the bitmap ends earlier: callers loop until they
	 * reach it. */
	if (vaddr >= last)
		return end;
	i = vaddr - bits->base;
	stop = last - bits->base;
	w = bits->word[i / 64] & (~0ULL << (i % 64));
	for (i /= 64;; w = bits->word[i]) {
		if (w) {
			i = i * 64 + (uint64_t)__builtin_ctzll(w);
			return i < stop ? bits->base + i : end;
		}
		if (++i * 64 >= stop)
			return end;
	}
}
