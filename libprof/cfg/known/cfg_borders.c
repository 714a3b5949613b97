// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_borders - leaves functions alone that lie between two addresses of which the program reads, or compares, what
 * lies between: self tests sum up all code from one function to another. Called by cfg_read.
 */
#include <errno.h>
#include <stdlib.h>

#include "libprof/cfg/cfg_private.h"

/* Bytes between the instructions that name both. */
#define NEAR_BYTES 128

static int by_at(const void *a, const void *b)
{
	const struct mp_border *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

int mp_borders_start(const struct mp_cfg_build *b, struct mp_borders *borders)
{
	if (!borders->nr)
		return 0;
	qsort(borders->list, borders->nr, sizeof(*borders->list), by_at);
	borders->change = calloc((size_t)b->index->nr_parts + 1, sizeof(*borders->change));
	return borders->change ? 0 : -ENOMEM;
}

/* Index of the first bound that an instruction at or behind @at names. */
static uint32_t first_border(const struct mp_borders *borders, uint32_t at)
{
	uint32_t lo = 0, hi = borders->nr;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (borders->list[mid].at < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool is_start(const struct mp_cfg_build *b, uint32_t target)
{
	uint32_t part = mp_part_at(b->index, target);

	return part != MP_NONE && b->index->parts[part].at == target;
}

/* Index of the first part that ends behind @at (@ends), or begins there or behind. */
static uint32_t first_part(const struct mp_cfg_build *b, uint32_t at, bool ends)
{
	uint32_t lo = 0, hi = b->index->nr_parts;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct mp_part *part = &b->index->parts[mid];

		if (ends ? part->end <= at : part->at < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void mp_borders_pair(const struct mp_cfg_build *b, struct mp_borders *borders, uint32_t at,
		     uint32_t target)
{
	uint32_t part = mp_part_at(b->index, at), i = first_border(borders, at);
	bool strong = i < borders->nr && borders->list[i].at == at;

	if (part == MP_NONE || mp_part_at(b->index, target) == part)
		return;
	i = first_border(borders, at < NEAR_BYTES ? 0 : at - NEAR_BYTES);
	for (; i < borders->nr && borders->list[i].at <= at + NEAR_BYTES; i++) {
		const struct mp_border *other = &borders->list[i];
		uint32_t low = target < other->target ? target : other->target;
		uint32_t high = target < other->target ? other->target : target;

		if (low == high || mp_part_at(b->index, other->at) != part)
			continue;
		/* Two labels outside of functions: one has been taken from the other. */
		if (!(other->computed && mp_part_at(b->index, low) == MP_NONE &&
		      mp_part_at(b->index, high) == MP_NONE) &&
		    (!(strong || (other->sure && is_start(b, other->target))) ||
		     !(is_start(b, low) || is_start(b, high))))
			continue;
		borders->change[first_part(b, low, true)]++;
		/* The function at the end keeps its address. */
		borders->change[first_part(b, high + 1, false)]--;
	}
}

void mp_borders_end(struct mp_cfg_build *b, struct mp_borders *borders)
{
	int32_t inside = 0;

	for (uint32_t i = 0; borders->change && i < b->index->nr_parts; i++) {
		const struct mp_part *part = &b->index->parts[i];

		inside += borders->change[i];
		if (inside > 0)
			mp_func_problem(&b->cfg->funcs[part->func], MP_PROBLEM_READ,
					mp_space_vaddr(b->index, part->at));
	}
	free(borders->change);
	free(borders->list);
}
