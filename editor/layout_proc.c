// SPDX-License-Identifier: Apache-2.0
/*
 * layout_proc - procedure layout: the order of functions in the new code.
 *
 * Decides who lies beside whom, by how often they call each other: "closest is best", Pettis and
 * Hansen (PLDI 1990). Called by layout.c.
 */
#include <errno.h>
#include <string.h>

#include "editor/layout_private.h"
#include "editor/layout_ties.h"

#define NONE MP_NONE

/* An undirected edge of the call graph. */
struct affinity {
	uint32_t a, b;
	double weight;
};

struct placement {
	const struct mp_cfg *cfg;
	uint32_t *group;	/* per function: its group, NONE: not laid out */
	uint32_t *next;		/* per function: behind it in its group */
	uint32_t *first, *last; /* per group */
	uint32_t *length;	/* per group: functions */
	double *heat, *bytes;	/* per group */
	struct affinity *pairs; /* between functions, heaviest first */
	uint32_t nr_pairs;
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

/* Parallel edges become one. */
static uint32_t pairs_combine(struct affinity *pairs, uint32_t nr)
{
	uint32_t kept = 0;

	qsort(pairs, nr, sizeof(*pairs), pair_compare_ends);
	for (uint32_t i = 0; i < nr; i++) {
		if (kept && pairs[kept - 1].a == pairs[i].a && pairs[kept - 1].b == pairs[i].b)
			pairs[kept - 1].weight += pairs[i].weight;
		else
			pairs[kept++] = pairs[i];
	}
	return kept;
}

static void pairs_collect(struct placement *p, const struct mp_counts *counts)
{
	const struct mp_cfg *cfg = p->cfg;

	for (uint32_t i = 0; i < cfg->nr_calls; i++) {
		const struct mp_call *call = &cfg->calls[i];
		uint32_t caller = cfg->blocks[call->block].func, callee = call->callee;

		if (callee == NONE || caller == NONE || caller == callee ||
		    p->group[caller] == NONE || p->group[callee] == NONE ||
		    !(counts->block[call->block] > 0))
			continue;
		p->pairs[p->nr_pairs++] = (struct affinity){
			.a = caller < callee ? caller : callee,
			.b = caller < callee ? callee : caller,
			.weight = counts->block[call->block],
		};
	}
	p->nr_pairs = pairs_combine(p->pairs, p->nr_pairs);
	qsort(p->pairs, p->nr_pairs, sizeof(*p->pairs), pair_compare_weight);
}

static uint32_t position_in_group(const struct placement *p, uint32_t group, uint32_t func)
{
	uint32_t at = 0;

	for (uint32_t f = p->first[group]; f != func; f = p->next[f])
		at++;
	return at;
}

static void group_reverse(struct placement *p, uint32_t group)
{
	uint32_t f = p->first[group], behind = NONE;

	p->last[group] = f;
	while (f != NONE) {
		uint32_t next = p->next[f];

		p->next[f] = behind;
		behind = f;
		f = next;
	}
	p->first[group] = behind;
}

/*
 * Join groups @a and @b. Of the four ways (either may be turned round first) the one that puts
 * the two functions with the heaviest direct tie, @x in @a and @y in @b, closest.
 */
static void group_join(struct placement *p, uint32_t a, uint32_t b, uint32_t x, uint32_t y)
{
	uint32_t x_at = position_in_group(p, a, x), y_at = position_in_group(p, b, y);

	if (x_at < p->length[a] - 1 - x_at)
		group_reverse(p, a);
	if (y_at > p->length[b] - 1 - y_at)
		group_reverse(p, b);
	for (uint32_t f = p->first[b]; f != NONE; f = p->next[f])
		p->group[f] = a;
	p->next[p->last[a]] = p->first[b];
	p->last[a] = p->last[b];
	p->length[a] += p->length[b];
	p->heat[a] += p->heat[b];
	p->bytes[a] += p->bytes[b];
	p->length[b] = 0;
}

/*
 * Always merge the two groups that call each other most; then their ties to any third add up.
 * The group with fewer ties is folded into the other, so that a tie is moved about log n times.
 */
static int groups_merge(struct placement *p)
{
	struct me_ties *ties;
	uint32_t a, b, pair;
	int ret = me_ties_new(p->cfg->nr_funcs, p->nr_pairs, &ties);

	for (uint32_t i = 0; i < p->nr_pairs && !ret; i++)
		ret = me_ties_add(ties, p->pairs[i].a, p->pairs[i].b, p->pairs[i].weight, i);
	while (!ret && me_ties_heaviest(ties, &a, &b, &pair)) {
		const struct affinity *heaviest = &p->pairs[pair];
		uint32_t x = heaviest->a, y = heaviest->b;

		group_join(p, a, b, p->group[x] == a ? x : y, p->group[x] == a ? y : x);
		ret = me_ties_fold(ties, a, b);
	}
	me_ties_free(ties);
	return ret;
}

struct group_rank {
	uint32_t group, first;
	double density;
};

static int rank_compare(const void *a, const void *b)
{
	const struct group_rank *x = a, *y = b;

	if (x->density != y->density)
		return x->density > y->density ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

/* Groups by instructions executed per byte; those never seen to run last, as they were. */
static int groups_rank(const struct placement *p, uint32_t *out, uint32_t *nr_out)
{
	struct group_rank *ranks = malloc(((size_t)p->cfg->nr_funcs + 1) * sizeof(*ranks));
	uint32_t nr = 0;

	if (!ranks)
		return -ENOMEM;
	for (uint32_t g = 0; g < p->cfg->nr_funcs; g++)
		if (p->length[g])
			ranks[nr++] = (struct group_rank){
				.group = g,
				.first = p->first[g],
				.density = p->bytes[g] > 0 ? p->heat[g] / p->bytes[g] : 0,
			};
	qsort(ranks, nr, sizeof(*ranks), rank_compare);
	*nr_out = 0;
	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t f = ranks[i].first; f != NONE; f = p->next[f])
			out[(*nr_out)++] = f;
	free(ranks);
	return 0;
}

static void groups_init(struct placement *p, const struct mp_counts *counts, const uint8_t *zones)
{
	const struct mp_cfg *cfg = p->cfg;

	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		p->group[f] = p->next[f] = NONE;
		p->first[f] = p->last[f] = f;
		p->length[f] = 0;
		p->heat[f] = p->bytes[f] = 0;
	}
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		if (block->func == NONE || zones[b] == ME_STAY)
			continue;
		p->group[block->func] = block->func;
		p->length[block->func] = 1;
		p->heat[block->func] += counts->block[b] * block->nr_insns;
		if (zones[b] == ME_ZONE_HOT)
			p->bytes[block->func] += block->size;
	}
}

