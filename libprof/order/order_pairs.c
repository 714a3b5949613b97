// SPDX-License-Identifier: Apache-2.0
/*
 * order_pairs - pairs of linked groups in a priority queue.
 *
 * A pair that is rated again goes on the heap once more. Heap entries of an older version are
 * dropped at the top. Called by order_cds and order_exttsp.
 */
#include "libprof/order/order_pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"

struct mp_pairs_list {
	uint32_t *ids;
	uint32_t nr, max;
};

struct mp_pairs_entry {
	double gain;
	uint32_t pair, version;
};

static int list_add(struct mp_pairs_list *list, uint32_t id)
{
	return mp_push(list->ids, list->nr, list->max, id);
}

static void pair_add_link(struct mp_pairs *p, uint32_t pair, uint32_t link)
{
	struct mp_pair *to = &p->pairs[pair];

	p->next_link[link] = MP_PAIRS_NONE;
	if (to->last_link == MP_PAIRS_NONE)
		to->first_link = link;
	else
		p->next_link[to->last_link] = link;
	to->last_link = link;
}

/* Sorts links into buckets by their smaller group; one mark per group then finds equal pairs. */
static int pairs_collect(struct mp_pairs *p, const struct mp_pairs_link *links, uint32_t nr_links)
{
	uint32_t *head = malloc(((size_t)p->nr_groups + 1) * sizeof(*head));
	uint32_t *behind = malloc(((size_t)nr_links + 1) * sizeof(*behind));
	int ret = head && behind ? 0 : -ENOMEM;

	for (uint32_t g = 0; g < p->nr_groups && !ret; g++)
		head[g] = MP_PAIRS_NONE;
	for (uint32_t i = nr_links; i-- > 0 && !ret;) {
		uint32_t low = links[i].a < links[i].b ? links[i].a : links[i].b;

		behind[i] = head[low];
		head[low] = i;
	}
	for (uint32_t g = 0; g < p->nr_groups && !ret; g++) {
		uint32_t first = p->nr_pairs;

		for (uint32_t i = head[g]; i != MP_PAIRS_NONE && !ret; i = behind[i]) {
			uint32_t other = links[i].a == g ? links[i].b : links[i].a, pair;

			if (other == g)
				continue;
			pair = p->mark[other];
			if (pair == MP_PAIRS_NONE || pair < first) {
				pair = p->mark[other] = p->nr_pairs++;
				p->pairs[pair] = (struct mp_pair){
					g, other, MP_PAIRS_NONE, MP_PAIRS_NONE, 0, 0, false};
				ret = list_add(&p->lists[g], pair);
				if (!ret)
					ret = list_add(&p->lists[other], pair);
			}
			pair_add_link(p, pair, i);
		}
	}
	for (uint32_t g = 0; g < p->nr_groups; g++)
		p->mark[g] = MP_PAIRS_NONE;
	free(head);
	free(behind);
	return ret;
}

int mp_pairs_init(struct mp_pairs *pairs, uint32_t nr_groups, const struct mp_pairs_link *links,
		  uint32_t nr_links)
{
	*pairs = (struct mp_pairs){.nr_groups = nr_groups};
	pairs->pairs = malloc(((size_t)nr_links + 1) * sizeof(*pairs->pairs));
	pairs->next_link = malloc(((size_t)nr_links + 1) * sizeof(*pairs->next_link));
	pairs->lists = calloc((size_t)nr_groups + 1, sizeof(*pairs->lists));
	pairs->mark = malloc(((size_t)nr_groups + 1) * sizeof(*pairs->mark));
	if (!pairs->pairs || !pairs->next_link || !pairs->lists || !pairs->mark)
		return -ENOMEM;
	memset(pairs->mark, 0xff, ((size_t)nr_groups + 1) * sizeof(*pairs->mark));
	return pairs_collect(pairs, links, nr_links);
}

