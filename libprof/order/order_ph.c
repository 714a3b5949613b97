// SPDX-License-Identifier: Apache-2.0
/*
 * order_ph - "closest is best", Pettis and Hansen (PLDI 1990, section 4.1). Repeatedly joins the
 * two groups with the most calls between them. Either group may be reversed, so that the two
 * functions with the heaviest tie lie as close as possible. Called by order.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "libprof/order/order_private.h"
#include "libprof/order/order_ties.h"

/* An undirected edge of the call graph. */
struct affinity {
	uint32_t a, b;
	double weight;
};

static int pair_compare_ends(const void *a, const void *b)
{
	const struct affinity *x = a, *y = b;

	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	return (x->b > y->b) - (x->b < y->b);
}

static int pair_compare_weight(const void *a, const void *b)
{
	const struct affinity *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return pair_compare_ends(a, b);
}

/* Adds parallel arcs and both directions up; the heaviest pair comes first. Return: how many. */
static uint32_t pairs_collect(const struct order *o, struct affinity *pairs)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < o->nr_arcs; i++) {
		uint32_t a = o->arcs[i].caller, b = o->arcs[i].callee;

		pairs[i] = (struct affinity){a < b ? a : b, a < b ? b : a, o->arcs[i].weight};
	}
	qsort(pairs, o->nr_arcs, sizeof(*pairs), pair_compare_ends);
	for (uint32_t i = 0; i < o->nr_arcs; i++) {
		if (kept && pairs[kept - 1].a == pairs[i].a && pairs[kept - 1].b == pairs[i].b)
			pairs[kept - 1].weight += pairs[i].weight;
		else
			pairs[kept++] = pairs[i];
	}
	qsort(pairs, kept, sizeof(*pairs), pair_compare_weight);
	return kept;
}

static uint32_t position_in_group(const struct order *o, uint32_t group, uint32_t func)
{
	uint32_t at = 0;

	for (uint32_t f = o->groups[group].first; f != func; f = o->next[f])
		at++;
	return at;
}

static void group_reverse(struct order *o, uint32_t group)
{
	uint32_t f = o->groups[group].first, behind = ORDER_NONE;

	o->groups[group].last = f;
	while (f != ORDER_NONE) {
		uint32_t next = o->next[f];

		o->next[f] = behind;
		behind = f;
		f = next;
	}
	o->groups[group].first = behind;
}

/* Joins @a and @b in that one of four ways that puts @x in @a closest to @y in @b. */
static void groups_join(struct order *o, uint32_t a, uint32_t b, uint32_t x, uint32_t y)
{
	uint32_t x_at = position_in_group(o, a, x), y_at = position_in_group(o, b, y);

	if (x_at < o->groups[a].nr_funcs - 1 - x_at)
		group_reverse(o, a);
	if (y_at > o->groups[b].nr_funcs - 1 - y_at)
		group_reverse(o, b);
	order_join(o, a, b);
}

/*
 * When two groups are joined, their ties to a third group add up. The group with fewer ties is
 * folded into the other, so that each tie moves about log n times.
 */
int order_ph(struct order *o)
{
	struct affinity *pairs = malloc(((size_t)o->nr_arcs + 1) * sizeof(*pairs));
	struct mp_ties *ties = NULL;
	uint32_t a, b, pair, nr_pairs;
	int ret = -ENOMEM;

	if (!pairs)
		return ret;
	nr_pairs = pairs_collect(o, pairs);
	ret = mp_ties_new(o->nr_funcs, nr_pairs, &ties);
	for (uint32_t i = 0; i < nr_pairs && !ret; i++)
		ret = mp_ties_add(ties, pairs[i].a, pairs[i].b, pairs[i].weight, i);
	while (!ret && mp_ties_heaviest(ties, &a, &b, &pair)) {
		uint32_t x = pairs[pair].a, y = pairs[pair].b;

		groups_join(o, a, b, o->group[x] == a ? x : y, o->group[x] == a ? y : x);
		ret = mp_ties_fold(ties, a, b);
	}
	mp_ties_free(ties);
	free(pairs);
	return ret;
}
