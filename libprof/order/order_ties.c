// SPDX-License-Identifier: Apache-2.0
/*
 * order_ties - weighted ties between groups that are merged two by two.
 *
 * Finds the two groups with the heaviest tie. A tie whose weight grew goes on the heap once more.
 * Heap entries with an old weight, or of a group that is gone, are dropped at the top.
 */
#include "libprof/order/order_ties.h"

#include <errno.h>
#include <stdlib.h>

#include "libprof/base/grow.h"

struct tie {
	uint32_t a, b; /* a < b */
	uint32_t pair;
	double weight;
	bool gone;
};

struct entry {
	double weight;
	uint32_t tie;
};

struct neighbours {
	uint32_t *ties;
	uint32_t nr, max;
};

struct mp_ties {
	struct tie *ties;
	uint32_t nr_ties, max_ties;
	uint32_t *hash;	    /* of (a, b): 1 + index of the tie; 0: free */
	uint32_t hash_size; /* a power of two */
	struct neighbours *groups;
	uint32_t nr_groups;
	struct entry *heap;
	uint32_t nr_heap, max_heap;
};

static uint32_t *hash_slot(const struct mp_ties *t, uint32_t a, uint32_t b)
{
	uint64_t mixed = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15u;
	uint32_t at = (uint32_t)(mixed >> 32) & (t->hash_size - 1);

	while (t->hash[at]) {
		const struct tie *tie = &t->ties[t->hash[at] - 1];

		if (tie->a == a && tie->b == b)
			break;
		at = (at + 1) & (t->hash_size - 1);
	}
	return &t->hash[at];
}

static int hash_grow(struct mp_ties *t)
{
	uint32_t *old = t->hash;

	t->hash_size = t->hash_size ? 2 * t->hash_size : 64;
	t->hash = calloc(t->hash_size, sizeof(*t->hash));
	if (!t->hash) {
		t->hash = old;
		t->hash_size /= 2;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < t->nr_ties; i++)
		*hash_slot(t, t->ties[i].a, t->ties[i].b) = i + 1;
	free(old);
	return 0;
}

/* The heaviest entry comes first. On equal weight the number decides, so results are reproducible. */
static bool heap_before(const struct entry *x, const struct entry *y)
{
	return x->weight != y->weight ? x->weight > y->weight : x->tie < y->tie;
}

static int heap_push(struct mp_ties *t, uint32_t tie)
{
	struct entry new = {t->ties[tie].weight, tie};
	uint32_t at = t->nr_heap;

	if (mp_grow(t->heap, t->max_heap, t->nr_heap + 1))
		return -ENOMEM;
	t->nr_heap++;
	while (at && heap_before(&new, &t->heap[(at - 1) / 2])) {
		t->heap[at] = t->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	t->heap[at] = new;
	return 0;
}

static struct entry heap_pop(struct mp_ties *t)
{
	struct entry top = t->heap[0], last = t->heap[--t->nr_heap];
	uint32_t at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= t->nr_heap)
			break;
		if (child + 1 < t->nr_heap && heap_before(&t->heap[child + 1], &t->heap[child]))
			child++;
		if (!heap_before(&t->heap[child], &last))
			break;
		t->heap[at] = t->heap[child];
		at = child;
	}
	if (t->nr_heap)
		t->heap[at] = last;
	return top;
}

static int group_link(struct mp_ties *t, uint32_t group, uint32_t tie)
{
	struct neighbours *n = &t->groups[group];

	return mp_push(n->ties, n->nr, n->max, tie);
}

int mp_ties_new(uint32_t nr_groups, uint32_t nr_ties, struct mp_ties **out)
{
	struct mp_ties *t = calloc(1, sizeof(*t));

	*out = t;
	if (!t)
		return -ENOMEM;
	t->nr_groups = nr_groups;
	t->groups = calloc((size_t)nr_groups + 1, sizeof(*t->groups));
	t->max_ties = nr_ties + 1;
	t->ties = malloc(t->max_ties * sizeof(*t->ties));
	if (t->groups && t->ties && !hash_grow(t))
		return 0;
	mp_ties_free(t);
	*out = NULL;
	return -ENOMEM;
}

void mp_ties_free(struct mp_ties *ties)
{
	if (!ties)
		return;
	for (uint32_t g = 0; ties->groups && g < ties->nr_groups; g++)
		free(ties->groups[g].ties);
	free(ties->groups);
	free(ties->ties);
	free(ties->hash);
	free(ties->heap);
	free(ties);
}

int mp_ties_add(struct mp_ties *t, uint32_t a, uint32_t b, double weight, uint32_t pair)
{
	uint32_t low = a < b ? a : b, high = a < b ? b : a, i;
	uint32_t *slot = hash_slot(t, low, high);

	if (*slot) {
		struct tie *tie = &t->ties[*slot - 1];

		tie->weight += weight;
		tie->pair = pair < tie->pair ? pair : tie->pair;
		return heap_push(t, *slot - 1);
	}
	if (mp_grow(t->ties, t->max_ties, t->nr_ties + 1) ||
	    (2 * t->nr_ties >= t->hash_size && hash_grow(t)))
		return -ENOMEM;
	i = t->nr_ties++;
	t->ties[i] = (struct tie){.a = low, .b = high, .pair = pair, .weight = weight};
	*hash_slot(t, low, high) = i + 1;
	if (group_link(t, low, i) || group_link(t, high, i))
		return -ENOMEM;
	return heap_push(t, i);
}

bool mp_ties_heaviest(struct mp_ties *t, uint32_t *a, uint32_t *b, uint32_t *pair)
{
	while (t->nr_heap) {
		struct entry top = heap_pop(t);
		const struct tie *tie = &t->ties[top.tie];

		if (tie->gone || tie->weight != top.weight)
			continue;
		*a = t->groups[tie->a].nr >= t->groups[tie->b].nr ? tie->a : tie->b;
		*b = *a == tie->a ? tie->b : tie->a;
		*pair = tie->pair;
		return true;
	}
	return false;
}

int mp_ties_fold(struct mp_ties *t, uint32_t a, uint32_t b)
{
	struct neighbours *from = &t->groups[b];
	int ret = 0;

	for (uint32_t i = 0; i < from->nr && !ret; i++) {
		struct tie *tie = &t->ties[from->ties[i]];
		uint32_t other = tie->a == b ? tie->b : tie->a;

		if (tie->gone)
			continue;
		tie->gone = true;
		if (other != a)
			ret = mp_ties_add(t, a, other, tie->weight, tie->pair);
	}
	from->nr = 0;
	return ret;
}