void mp_pairs_fini(struct mp_pairs *pairs)
{
	for (uint32_t g = 0; pairs->lists && g < pairs->nr_groups; g++)
		free(pairs->lists[g].ids);
	free(pairs->lists);
	free(pairs->pairs);
	free(pairs->next_link);
	free(pairs->mark);
	free(pairs->heap);
	*pairs = (struct mp_pairs){0};
}

static bool entry_before(const struct mp_pairs_entry *x, const struct mp_pairs_entry *y)
{
	return x->gain != y->gain ? x->gain > y->gain : x->pair < y->pair;
}

int mp_pairs_rate(struct mp_pairs *p, uint32_t pair, double gain)
{
	struct mp_pairs_entry new = {gain, pair, ++p->pairs[pair].version};
	uint32_t at = p->nr_heap;

	p->pairs[pair].gain = gain;
	if (!(gain > 0))
		return 0;
	if (mp_grow(p->heap, p->max_heap, p->nr_heap + 1))
		return -ENOMEM;
	p->nr_heap++;
	while (at && entry_before(&new, &p->heap[(at - 1) / 2])) {
		p->heap[at] = p->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	p->heap[at] = new;
	return 0;
}

static struct mp_pairs_entry heap_pop(struct mp_pairs *p)
{
	struct mp_pairs_entry top = p->heap[0], last = p->heap[--p->nr_heap];
	uint32_t at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= p->nr_heap)
			break;
		if (child + 1 < p->nr_heap && entry_before(&p->heap[child + 1], &p->heap[child]))
			child++;
		if (!entry_before(&p->heap[child], &last))
			break;
		p->heap[at] = p->heap[child];
		at = child;
	}
	if (p->nr_heap)
		p->heap[at] = last;
	return top;
}

uint32_t mp_pairs_best(struct mp_pairs *p)
{
	while (p->nr_heap) {
		struct mp_pairs_entry top = heap_pop(p);

		if (!p->pairs[top.pair].gone && p->pairs[top.pair].version == top.version)
			return top.pair;
	}
	return MP_PAIRS_NONE;
}

static uint32_t pair_other(const struct mp_pair *pair, uint32_t group)
{
	return pair->a == group ? pair->b : pair->a;
}

/* Drops pairs that are gone, and marks the rest by their other group. */
static void list_mark(struct mp_pairs *p, uint32_t group)
{
	struct mp_pairs_list *list = &p->lists[group];
	uint32_t kept = 0;

	for (uint32_t i = 0; i < list->nr; i++) {
		uint32_t id = list->ids[i];

		if (p->pairs[id].gone)
			continue;
		list->ids[kept++] = id;
		p->mark[pair_other(&p->pairs[id], group)] = id;
	}
	list->nr = kept;
}

int mp_pairs_fold(struct mp_pairs *p, uint32_t a, uint32_t b)
{
	struct mp_pairs_list *to = &p->lists[a], *from = &p->lists[b];
	int ret = 0;

	list_mark(p, a);
	for (uint32_t i = 0; i < from->nr && !ret; i++) {
		struct mp_pair *pair = &p->pairs[from->ids[i]], *with;
		uint32_t other = pair_other(pair, b);

		if (pair->gone)
			continue;
		if (other == a) {
			pair->gone = true;
			continue;
		}
		if (p->mark[other] == MP_PAIRS_NONE) {
			*(pair->a == b ? &pair->a : &pair->b) = a;
			p->mark[other] = from->ids[i];
			ret = list_add(to, from->ids[i]);
			continue;
		}
		with = &p->pairs[p->mark[other]];
		p->next_link[with->last_link] = pair->first_link;
		with->last_link = pair->last_link;
		pair->gone = true;
	}
	from->nr = 0;
	for (uint32_t i = 0; i < to->nr; i++)
		p->mark[pair_other(&p->pairs[to->ids[i]], a)] = MP_PAIRS_NONE;
	return ret;
}

uint32_t mp_pairs_of(const struct mp_pairs *pairs, uint32_t group, const uint32_t **ids)
{
	*ids = pairs->lists[group].ids;
	return pairs->lists[group].nr;
}
