// SPDX-License-Identifier: Apache-2.0
/* loop_distance - shortest ways over blocks, for both versions. */
#include "editor/instrument/loop_distance.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

struct me_distance_item {
	uint32_t distance, block; /* local */
};

struct heap {
	struct me_distance_item *items;
	uint32_t nr;
};

static void push(struct heap *heap, struct me_distance_item item)
{
	uint32_t i = heap->nr++;

	for (; i && heap->items[(i - 1) / 2].distance > item.distance; i = (i - 1) / 2)
		heap->items[i] = heap->items[(i - 1) / 2];
	heap->items[i] = item;
}

static struct me_distance_item pop(struct heap *heap)
{
	struct me_distance_item top = heap->items[0], last = heap->items[--heap->nr];
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < heap->nr) {
		if (child + 1 < heap->nr &&
		    heap->items[child + 1].distance < heap->items[child].distance)
			child++;
		if (heap->items[child].distance >= last.distance)
			break;
		heap->items[i] = heap->items[child];
		i = child;
	}
	heap->items[i] = last;
	return top;
}

/* Instructions of the copy of @from, if it goes on to @to. */
static uint32_t cost(const struct me_distances *d, const uint32_t *place, uint32_t from,
		     const struct mp_edge *edge)
{
	const struct mp_block *block = &d->cfg->blocks[d->first + from];
	bool follows = place[edge->to - d->first] == place[from] + 1;
	uint32_t insns = block->nr_insns;

	if (block->term == MP_TERM_JUMP && follows && insns)
		insns--;
	if (block->term == MP_TERM_FALL && !follows)
		insns++;
	return insns;
}

static void relax(const struct me_distances *d, const uint32_t *place, uint32_t from,
		  uint32_t distance, uint32_t *out, struct heap *heap)
{
	const struct mp_block *block = &d->cfg->blocks[d->first + from];

	for (uint32_t e = 0; e < block->nr_edges; e++) {
		const struct mp_edge *edge = &d->cfg->edges[block->first_edge + e];
		uint32_t to = edge->to - d->first, now;

		if (to >= d->nr)
			continue;
		now = distance + cost(d, place, from, edge);
		if (now >= out[to])
			continue;
		out[to] = now;
		push(heap, (struct me_distance_item){now, to});
	}
}

static void find(const struct me_distances *d, const uint32_t *place, uint32_t block, uint32_t *out)
{
	struct heap heap = {.items = d->heap};

	for (uint32_t b = 0; b < d->nr; b++)
		out[b] = ME_LOOP_FAR;
	relax(d, place, block, 0, out, &heap);
	while (heap.nr) {
		struct me_distance_item item = pop(&heap);

		/* A way that goes on behind the way back is no shorter. */
		if (item.distance == out[item.block] && item.block != block)
			relax(d, place, item.block, item.distance, out, &heap);
	}
}

void me_distances_from(const struct me_distances *d, uint32_t block, uint32_t *out)
{
	uint32_t *other = out + d->nr;

	find(d, d->place[0], block - d->first, out);
	find(d, d->place[1], block - d->first, other);
	for (uint32_t b = 0; b < d->nr; b++)
		if (other[b] < out[b])
			out[b] = other[b];
}

/* Version A has the entry first, then all others by address; version B is the plan's. */
static void find_places(struct me_distances *d, uint32_t func, const struct me_plan *plan)
{
	uint32_t next[2] = {1, 0};

	for (uint32_t b = 0; b < d->nr; b++) {
		bool entry = d->cfg->blocks[d->first + b].flags & MP_BLOCK_ENTRY;

		d->place[0][b] = entry ? 0 : next[0]++;
		d->place[1][b] = UINT32_MAX - 1 - 2 * b;
	}
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		const struct me_plan_block *planned = &plan->blocks[i];

		if (d->cfg->blocks[planned->block].func == func && !planned->clone &&
		    !planned->stub)
			d->place[1][planned->block - d->first] = next[1]++;
	}
}

int me_distances_init(struct me_distances *d, const struct mp_cfg *cfg, uint32_t func,
		      const struct me_plan *plan)
{
	const struct mp_func *f = &cfg->funcs[func];
	size_t nr_edges = 1;

	*d = (struct me_distances){.cfg = cfg, .first = f->first_block, .nr = f->nr_blocks};
	for (uint32_t b = 0; b < d->nr; b++)
		nr_edges += cfg->blocks[d->first + b].nr_edges;
	d->place[0] = calloc((size_t)d->nr + 1, sizeof(*d->place[0]));
	d->place[1] = calloc((size_t)d->nr + 1, sizeof(*d->place[1]));
	d->heap = calloc(nr_edges, sizeof(*d->heap));
	if (!d->place[0] || !d->place[1] || !d->heap) {
		me_distances_fini(d);
		return -ENOMEM;
	}
	find_places(d, func, plan);
	return 0;
}

void me_distances_fini(struct me_distances *d)
{
	free(d->place[0]);
	free(d->place[1]);
	free(d->heap);
	*d = (struct me_distances){0};
}
