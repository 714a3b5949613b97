// SPDX-License-Identifier: Apache-2.0
/*
 * enough - would more counts make the layout better?
 *
 * The windows of counts are cut into two halves, as the caller chooses. A layout lets the usual way out of each block
 * fall through. What one half teaches is applied to the other half, which it does not know: how much of the other half's
 * flow goes the ways that the first half calls usual. A block that the first half did not see keeps the way that falls
 * through in the original. This takes no layout and no ELF file, only counts. Called when counting may end.
 *
 * It cannot foresee a kind of work of which neither half has any.
 */
#ifndef MP_ENOUGH_H
#define MP_ENOUGH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Points of taken branches. Below this, more counts are not worth their cost. */
#define MP_ENOUGH_MORE 1.0

/* The edges of a program; the same for both halves. */
struct mp_flow {
	size_t nr_edges;
	const uint32_t *group; /* of each edge: the block that it leaves. Ascending. */
	/*
	 * Of each edge: is it a taken branch in the original's layout, rather than a fall-through?
	 * NULL: not known; each counts as one. Points are then hundredths of all transfers, and
	 * unseen blocks have no way that falls through.
	 */
	const bool *taken;
};

struct mp_enough {
	/*
	 * In points of the original's taken branches, mean of both directions. Saving: what a
	 * layout made from one half saves on the other half. Loss: how much more a layout made from
	 * that other half itself would save. More: how much more endless counts would save than all
	 * of these, estimated from the loss.
	 */
	double saving, loss, more;
	double coverage;  /* share of a half's flow that leaves blocks which the other half saw */
	double agreement; /* of that flow, the share in blocks whose usual way is the same in both */
};

/*
 * mp_enough_counts - @a, @b: how often each edge was taken, in each half. Return: 0; -EAGAIN: a
 * half has no counts; -EINVAL: the groups do not ascend.
 */
int mp_enough_counts(const struct mp_flow *flow, const uint64_t *a, const uint64_t *b,
		     struct mp_enough *out);

#endif
