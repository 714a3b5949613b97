// SPDX-License-Identifier: Apache-2.0
/*
 * enough - would more counts, or more samples, make the layout better?
 *
 * The profile is cut into two halves: every second window of counts, or every second sample. A
 * layout lets the usual way out of each block fall through. What one half teaches is applied to the
 * other half, which it does not know: how much of the other half's flow goes the ways that the
 * first half calls usual. A block that the first half did not see keeps the way that falls through
 * in the original. This takes no layout and no ELF file, only counts. Called when a round may
 * begin, and when counting may end.
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
/* Below this, twice as many samples are not worth waiting for. */
#define MP_ENOUGH_GROWTH 0.1
/*
 * As long as a half knows less than this part of the other half's flow, growth cannot be foreseen.
 */
#define MP_ENOUGH_COVERAGE 0.5

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
/*
 * mp_enough_growth - @a, @b: samples of each edge in each half. *@growth: by which share the
 * expected saving grows with twice as many samples; rather too much. INFINITY: nothing is saved
 * yet, or the coverage is below MP_ENOUGH_COVERAGE. It is seen from a quarter of the samples to a
 * half: of each half, one half is drawn at random, by @seed. With each doubling, the growth becomes
 * smaller. Return: as above, -ENOMEM.
 */
int mp_enough_growth(const struct mp_flow *flow, const uint64_t *a, const uint64_t *b,
		     uint64_t seed, double *growth);

#endif
