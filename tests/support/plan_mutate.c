// SPDX-License-Identifier: Apache-2.0
/* plan_mutate - see plan_mutate.h. */
#include "tests/support/plan_mutate.h"

#include <stdlib.h>
#include <string.h>

#include "editor/base/mix.h"

#define ROOM 64 /* blocks and calls that are added */

struct mutator {
	const struct mp_cfg *cfg;
	struct me_plan_file *file;
	uint64_t random;
};

static uint32_t draw(struct mutator *m, uint32_t nr)
{
	return nr ? (uint32_t)(me_next_random(&m->random) % nr) : 0;
}

static void swap(struct me_plan_block *a, struct me_plan_block *b)
{
	struct me_plan_block t = *a;

	*a = *b;
	*b = t;
}

static uint32_t func_of(const struct mutator *m, uint32_t i)
{
	return m->cfg->blocks[m->file->plan.blocks[i].block].func;
}

/* The end of the run of one function's blocks from @i on. */
static uint32_t run_end(const struct mutator *m, uint32_t i)
{
	const struct me_plan *plan = &m->file->plan;
	uint32_t end = i;

	while (end < plan->nr_blocks && plan->blocks[end].zone == plan->blocks[i].zone &&
	       func_of(m, end) == func_of(m, i))
		end++;
	return end;
}

/* The first block of the run that holds block @i. */
static uint32_t run_start(const struct mutator *m, uint32_t i)
{
	while (i && m->file->plan.blocks[i - 1].zone == m->file->plan.blocks[i].zone &&
	       func_of(m, i - 1) == func_of(m, i))
		i--;
	return i;
}

/* A function's blocks in another order, behind its first one: such a plan is good, but for clones. */
static void shuffle_run(struct mutator *m, uint32_t at)
{
	uint32_t start = run_start(m, at) + 1, nr = run_end(m, at) - start;

	for (uint32_t i = nr; i > 1; i--)
		swap(&m->file->plan.blocks[start + i - 1],
		     &m->file->plan.blocks[start + draw(m, i)]);
}

/* The run of one function changes places with the next one. */
static void swap_runs(struct mutator *m, uint32_t at)
{
	struct me_plan *plan = &m->file->plan;
	uint32_t start = run_start(m, at), middle = run_end(m, at), end;
	struct me_plan_block *copy;

	if (middle == plan->nr_blocks || plan->blocks[middle].zone != plan->blocks[start].zone)
		return;
	end = run_end(m, middle);
	copy = malloc((middle - start) * sizeof(*copy));
	if (!copy)
		return;
	memcpy(copy, &plan->blocks[start], (middle - start) * sizeof(*copy));
	memmove(&plan->blocks[start], &plan->blocks[middle], (end - middle) * sizeof(*copy));
	memcpy(&plan->blocks[start + end - middle], copy, (middle - start) * sizeof(*copy));
	free(copy);
}

/* A clone of any block, or of one to which block @at leads. */
static void add_clone(struct mutator *m, uint32_t at, bool fits)
{
	struct me_plan *plan = &m->file->plan;
	const struct mp_block *block = &m->cfg->blocks[plan->blocks[at].block];
	struct me_plan_block clone = {
		.zone = plan->blocks[at].zone, .block = draw(m, m->cfg->nr_blocks), .clone = true};

	if (fits && block->nr_edges)
		clone.block = m->cfg->edges[block->first_edge + draw(m, block->nr_edges)].to;
	memmove(&plan->blocks[at + 2], &plan->blocks[at + 1],
		(plan->nr_blocks - at - 1) * sizeof(clone));
	plan->blocks[at + 1] = clone;
	plan->nr_blocks++;
}

/* All blocks from @at to the end of its zone go to the other zone. */
static void move_zone(struct mutator *m, uint32_t at)
{
	struct me_plan *plan = &m->file->plan;
	uint32_t i = run_start(m, at);

	if (plan->blocks[i].zone == ME_ZONE_HOT)
		for (; i < plan->nr_blocks; i++)
			plan->blocks[i].zone = ME_ZONE_WARM;
	else
		for (i = 0; i < run_end(m, at); i++)
			plan->blocks[i].zone = ME_ZONE_HOT;
}

static void change_block(struct mutator *m, struct me_plan_block *b)
{
	switch (draw(m, 8)) {
	case 0: b->favour_fall ^= 1; break;
	case 1: b->new_line ^= 1; break;
	case 2: b->align_log2 = (uint8_t)draw(m, draw(m, 2) ? 7 : 256); break;
	case 3: b->align_offset = (uint8_t)draw(m, draw(m, 2) ? 64 : 256); break;
	case 4: b->run = (uint8_t)draw(m, 256); break;
	case 5:
		b->loop = (uint8_t)draw(m, 256);
		b->pad = (uint8_t)draw(m, 2);
		break;
	case 6: b->clone ^= 1; break;
	default:
		b->run |= 1;
		b->heat = draw(m, 2)   ? (float)draw(m, 1000)
			  : draw(m, 2) ? -1.0f
				       : (float)(1e300 * 1e300);
	}
}

