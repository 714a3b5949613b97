// SPDX-License-Identifier: Apache-2.0
/* loops - finds loops, outermost first: strongly connected parts by Tarjan's algorithm (1972). */
#include "editor/base/loops.h"

#include <errno.h>
#include <stdlib.h>

#include "libprof/base/grow.h"

/* Loops inside of more loops than this are not told apart. */
#define MAX_DEPTH 16

struct frame {
	uint32_t block, edge; /* local block; next of its edges */
};

struct finder {
	const struct mp_cfg *cfg;
	uint32_t first, nr;
	struct me_loops *out;
	uint32_t cap;
	/* Per local block. */
	uint32_t *region; /* part of the graph that is looked at: 1 + loop, 0 for all */
	uint32_t *order, *low, *stack;
	uint8_t *on_stack, *depth;
	struct frame *frames;
	uint32_t nr_stack, next;
	bool failed;
};

/* The local block behind edge @e of @block, if it is in the same region; else MP_NONE. */
static uint32_t successor(const struct finder *f, uint32_t block, uint32_t e)
{
	const struct mp_block *b = &f->cfg->blocks[f->first + block];
	uint32_t to = f->cfg->edges[b->first_edge + e].to - f->first;

	return to < f->nr && f->region[to] == f->region[block] ? to : MP_NONE;
}

static bool turns(const struct finder *f, uint32_t block)
{
	for (uint32_t e = 0; e < f->cfg->blocks[f->first + block].nr_edges; e++)
		if (successor(f, block, e) == block)
			return true;
	return false;
}

/* The upper @nr of the stack are a loop in @region. */
static void add_loop(struct finder *f, const uint32_t *blocks, uint32_t nr, uint32_t region)
{
	struct me_loops *out = f->out;
	struct me_loop loop = {.parent = region ? region - 1 : MP_NONE, .header = MP_NONE};

	if (f->failed || mp_grow(out->list, f->cap, out->nr + 1)) {
		f->failed = true;
		return;
	}
	for (uint32_t i = 0; i < nr; i++) {
		f->region[blocks[i]] = out->nr + 1;
		f->depth[blocks[i]]++;
		loop.nr_insns += f->cfg->blocks[f->first + blocks[i]].nr_insns;
	}
	loop.nr_blocks = nr;
	out->list[out->nr++] = loop;
}

static void leave_block(struct finder *f, uint32_t block, uint32_t region)
{
	uint32_t nr = 0;

	if (f->low[block] != f->order[block])
		return;
	do {
		nr++;
		f->on_stack[f->stack[f->nr_stack - nr]] = 0;
	} while (f->stack[f->nr_stack - nr] != block);
	f->nr_stack -= nr;
	if (f->depth[block] < MAX_DEPTH && (nr > 1 || turns(f, block)))
		add_loop(f, &f->stack[f->nr_stack], nr, region);
}

static void visit(struct finder *f, uint32_t root, uint32_t region)
{
	uint32_t nr_frames = 0;

	f->frames[nr_frames++] = (struct frame){root, 0};
	while (nr_frames) {
		struct frame *frame = &f->frames[nr_frames - 1];
		uint32_t b = frame->block, to;

		if (!frame->edge && !f->order[b]) {
			f->order[b] = f->low[b] = ++f->next;
			f->stack[f->nr_stack++] = b;
			f->on_stack[b] = 1;
		}
		if (frame->edge == f->cfg->blocks[f->first + b].nr_edges) {
			leave_block(f, b, region);
			if (--nr_frames && f->low[f->frames[nr_frames - 1].block] > f->low[b])
				f->low[f->frames[nr_frames - 1].block] = f->low[b];
			continue;
		}
		to = successor(f, b, frame->edge++);
		if (to == MP_NONE)
			continue;
		if (!f->order[to])
			f->frames[nr_frames++] = (struct frame){to, 0};
		else if (f->on_stack[to] && f->order[to] < f->low[b])
			f->low[b] = f->order[to];
	}
}

