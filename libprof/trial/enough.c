// SPDX-License-Identifier: Apache-2.0
/* enough - applies what one half of a profile teaches to the other half; see enough.h. */
#include "libprof/trial/enough.h"

#include <errno.h>

/*
 * Of the loss of a half, about this part is left to be gained with all counts: see results.md,
 * "Enough".
 */
#define LEFT (1 / 3.0)

/* Of one half's flow: sums over blocks, by what the other half teaches. */
struct sums {
	double all, taken; /* transfers; those that are taken branches in the original */
	double seen;	   /* that leave blocks which the teacher saw */
	double agreed;	   /* of these: that leave blocks whose usual way is the same */
	double followed;   /* of all: that fall through in a layout by the teacher */
	double best;	   /* of all: that fall through in a layout by this half itself */
};

/* The usual way out of a block: the edge of the highest count, the first of equal ones. */
static size_t usual_of(const uint64_t *counts, size_t first, size_t end)
{
	size_t best = first;

	for (size_t i = first + 1; i < end; i++)
		if (counts[i] > counts[best])
			best = i;
	return best;
}

/* @flow: what leaves the block; @stays: the part of it that falls through in the original. */
static void add_block(struct sums *sums, const uint64_t *teacher, const uint64_t *counts,
		      size_t first, size_t end, double flow, double stays)
{
	size_t taught = usual_of(teacher, first, end), best = usual_of(counts, first, end);

	sums->best += (double)counts[best];
	if (!teacher[taught]) {
		sums->followed += stays;
		return;
	}
	sums->seen += flow;
	sums->followed += (double)counts[taught];
	if (taught == best)
		sums->agreed += flow;
}

/* Return: 0, -EINVAL: the groups do not ascend. */
static int add_up(const struct mp_flow *flow, const uint64_t *teacher, const uint64_t *counts,
		  struct sums *out)
{
	*out = (struct sums){0};
	for (size_t first = 0, end; first < flow->nr_edges; first = end) {
		double all = 0, taken = 0;

		for (end = first; end < flow->nr_edges && flow->group[end] == flow->group[first];
		     end++) {
			all += (double)counts[end];
			if (!flow->taken || flow->taken[end])
				taken += (double)counts[end];
		}
		if (end < flow->nr_edges && flow->group[end] < flow->group[first])
			return -EINVAL;
		out->all += all;
		out->taken += taken;
		add_block(out, teacher, counts, first, end, all, all - taken);
	}
	return 0;
}

/*
 * Taken branches that a layout by the teacher saves: those of the original, less those that do not
 * fall through.
 */
static double saved(const struct sums *s)
{
	return s->taken - (s->all - s->followed);
}

static double part_of(double a, double b)
{
	return b > 0 ? a / b : 0;
}

int mp_enough_counts(const struct mp_flow *flow, const uint64_t *a, const uint64_t *b,
		     struct mp_enough *out)
{
	struct sums s[2];
	int rc = add_up(flow, a, b, &s[0]);

	*out = (struct mp_enough){0};
	if (!rc)
		rc = add_up(flow, b, a, &s[1]);
	if (rc)
		return rc;
	for (int i = 0; i < 2; i++) {
		if (!(s[i].taken > 0))
			return -EAGAIN;
		out->saving += 100 * saved(&s[i]) / s[i].taken / 2;
		out->loss += 100 * (s[i].best - s[i].followed) / s[i].taken / 2;
		out->more += LEFT * 100 * (s[i].best - s[i].followed) / s[i].taken / 2;
		out->coverage += part_of(s[i].seen, s[i].all) / 2;
		out->agreement += part_of(s[i].agreed, s[i].seen) / 2;
	}
	return 0;
}
