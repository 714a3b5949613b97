// SPDX-License-Identifier: Apache-2.0
/*
 * offset_base - what an offset in data counts from, where it is an entry of a switch's table though
 * the jump through it was not understood.
 */
#ifndef ME_OFFSET_BASE_H
#define ME_OFFSET_BASE_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/cfg.h"

struct me_offsets {
	const struct mp_cfg *cfg;
	/* Data that operands of code are, by address; collected when first asked for. */
	struct me_named {
		uint64_t vaddr, site;
	} * named;
	size_t nr_named;
	uint64_t run_base, run_next; /* offsets side by side: what they count from, 0: unknown */
};

/* Frees what @offsets holds, not @offsets itself: all zero but for @cfg at first. */
void me_offsets_fini(struct me_offsets *offsets);

/*
 * me_offset_base - what the offset at @vaddr counts from: the nearest address that code names, at
 * or before it, with nothing but offsets between. To be called in the order of addresses.
 * Return: 0 where that is not certain (also: no memory).
 */
uint64_t me_offset_base(struct me_offsets *offsets, uint64_t vaddr);

#endif