static void change_calls(struct mutator *m)
{
	struct me_plan_file *file = m->file;
	const struct mp_call *call = &m->cfg->calls[draw(m, m->cfg->nr_calls)];
	uint32_t at = draw(m, file->nr_calls);

	switch (draw(m, 4)) {
	case 0:
		if (file->nr_calls)
			file->calls[at] = file->calls[--file->nr_calls];
		break;
	case 1:
		if (file->nr_calls)
			file->calls[at].last = (uint8_t)draw(m, draw(m, 2) ? 8 : 256);
		break;
	case 2:
		if (file->nr_calls)
			file->calls[at].end += draw(m, 9) - 4;
		break;
	default:
		if (m->cfg->nr_calls)
			file->calls[file->nr_calls++] = (struct me_plan_call){
				.end = mp_call_insn(m->cfg, call) + 5, .last = (uint8_t)draw(m, 3)};
	}
}

static void change_settings(struct me_plan_file *file, uint32_t which)
{
	switch (which) {
	case 0: file->slots ^= 1; break;
	case 1: file->inlines ^= 1; break;
	case 2: file->arranges ^= 1; break;
	case 3: file->huge_pages ^= 1; break;
	default: file->plan.line_log2 = (uint8_t)which; break;
	}
}

static void mutate(struct mutator *m)
{
	struct me_plan *plan = &m->file->plan;
	uint32_t at = draw(m, plan->nr_blocks), other = draw(m, plan->nr_blocks);

	switch (draw(m, 14)) {
	case 0: swap(&plan->blocks[at], &plan->blocks[other]); break;
	case 1: plan->blocks[at].block = draw(m, m->cfg->nr_blocks); break;
	case 2:
		memmove(&plan->blocks[at], &plan->blocks[at + 1],
			(--plan->nr_blocks - at) * sizeof(*plan->blocks));
		break;
	case 3: add_clone(m, at, false); break;
	case 4: add_clone(m, at, true); break;
	case 5: move_zone(m, at); break;
	case 6: change_settings(m->file, draw(m, 9)); break;
	case 7: plan->nr_blocks = at + 1; break;
	case 8: swap_runs(m, at); break;
	case 9: shuffle_run(m, at); break;
	case 10:
	case 11: change_block(m, &plan->blocks[at]); break;
	default: change_calls(m); break;
	}
}

static bool write_plan(const struct mutator *m, struct mp_varint_writer *out)
{
	struct me_plan_writer *w;

	if (me_plan_writer_new(m->cfg, m->file, &w, NULL))
		return false;
	if (me_plan_writer_end(w, m->file->calls, m->file->nr_calls, out, NULL))
		*out = (struct mp_varint_writer){0};
	me_plan_writer_free(w);
	return out->bytes;
}

bool plan_mutate(const struct mp_cfg *cfg, const uint8_t *movable, const uint8_t *data, size_t size,
		 uint64_t random, struct mp_varint_writer *out)
{
	struct me_plan_file file;
	struct mutator m = {.cfg = cfg, .file = &file, .random = random};
	struct me_plan_block *blocks;
	struct me_plan_call *calls;
	bool done = false;

	*out = (struct mp_varint_writer){0};
	if (me_plan_file_read(cfg, movable, data, size, &file, NULL))
		return false;
	blocks = realloc(file.plan.blocks, (file.plan.nr_blocks + ROOM) * sizeof(*blocks));
	calls = realloc(file.calls, (file.nr_calls + ROOM) * sizeof(*calls));
	file.plan.blocks = blocks ? blocks : file.plan.blocks;
	file.calls = calls ? calls : file.calls;
	if (blocks && calls) {
		for (uint32_t nr = 1 + draw(&m, 1U << draw(&m, 3));
		     nr-- && file.plan.nr_blocks > 1;)
			mutate(&m);
		done = write_plan(&m, out);
	}
	/* Some have only other bytes, or fewer of them. */
	for (uint32_t nr = done && !draw(&m, 8) ? 1 + draw(&m, 4) : 0; nr--;)
		out->bytes[draw(&m, (uint32_t)out->size)] ^= (uint8_t)(1 << draw(&m, 8));
	if (done && !draw(&m, 32))
		out->size = draw(&m, (uint32_t)out->size);
	me_plan_file_fini(&file);
	return done;
}
