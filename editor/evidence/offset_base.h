// SPDX-License-Identifier: Apache-2.0
/*
 * offset_base - finds the address that an offset in data counts from, if the offset is an entry of
 * a switch's table. This works even if the jump through the table was not resolved. Called by
 * pointer.
 */
#ifndef ME_OFFSET_BASE_H
#define ME_OFFSET_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"

struct me_offsets {
	const struct mp_cfg *cfg;
	/* Addresses that operands of code name, ascending; collected on first use. */
	struct me_named {
		uint64_t vaddr, site;
	} * named;
	size_t nr_named;
	uint64_t run_base,
		run_next; /* base of the current run of offsets, 0: unknown; end of the run */
	uint64_t asked;	  /* the last base of which it was asked whether it is a switch's */
	bool is_switch;
};

/* Frees the contents of @offsets. @offsets must start as all zeros but for @cfg. */
void me_offsets_fini(struct me_offsets *offsets);

/*
 * me_offset_base - base of the offset at @vaddr: the nearest address that code names, at or
 * before it, with only offsets between. Call it in ascending order of addresses.
 * Return: 0 if the base is not certain, or without memory.
 */
uint64_t me_offset_base(struct me_offsets *offsets, uint64_t vaddr);

#endif
