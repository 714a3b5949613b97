// SPDX-License-Identifier: Apache-2.0
/* loops - strongly connected components (Tarjan), inside of each other; see loops.h. */
#include "editor/compilations/loops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/infer/counts.h"

/* A set of blocks whose inner loops are wanted: search->order[start .. end). */
struct region {
	uint32_t start, end, loop;
};

/* A block on the way of the depth-first search. */
struct step {
	uint32_t block, edge;
};

struct search {
	const struct mp_cfg *cfg;
	struct me_loops *out;
	uint32_t cap_loops;
	uint32_t *order, *sorted; /* blocks; @sorted: of one region, component by component */
	uint32_t *region_of;	  /* per block: number of the region in which it is searched */
	uint32_t *index, *low;	  /* Tarjan's, per block; index 0: not seen */
	bool *on_stack, *header;
	uint32_t *stack, nr_stack;
	struct step *steps;
	struct region *regions;
	uint32_t nr_regions, nr_sorted, now, counter;
};

static bool allocate(struct search *s)
{
	size_t nr = (size_t)s->cfg->nr_blocks + 1;

	s->out->of_block = calloc(nr, sizeof(*s->out->of_block));
	s->order = calloc(nr, sizeof(*s->order));
	s->sorted = calloc(nr, sizeof(*s->sorted));
	s->region_of = calloc(nr, sizeof(*s->region_of));
	s->index = calloc(nr, sizeof(*s->index));
	s->low = calloc(nr, sizeof(*s->low));
	s->on_stack = calloc(nr, sizeof(*s->on_stack));
	s->header = calloc(nr, sizeof(*s->header));
	s->stack = calloc(nr, sizeof(*s->stack));
	s->steps = calloc(nr, sizeof(*s->steps));
	s->regions = calloc(nr, sizeof(*s->regions));
	return s->out->of_block && s->order && s->sorted && s->region_of && s->index && s->low &&
	       s->on_stack && s->header && s->stack && s->steps && s->regions;
}

static int add_loop(struct search *s, uint32_t func, uint32_t parent)
{
	struct me_loops *out = s->out;

	if (out->nr == s->cap_loops) {
		uint32_t cap = 2 * s->cap_loops + 64;
		struct me_loop *list = reallocarray(out->list, cap, sizeof(*list));

		if (!list)
			return -ENOMEM;
		out->list = list;
		s->cap_loops = cap;
	}
	out->list[out->nr++] = (struct me_loop){func, parent};
	return 0;
}

/* May the search go from a block of its region to @to? */
static bool is_open(const struct search *s, uint32_t to)
{
	return s->region_of[to] == s->now && !s->header[to];
}

static void enter(struct search *s, uint32_t block, uint32_t *depth)
{
	s->index[block] = s->low[block] = ++s->counter;
	s->stack[s->nr_stack++] = block;
	s->on_stack[block] = true;
	s->steps[(*depth)++] = (struct step){block, 0};
}

/* @block's component is complete: it goes to @sorted. Return: number of its blocks. */
static uint32_t pop(struct search *s, uint32_t block)
{
	uint32_t nr = 0, top;

	do {
		top = s->stack[--s->nr_stack];
		s->on_stack[top] = false;
		s->sorted[s->nr_sorted++] = top;
		nr++;
	} while (top != block);
	return nr;
}

static bool has_edge_to_itself(const struct search *s, uint32_t block)
{
	const struct mp_block *b = &s->cfg->blocks[block];

	for (uint32_t e = 0; e < b->nr_edges; e++)
		if (s->cfg->edges[b->first_edge + e].to == block)
			return !s->header[block];
	return false;
}

/* The last @nr blocks of @sorted are one component of @region. */
static int take_component(struct search *s, const struct region *region, uint32_t nr)
{
	const uint32_t *blocks = &s->sorted[s->nr_sorted - nr];
	int rc;

	if (nr == 1 && !has_edge_to_itself(s, blocks[0]))
		return 0;
	rc = add_loop(s, s->cfg->blocks[blocks[0]].func, region->loop);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < nr; i++)
		s->out->of_block[blocks[i]] = s->out->nr - 1;
	s->regions[s->nr_regions++] = (struct region){region->start + s->nr_sorted - nr,
						      region->start + s->nr_sorted, s->out->nr - 1};
	return 0;
}

