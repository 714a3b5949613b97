// SPDX-License-Identifier: Apache-2.0
/* enough - applies what one half of a profile teaches to the other half; see enough.h. */
#include "libprof/trial/enough.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Beyond this, half of a count is as good as a draw: the noise is below a thousandth. */
#define DRAW_MAX (UINT64_C(1) << 20)

/* So many halves of a half are drawn, and the mean is taken. */
#define NR_DRAWS 3
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

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

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

/* The number of heads of @nr coins. */
static uint64_t draw_half(uint64_t nr, uint64_t *state)
{
	uint64_t heads = 0;

	if (nr > DRAW_MAX)
		return nr / 2;
	for (; nr > 0; nr -= nr < 64 ? nr : 64) {
		uint64_t coins = next_random(state);

		if (nr < 64)
			coins &= (UINT64_C(1) << nr) - 1;
		heads += (uint64_t)__builtin_popcountll(coins);
	}
	return heads;
}

/* Sums over both directions. */
struct growing {
	/* Savings by a half of the samples, and by half of those, in parts of taken branches. */
	double whole, half;
	double coverage; /* of the former */
};

/* Adds what @teacher, and what half of it, saves on @counts. @fewer: room for counts. */
static int add_growth(const struct mp_flow *flow, const uint64_t *teacher, const uint64_t *counts,
		      uint64_t *fewer, uint64_t *state, struct growing *g)
{
	struct sums s;
	int rc = add_up(flow, teacher, counts, &s);

	if (rc)
		return rc;
	if (!(s.taken > 0))
		return -EAGAIN;
	g->whole += saved(&s) / s.taken;
	g->coverage += part_of(s.seen, s.all) / 2;
	for (int draw = 0; !rc && draw < NR_DRAWS; draw++) {
		for (size_t i = 0; i < flow->nr_edges; i++)
			fewer[i] = draw_half(teacher[i], state);
		rc = add_up(flow, fewer, counts, &s);
		g->half += saved(&s) / s.taken / NR_DRAWS;
	}
	return rc;
}

int mp_enough_growth(const struct mp_flow *flow, const uint64_t *a, const uint64_t *b,
		     uint64_t seed, double *growth)
{
	uint64_t *fewer = calloc(flow->nr_edges ? flow->nr_edges : 1, sizeof(*fewer));
	struct growing g = {0};
	int rc = fewer ? 0 : -ENOMEM;

	*growth = INFINITY;
	if (!rc)
		rc = add_growth(flow, a, b, fewer, &seed, &g);
	if (!rc)
		rc = add_growth(flow, b, a, fewer, &seed, &g);
	free(fewer);
	if (!rc && g.whole > 0 && g.coverage >= MP_ENOUGH_COVERAGE)
		*growth = fmax(0, (g.whole - g.half) / g.whole);
	return rc;
}