int me_funcs_order(const struct mp_cfg *cfg, const struct mp_counts *counts, const uint8_t *zones,
		   uint32_t *out, uint32_t *nr_out)
{
	struct placement p = {.cfg = cfg};
	size_t nr = (size_t)cfg->nr_funcs + 1;
	int ret = -ENOMEM;

	p.group = malloc(nr * sizeof(*p.group));
	p.next = malloc(nr * sizeof(*p.next));
	p.first = malloc(nr * sizeof(*p.first));
	p.last = malloc(nr * sizeof(*p.last));
	p.length = malloc(nr * sizeof(*p.length));
	p.heat = malloc(nr * sizeof(*p.heat));
	p.bytes = malloc(nr * sizeof(*p.bytes));
	p.pairs = malloc(((size_t)cfg->nr_calls + 1) * sizeof(*p.pairs));
	if (p.group && p.next && p.first && p.last && p.length && p.heat && p.bytes && p.pairs) {
		groups_init(&p, counts, zones);
		pairs_collect(&p, counts);
		ret = groups_merge(&p);
		if (!ret)
			ret = groups_rank(&p, out, nr_out);
	}
	free(p.group);
	free(p.next);
	free(p.first);
	free(p.last);
	free(p.length);
	free(p.heat);
	free(p.bytes);
	free(p.pairs);
	return ret;
}