static int walk(struct search *s, const struct region *region, uint32_t root)
{
	uint32_t depth = 0;
	int rc = 0;

	enter(s, root, &depth);
	while (depth && !rc) {
		struct step *step = &s->steps[depth - 1];
		const struct mp_block *b = &s->cfg->blocks[step->block];
		uint32_t to;

		if (step->edge < b->nr_edges) {
			to = s->cfg->edges[b->first_edge + step->edge++].to;
			if (!is_open(s, to))
				continue;
			if (!s->index[to])
				enter(s, to, &depth);
			else if (s->on_stack[to] && s->index[to] < s->low[step->block])
				s->low[step->block] = s->index[to];
			continue;
		}
		to = step->block;
		if (s->low[to] == s->index[to])
			rc = take_component(s, region, pop(s, to));
		depth--;
		if (depth && s->low[to] < s->low[s->steps[depth - 1].block])
			s->low[s->steps[depth - 1].block] = s->low[to];
	}
	return rc;
}

/* Blocks of the loop that are entered from outside of it; if none is, the first one. */
static void find_headers(struct search *s, const struct region *region)
{
	const struct mp_cfg *cfg = s->cfg;
	const struct mp_func *func = &cfg->funcs[cfg->blocks[s->order[region->start]].func];
	bool any = false;

	for (uint32_t i = region->start; i < region->end; i++) {
		if (mp_block_enters(&cfg->blocks[s->order[i]]))
			any = s->header[s->order[i]] = true;
	}
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		if (s->region_of[b] == s->now)
			continue;
		for (uint32_t e = 0; e < block->nr_edges; e++) {
			uint32_t to = cfg->edges[block->first_edge + e].to;

			if (s->region_of[to] == s->now)
				any = s->header[to] = true;
		}
	}
	if (!any)
		s->header[s->order[region->start]] = true;
}

static int search_region(struct search *s, struct region region)
{
	int rc = 0;

	s->now++;
	s->nr_sorted = 0;
	for (uint32_t i = region.start; i < region.end; i++) {
		s->region_of[s->order[i]] = s->now;
		s->index[s->order[i]] = 0;
	}
	if (region.loop != MP_NONE)
		find_headers(s, &region);
	for (uint32_t i = region.start; i < region.end && !rc; i++)
		if (!s->index[s->order[i]])
			rc = walk(s, &region, s->order[i]);
	memcpy(&s->order[region.start], s->sorted, s->nr_sorted * sizeof(*s->order));
	return rc;
}

int me_loops_find(const struct mp_cfg *cfg, struct me_loops *out)
{
	struct search s = {.cfg = cfg, .out = out};
	int rc;

	*out = (struct me_loops){0};
	rc = allocate(&s) ? 0 : -ENOMEM;
	for (uint32_t b = 0; b < cfg->nr_blocks && !rc; b++) {
		s.order[b] = b;
		out->of_block[b] = MP_NONE;
	}
	for (uint32_t f = 0; f < cfg->nr_funcs && !rc; f++) {
		const struct mp_func *func = &cfg->funcs[f];

		s.regions[s.nr_regions++] = (struct region){
			func->first_block, func->first_block + func->nr_blocks, MP_NONE};
		while (s.nr_regions && !rc)
			rc = search_region(&s, s.regions[--s.nr_regions]);
	}
	free(s.order);
	free(s.sorted);
	free(s.region_of);
	free(s.index);
	free(s.low);
	free(s.on_stack);
	free(s.header);
	free(s.stack);
	free(s.steps);
	free(s.regions);
	return rc;
}

void me_loops_fini(struct me_loops *loops)
{
	free(loops->list);
	free(loops->of_block);
	*loops = (struct me_loops){0};
}

bool me_loop_holds(const struct me_loops *loops, uint32_t outer, uint32_t inner)
{
	while (inner != outer && inner != MP_NONE)
		inner = loops->list[inner].parent;
	return inner == outer;
}