/* Finds the blocks where control enters the loop @region - 1, and takes them out of the region. */
static void take_out_headers(struct finder *f, uint32_t region, uint8_t *is_header)
{
	struct me_loop *loop = &f->out->list[region - 1];
	uint32_t first = MP_NONE;

	for (uint32_t b = 0; b < f->nr; b++) {
		const struct mp_block *block = &f->cfg->blocks[f->first + b];

		is_header[b] |= f->region[b] == region && block->flags & MP_BLOCK_ENTRY;
		for (uint32_t e = 0; f->region[b] != region && e < block->nr_edges; e++) {
			uint32_t to = f->cfg->edges[block->first_edge + e].to - f->first;

			if (to < f->nr && f->region[to] == region)
				is_header[to] = 1;
		}
	}
	for (uint32_t b = 0; b < f->nr; b++)
		if (f->region[b] == region &&
		    (first == MP_NONE || (is_header[b] && !is_header[first])))
			first = b;
	loop->header = f->first + first;
	for (uint32_t b = 0; b < f->nr; b++) {
		if (f->region[b] != region)
			continue;
		f->out->of_block[b] = region - 1;
		if (is_header[b] || b == first)
			f->region[b] = UINT32_MAX; /* of no inner loop */
		is_header[b] = 0;
	}
}

static void find_in(struct finder *f, uint32_t region)
{
	for (uint32_t b = 0; b < f->nr; b++)
		if (f->region[b] == region)
			f->order[b] = 0;
	f->next = f->nr_stack = 0;
	for (uint32_t b = 0; b < f->nr && !f->failed; b++)
		if (f->region[b] == region && !f->order[b])
			visit(f, b, region);
}

static bool allocate(struct finder *f, uint8_t **is_header)
{
	size_t nr = (size_t)f->nr + 1;

	f->region = calloc(nr, sizeof(*f->region));
	f->order = calloc(nr, sizeof(*f->order));
	f->low = calloc(nr, sizeof(*f->low));
	f->stack = calloc(nr, sizeof(*f->stack));
	f->frames = calloc(nr, sizeof(*f->frames));
	f->on_stack = calloc(nr, 1);
	f->depth = calloc(nr, 1);
	*is_header = calloc(nr, 1);
	f->out->of_block = malloc(nr * sizeof(*f->out->of_block));
	return f->region && f->order && f->low && f->stack && f->frames && f->on_stack &&
	       f->depth && *is_header && f->out->of_block;
}

int me_loops_find(const struct mp_cfg *cfg, uint32_t func, struct me_loops *out)
{
	struct finder f = {.cfg = cfg,
			   .first = cfg->funcs[func].first_block,
			   .nr = cfg->funcs[func].nr_blocks,
			   .out = out};
	uint8_t *is_header = NULL;

	*out = (struct me_loops){0};
	f.failed = !allocate(&f, &is_header);
	if (!f.failed) {
		for (uint32_t b = 0; b < f.nr; b++)
			out->of_block[b] = MP_NONE;
		find_in(&f, 0);
	}
	/* Inner loops come behind their outer loops. */
	for (uint32_t i = 0; !f.failed && i < out->nr; i++) {
		take_out_headers(&f, i + 1, is_header);
		find_in(&f, i + 1);
	}
	free(f.region);
	free(f.order);
	free(f.low);
	free(f.stack);
	free(f.frames);
	free(f.on_stack);
	free(f.depth);
	free(is_header);
	if (f.failed)
		me_loops_fini(out);
	return f.failed ? -ENOMEM : 0;
}

void me_loops_fini(struct me_loops *loops)
{
	free(loops->list);
	free(loops->of_block);
	*loops = (struct me_loops){0};
}

bool me_loops_holds(const struct me_loops *loops, uint32_t outer, uint32_t loop)
{
	while (loop != MP_NONE && loop != outer)
		loop = loops->list[loop].parent;
	return loop == outer;
}
