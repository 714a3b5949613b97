// SPDX-License-Identifier: Apache-2.0
/* debug_inlined - collects inlined calls from a placement, and looks them up. */
#include "editor/debug/debug_inlined.h"

#include <errno.h>
#include <stdlib.h>

#include "editor/rewrite/leaf.h"
#include "libprof/base/search.h"

static int by_call(const void *a, const void *b)
{
	const struct me_inlined *x = a, *y = b;

	if (x->call != y->call)
		return x->call < y->call ? -1 : 1;
	return x->new_vaddr < y->new_vaddr ? -1 : x->new_vaddr > y->new_vaddr;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct me_callee *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* Return: the address of the code that lies apart, of the call that @copy lacks. */
static uint64_t apart_of(const struct me_placement *placement, const struct me_copy *copy)
{
	return copy->new_vaddr + copy->body_size + (uint64_t)me_place_apart(placement, copy);
}

static void add_parts(struct me_inlined_calls *out, const struct me_inlined *call, uint64_t start,
		      const struct me_leaf *leaf)
{
	for (uint8_t i = 0; i < leaf->nr_parts; i++) {
		const struct me_leaf_part *part = &leaf->parts[i];
		bool apart = i >= leaf->nr_near;
		uint64_t base = apart ? call->apart : start;
		uint64_t end = apart ? call->apart_end : call->new_end;

		if (i + 1 < leaf->nr_parts && i + 1 != leaf->nr_near)
			end = base + part[1].off;
		out->parts[out->nr_parts++] = (struct me_inlined_part){
			base + part->off, end, part->vaddr,
			part->vaddr + part->size + part->end_size, part->size};
	}
}

static void add_call(struct me_inlined_calls *out, const struct mp_cfg *cfg,
		     const struct me_placement *placement, const struct me_copy *copy)
{
	const struct me_leaf *leaf = &placement->leaves[copy->leaf];
	const struct mp_block *block = &cfg->blocks[copy->block];
	const struct mp_func *func = &cfg->funcs[leaf->func];
	uint64_t start = copy->new_vaddr + copy->body_size;
	struct me_inlined *call = &out->calls[out->nr];

	out->callees[out->nr++] = (struct me_callee){
		.vaddr = func->vaddr,
		.end = func->vaddr + func->size,
		.changed = me_leaf_changed(cfg->elf, leaf),
	};
	*call = (struct me_inlined){
		.call = block->vaddr + block->size - ME_LEAF_CALL_SIZE,
		.start = start,
		/* The instruction that lowers the stack pointer stands for the call itself. */
		.new_vaddr = start + (leaf->lowers ? ME_LEAF_LOWER_SIZE : 0),
		.new_end = start + copy->end_size,
		.first_part = out->nr_parts,
		.nr_parts = leaf->nr_parts,
		.nr_near = leaf->nr_near,
		.line_off = func->vaddr, /* until callees have indexes */
	};
	if (leaf->apart_size) {
		call->apart = apart_of(placement, copy);
		call->apart_end = call->apart + leaf->apart_size;
	}
	add_parts(out, call, start, leaf);
}

static void number_callees(struct me_inlined_calls *out)
{
	uint32_t nr = 0;

	qsort(out->callees, out->nr, sizeof(*out->callees), by_vaddr);
	for (uint32_t i = 0; i < out->nr; i++)
		if (!nr || out->callees[i].vaddr != out->callees[nr - 1].vaddr)
			out->callees[nr++] = out->callees[i];
	out->nr_callees = nr;
	for (uint32_t i = 0; i < out->nr; i++) {
		struct me_inlined *call = &out->calls[i];

		call->callee = (uint32_t)(me_callee_at(out, call->line_off) - out->callees);
		call->line_off = 0;
	}
	qsort(out->calls, out->nr, sizeof(*out->calls), by_call);
}

int me_inlined_init(struct me_inlined_calls *out, const struct mp_cfg *cfg,
		    const struct me_placement *placement)
{
	uint32_t nr = 0, nr_parts = 0;

	*out = (struct me_inlined_calls){0};
	for (uint32_t i = 0; i < placement->nr_copies; i++) {
		const struct me_copy *copy = &placement->copies[i];

		nr += copy->inlined && !copy->apart;
		nr_parts += copy->inlined ? placement->leaves[copy->leaf].nr_parts : 0;
	}
	if (!nr)
		return 0;
	out->calls = malloc(nr * sizeof(*out->calls));
	out->callees = malloc(nr * sizeof(*out->callees));
	out->parts = malloc(nr_parts * sizeof(*out->parts));
	if (!out->calls || !out->callees || !out->parts)
		return -ENOMEM;
	for (uint32_t i = 0; i < placement->nr_copies; i++) {
		const struct me_copy *copy = &placement->copies[i];

		/* A function that does nothing leaves no code to describe. */
		if (copy->inlined && !copy->apart && copy->end_size)
			add_call(out, cfg, placement, copy);
	}
	number_callees(out);
	me_inlined_changing(out, (struct me_range){0, UINT64_MAX}, ME_CHANGED_KEPT, &out->saving);
	return out->saving.failed ? -ENOMEM : 0;
}

void me_inlined_fini(struct me_inlined_calls *calls)
{
	for (uint32_t i = 0; i < calls->nr_callees; i++) {
		free(calls->callees[i].rows);
		free(calls->callees[i].scopes);
		me_ranges_fini(&calls->callees[i].ranges);
	}
	me_ranges_fini(&calls->saving);
	free(calls->callees);
	free(calls->files);
	free(calls->calls);
	free(calls->parts);
	*calls = (struct me_inlined_calls){0};
}

void me_inlined_map(const struct me_inlined_calls *calls, const struct me_inlined *call,
		    struct me_range range, struct me_ranges *out)
{
	for (uint32_t i = 0; i < call->nr_parts; i++) {
		const struct me_inlined_part *part = &calls->parts[call->first_part + i];
		uint64_t lo = range.lo > part->old_vaddr ? range.lo - part->old_vaddr : 0;
		uint64_t end = part->new_end;

		if (range.lo >= part->old_end || range.hi <= part->old_vaddr)
			continue;
		if (lo > part->size)
			lo = part->size;
		/* Branches at the end may have other lengths. */
		if (range.hi < part->old_end && range.hi - part->old_vaddr <= part->size)
			end = part->new_vaddr + (range.hi - part->old_vaddr);
		me_ranges_add(out, part->new_vaddr + lo, end);
	}
}

void me_inlined_changing(const struct me_inlined_calls *calls, struct me_range range,
			 uint64_t registers, struct me_ranges *out)
{
	for (uint32_t i = me_inlined_from(calls, range.lo);
	     i < calls->nr && calls->calls[i].call < range.hi; i++) {
		const struct me_inlined *call = &calls->calls[i];

		if (!(calls->callees[call->callee].changed & registers))
			continue;
		me_ranges_add(out, call->new_vaddr, call->new_end);
		me_ranges_add(out, call->apart, call->apart_end);
	}
	me_ranges_join(out, 0);
}

int me_inlined_make_files(struct me_inlined_calls *calls)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < calls->nr; i++) {
		calls->calls[i].first_file = nr;
		nr += calls->callees[calls->calls[i].callee].nr_scopes;
	}
	calls->files = calloc((size_t)nr + 1, sizeof(*calls->files));
	return calls->files ? 0 : -ENOMEM;
}

uint32_t me_inlined_from(const struct me_inlined_calls *calls, uint64_t call)
{
	return mp_search(i, 0, calls->nr, calls->calls[i].call < call);
}

struct me_inlined *me_inlined_at(const struct me_inlined_calls *calls, uint64_t call, uint64_t at)
{
	for (uint32_t i = me_inlined_from(calls, call);
	     i < calls->nr && calls->calls[i].call == call; i++)
		if (calls->calls[i].start == at || calls->calls[i].apart == at)
			return &calls->calls[i];
	return NULL;
}

struct me_callee *me_callee_at(const struct me_inlined_calls *calls, uint64_t vaddr)
{
	const struct me_callee key = {.vaddr = vaddr};

	return calls->nr_callees
		       ? bsearch(&key, calls->callees, calls->nr_callees, sizeof(key), by_vaddr)
		       : NULL;
}
