// SPDX-License-Identifier: Apache-2.0
/*
 * order_cds - joins groups of functions by a model of cache and TLB, the best join first, after the
 * cache-directed sort of LLVM BOLT (cdsort, by Newell and Pupyrev). Called by order.c.
 *
 * The model has two terms. First, a call over a distance of d bytes is worth its count times
 * d^-1/4: short calls stay in the line, in the page and in the reach of a predictor. Second, some
 * share of the calls that arrive at a group misses the TLB. The model takes execution for a random
 * walk over pages, of which the TLB holds the last 16. The denser a group is in time, the likelier
 * is its page among these, and the smaller is the share. This term forbids joining hot code to
 * cold code, since that makes the hot group less dense.
 *
 * Differences from BOLT: arrivals are calls, where BOLT takes the function's samples, and either
 * group may come first. Joins that make a group longer than MAX_FUNCS are not considered.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "libprof/order/order_pairs.h"
#include "libprof/order/order_private.h"

/*
 * Functions of a group, power of the distance, bytes of a page and entries of the TLB are the
 * defaults of LLVM's cdsort and of BOLT's -itlb-page-size and -itlb-entries. The weight of the TLB
 * is Morph's: test_order shows that it keeps hot code dense and calls short. results.md compares
 * the three orders ("ph" is the default).
 */
#define MAX_FUNCS      128
#define PAGE_BYTES     4096.0
#define TLB_ENTRIES    16.0
#define DISTANCE_POWER 0.25
#define TLB_WEIGHT     4.0

struct cds {
	struct order *o;
	struct mp_pairs pairs;
	uint64_t *start;  /* per function: its offset in its group */
	double *arrivals; /* per group: calls of its functions */
	double total;	  /* weight of all functions */
};

static double miss_share(const struct cds *c, double weight, double bytes)
{
	double page = weight / fmax(bytes, 1) * PAGE_BYTES;

	return page < c->total ? pow(1 - page / c->total, TLB_ENTRIES) : 0;
}

static double group_misses(const struct cds *c, uint32_t g)
{
	const struct order_group *group = &c->o->groups[g];

	return c->arrivals[g] * miss_share(c, group->weight, (double)group->bytes);
}

/* The worth of @pair's calls if the other group lies right behind @first. */
static double calls_worth(const struct cds *c, const struct mp_pair *pair, uint32_t first)
{
	const struct order *o = c->o;
	uint64_t shift = o->groups[first].bytes;
	double sum = 0;

	for (uint32_t i = pair->first_link; i != MP_PAIRS_NONE; i = c->pairs.next_link[i]) {
		const struct mp_order_arc *arc = &o->arcs[i];
		uint64_t size = o->funcs[arc->caller].size;
		uint64_t from = c->start[arc->caller] + (arc->offset < size ? arc->offset : size);
		uint64_t to = c->start[arc->callee];

		from += o->group[arc->caller] == first ? 0 : shift;
		to += o->group[arc->callee] == first ? 0 : shift;
		sum += arc->weight *
		       pow(fmax(from > to ? (double)(from - to) : (double)(to - from), 1),
			   -DISTANCE_POWER);
	}
	return sum;
}

/* True if the group with the higher number is better first; on a tie the lower one comes first. */
static bool pair_is_turned(const struct cds *c, const struct mp_pair *pair, double *worth)
{
	uint32_t low = pair->a < pair->b ? pair->a : pair->b;
	uint32_t high = pair->a < pair->b ? pair->b : pair->a;
	double straight = calls_worth(c, pair, low), turned = calls_worth(c, pair, high);

	*worth = fmax(straight, turned);
	return turned > straight;
}

static int pair_rate(struct cds *c, uint32_t id)
{
	const struct mp_pair *pair = &c->pairs.pairs[id];
	const struct order_group *a = &c->o->groups[pair->a], *b = &c->o->groups[pair->b];
	double worth, misses;

	if (a->nr_funcs + b->nr_funcs > MAX_FUNCS)
		return mp_pairs_rate(&c->pairs, id, 0);
	pair_is_turned(c, pair, &worth);
	misses = group_misses(c, pair->a) + group_misses(c, pair->b) -
		 (c->arrivals[pair->a] + c->arrivals[pair->b]) *
			 miss_share(c, a->weight + b->weight, (double)(a->bytes + b->bytes));
	return mp_pairs_rate(&c->pairs, id, worth + TLB_WEIGHT * misses);
}

static int pair_join(struct cds *c, uint32_t id)
{
	const struct mp_pair *pair = &c->pairs.pairs[id];
	uint32_t low = pair->a < pair->b ? pair->a : pair->b;
	uint32_t high = pair->a < pair->b ? pair->b : pair->a, first, second, nr;
	const uint32_t *ids;
	double worth;
	int ret;

	first = pair_is_turned(c, pair, &worth) ? high : low;
	second = first == low ? high : low;
	for (uint32_t f = c->o->groups[second].first; f != ORDER_NONE; f = c->o->next[f])
		c->start[f] += c->o->groups[first].bytes;
	c->arrivals[first] += c->arrivals[second];
	order_join(c->o, first, second);
	ret = mp_pairs_fold(&c->pairs, first, second);
	nr = mp_pairs_of(&c->pairs, first, &ids);
	for (uint32_t i = 0; i < nr && !ret; i++)
		if (!c->pairs.pairs[ids[i]].gone)
			ret = pair_rate(c, ids[i]);
	return ret;
}

static int pairs_start(struct cds *c)
{
	const struct order *o = c->o;
	struct mp_pairs_link *links = malloc(((size_t)o->nr_arcs + 1) * sizeof(*links));
	int ret = -ENOMEM;

	if (!links)
		return ret;
	for (uint32_t i = 0; i < o->nr_arcs; i++) {
		links[i] = (struct mp_pairs_link){o->arcs[i].caller, o->arcs[i].callee};
		c->arrivals[o->arcs[i].callee] += o->arcs[i].weight;
	}
	for (uint32_t f = 0; f < o->nr_funcs; f++)
		c->total += fmax(o->funcs[f].weight, 0);
	ret = mp_pairs_init(&c->pairs, o->nr_funcs, links, o->nr_arcs);
	for (uint32_t i = 0; i < c->pairs.nr_pairs && !ret; i++)
		ret = pair_rate(c, i);
	free(links);
	return ret;
}

int order_cds(struct order *o)
{
	struct cds c = {.o = o};
	uint32_t best;
	int ret = -ENOMEM;

	c.start = calloc((size_t)o->nr_funcs + 1, sizeof(*c.start));
	c.arrivals = calloc((size_t)o->nr_funcs + 1, sizeof(*c.arrivals));
	if (!c.start || !c.arrivals)
		goto out;
	ret = pairs_start(&c);
	while (!ret && (best = mp_pairs_best(&c.pairs)) != MP_PAIRS_NONE)
		ret = pair_join(&c, best);
out:
	mp_pairs_fini(&c.pairs);
	free(c.start);
	free(c.arrivals);
	return ret;
}
