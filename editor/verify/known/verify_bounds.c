// SPDX-License-Identifier: Apache-2.0
/*
 * verify_bounds - marks functions between two addresses that one function names close together, if it reads what lies
 * between, or asks whether something does. Called by verify_read, which follows the addresses.
 */
#include <errno.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/known/verify_bounds.h"
#include "editor/verify/known/verify_cell.h"
#include "libprof/base/search.h"

/* From one operand to the other. */
#define NEAR_BYTES 128u
/* From one end to the other: more lies between two functions by accident. */
#define FAR_BYTES 65536u

static bool begins(const struct vf *vf, uint64_t vaddr)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, vaddr);

	return fde && fde->start == vaddr;
}

/* One of two addresses that a function names. */
struct end {
	uint64_t to;
	uint8_t use;
	const struct vf_ref *name;
};

/* Is there a loop that reads from @a on, up to @b? */
static bool reads_up_to(const struct end *a, const struct end *b)
{
	return (a->use == VF_READS || a->use == VF_ASKS) && b->use >= VF_EQUALS;
}

static bool are_far(const struct end *a, const struct end *b)
{
	return (a->to < b->to ? b->to - a->to : a->to - b->to) > FAR_BYTES;
}

/*
 * Functions are stored, handed on, read and compared for equality side by side everywhere. So the program must ask for
 * their order or compute with them, or one instruction must compare both.
 */
static bool may_bound(struct vf *vf, const struct end *a, const struct end *b,
		      vf_are_compared are_compared)
{
	bool both = (a->use >= VF_COMPARES && b->use >= VF_COMPARES) || reads_up_to(a, b) ||
		    reads_up_to(b, a);
	/* Labels outside of functions: the distance of one from the other, or what lies between them. */
	bool outside = (a->use == VF_COMPUTES || b->use == VF_COMPUTES || both) &&
		       !vf_eh_find(&vf->old.eh, a->to) && !vf_eh_find(&vf->old.eh, b->to);

	if (a->to == b->to)
		return false;
	if (outside)
		return true;
	if (!(begins(vf, a->to) || begins(vf, b->to)) || a->use < VF_EQUALS || b->use < VF_EQUALS)
		return false;
	if (a->use >= VF_COMPARES && b->use >= VF_COMPARES &&
	    !(a->use == VF_READS && b->use == VF_READS) &&
	    !((a->use == VF_COMPUTES || b->use == VF_COMPUTES) && are_far(a, b)))
		return true;
	/* Bytes are read near anything: a loop compares where it is with its end. */
	return are_compared(vf, a->name, b->name, both);
}

/* The number of FDEs that begin before @vaddr. */
static uint32_t begin_before(const struct vf_eh *eh, uint64_t vaddr)
{
	return mp_search(i, 0, eh->nr_fdes, eh->fdes[i].start < vaddr);
}

/* FDE @i and those behind it, up to @limit[i], lie between two bounds. */
static void enclose(const struct vf *vf, uint32_t *limit, uint64_t a, uint64_t b)
{
	uint64_t low = a < b ? a : b, high = a < b ? b : a;
	const struct vf_fde *holds = vf_eh_find(&vf->old.eh, low);
	uint32_t first = holds ? (uint32_t)(holds - vf->old.eh.fdes)
			       : begin_before(&vf->old.eh, low);
	uint32_t end = begin_before(&vf->old.eh, high + 1); /* the one at @high keeps its address */

	if (first < end && limit[first] < end)
		limit[first] = end;
}

/* Another operand of the same function, nearby, may name the other end. */
static void look_around(struct vf *vf, const uint8_t *use, size_t i, uint32_t *limit,
			vf_are_compared are_compared)
{
	const struct vf_ref *name = vf->old.names.list;
	const struct vf_fde *user = vf_eh_find(&vf->old.eh, name[i].insn);
	struct end a = {vf_named_code(vf, &name[i]), use[i], &name[i]};
	size_t k = i;

	while (k && name[i].insn - name[k - 1].insn <= NEAR_BYTES)
		k--;
	for (; user && k < vf->old.names.nr && (k < i || name[k].insn - name[i].insn <= NEAR_BYTES);
	     k++) {
		struct end b = {vf_named_code(vf, &name[k]), use[k], &name[k]};

		/* A pair of two that are used comes up once. */
		if ((k > i || !use[k]) && b.to && name[k].insn - user->start < user->size &&
		    a.to - user->start >= user->size && b.to - user->start >= user->size &&
		    may_bound(vf, &a, &b, are_compared))
			enclose(vf, limit, a.to, b.to);
	}
}

int vf_find_bounded(struct vf *vf, const uint8_t *use, vf_are_compared are_compared)
{
	uint32_t *limit = calloc((size_t)vf->old.eh.nr_fdes + 1, sizeof(*limit)), end = 0;

	if (!limit)
		return -ENOMEM;
	for (size_t i = 0; i < vf->old.names.nr; i++)
		if (use[i])
			look_around(vf, use, i, limit, are_compared);
	for (uint32_t i = 0; i < vf->old.eh.nr_fdes; i++) {
		end = limit[i] > end ? limit[i] : end;
		if (i < end)
			vf->old.eh.fdes[i].flags |= VF_FDE_READ;
	}
	free(limit);
	return 0;
}
