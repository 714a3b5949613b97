// SPDX-License-Identifier: Apache-2.0
/*
 * verify_bounds - marks functions between two addresses that one function names close together, if it reads what lies
 * between, or asks whether something does. Called by verify_read, which follows the addresses.
 */
#include <errno.h>

#include "editor/verify/verify_private.h"

/* From one operand to the other. */
#define NEAR_BYTES 128u

static bool begins(const struct vf *vf, uint64_t vaddr)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old_eh, vaddr);

	return fde && fde->start == vaddr;
}

/* @use: what the program does with the first address; that is enough if it reads there, else both are compared. */
static bool may_bound(const struct vf *vf, const struct vf_named *a, const struct vf_named *b)
{
	bool reads = (a->use == VF_READS && begins(vf, a->to)) ||
		     (b->use == VF_READS && begins(vf, b->to));

	/* Labels outside of functions: the distance of one from the other. */
	if ((a->computed || b->computed) && !vf_eh_find(&vf->old_eh, a->to) &&
	    !vf_eh_find(&vf->old_eh, b->to))
		return a->to != b->to;
	return a->to != b->to && (reads || (a->use && b->use)) &&
	       (begins(vf, a->to) || begins(vf, b->to));
}

/* The number of FDEs that begin before @vaddr. */
static uint32_t begin_before(const struct vf_eh *eh, uint64_t vaddr)
{
	uint32_t lo = 0, hi = eh->nr_fdes;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (eh->fdes[mid].start < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* FDE @i and those behind it, up to @limit[i], lie between two bounds. */
static void enclose(const struct vf *vf, uint32_t *limit, uint64_t a, uint64_t b)
{
	uint64_t low = a < b ? a : b, high = a < b ? b : a;
	const struct vf_fde *holds = vf_eh_find(&vf->old_eh, low);
	uint32_t first = holds ? (uint32_t)(holds - vf->old_eh.fdes)
			       : begin_before(&vf->old_eh, low);
	uint32_t end = begin_before(&vf->old_eh, high + 1); /* the one at @high keeps its address */

	if (first < end && limit[first] < end)
		limit[first] = end;
}

int vf_find_bounded(const struct vf *vf, const struct vf_named *named, size_t nr)
{
	uint32_t *limit = calloc((size_t)vf->old_eh.nr_fdes + 1, sizeof(*limit)), end = 0;

	if (!limit)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const struct vf_fde *user = vf_eh_find(&vf->old_eh, named[i].insn);

		for (size_t k = i + 1;
		     user && k < nr && named[k].insn - named[i].insn <= NEAR_BYTES &&
		     named[k].insn - user->start < user->size;
		     k++)
			if (may_bound(vf, &named[i], &named[k]) &&
			    named[i].to - user->start >= user->size &&
			    named[k].to - user->start >= user->size)
				enclose(vf, limit, named[i].to, named[k].to);
	}
	for (uint32_t i = 0; i < vf->old_eh.nr_fdes; i++) {
		end = limit[i] > end ? limit[i] : end;
		if (i < end)
			vf->old_eh.fdes[i].flags |= VF_FDE_READ;
	}
	free(limit);
	return 0;
}
