// SPDX-License-Identifier: Apache-2.0
/* debug_moves - collects the moves of a placement, and looks them up by old address. */
#include "editor/debug/debug_moves.h"

#include <errno.h>
#include <stdlib.h>

#include "editor/rewrite/leaf.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

static int by_old(const void *a, const void *b)
{
	const struct me_move *x = a, *y = b;

	if (x->old_vaddr != y->old_vaddr)
		return x->old_vaddr < y->old_vaddr ? -1 : 1;
	if (x->clone != y->clone)
		return x->clone ? 1 : -1;
	return x->new_vaddr < y->new_vaddr ? -1 : x->new_vaddr > y->new_vaddr;
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int find_left(struct me_moves *out, const struct mp_cfg *cfg,
		     const struct me_placement *placement)
{
	uint8_t *moved = calloc(cfg->nr_funcs + 1, 1);
	uint32_t nr = 0;

	for (uint32_t i = 0; moved && i < placement->nr_copies; i++)
		moved[cfg->blocks[placement->copies[i].block].func] = 1;
	for (int pass = 0; moved && pass < 2; pass++) {
		nr = 0;
		for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
			if (!moved[cfg->blocks[b].func] ||
			    placement->target_from_outside[b] != MP_NONE ||
			    cfg->blocks[b].flags & MP_BLOCK_PADDING)
				continue;
			if (pass)
				out->uncopied[nr] = cfg->blocks[b].vaddr;
			nr++;
		}
		if (!pass)
			out->uncopied = malloc((nr + 1) * sizeof(*out->uncopied));
		if (!out->uncopied)
			break;
	}
	free(moved);
	if (!out->uncopied)
		return -ENOMEM;
	out->nr_uncopied = nr;
	qsort(out->uncopied, nr, sizeof(*out->uncopied), by_address);
	return 0;
}

int me_moves_init(struct me_moves *out, const struct mp_cfg *cfg,
		  const struct me_placement *placement)
{
	*out = (struct me_moves){.first_new = placement->base};
	out->by_old = malloc((placement->nr_copies + 1) * sizeof(*out->by_old));
	if (!out->by_old)
		return -ENOMEM;
	for (uint32_t i = 0; i < placement->nr_copies; i++) {
		const struct me_copy *copy = &placement->copies[i];
		const struct mp_block *block = &cfg->blocks[copy->block];
		struct me_move *m = &out->by_old[out->nr];

		/* An omitted jump left an empty copy; stubs have no old code. */
		if (!copy->new_size || !block->size || copy->stub)
			continue;
		*m = (struct me_move){
			.old_vaddr = block->vaddr,
			.new_vaddr = copy->new_vaddr,
			.new_end = copy->new_vaddr + copy->new_size,
			.old_size = block->size,
			.body_size = copy->body_size,
			.new_size = copy->new_size,
			.clone = copy->clone,
			.inlined = copy->inlined,
			.apart = copy->apart,
		};
		if (copy->apart) {
			m->old_size = ME_LEAF_CALL_SIZE;
			m->old_vaddr = block->vaddr + block->size - ME_LEAF_CALL_SIZE;
		}
		if (copy->falls && i + 1 < placement->nr_copies)
			m->new_end = copy[1].new_vaddr;
		out->nr++;
	}
	qsort(out->by_old, out->nr, sizeof(*out->by_old), by_old);
	if (out->nr) {
		const struct me_move *last = &out->by_old[out->nr - 1];

		out->first_old = out->by_old[0].old_vaddr;
		out->last_old = last->old_vaddr + last->old_size;
	}
	return find_left(out, cfg, placement);
}

void me_moves_fini(struct me_moves *moves)
{
	free(moves->by_old);
	free(moves->uncopied);
	*moves = (struct me_moves){0};
}

uint32_t me_moves_from(const struct me_moves *moves, uint64_t lo)
{
	uint32_t low = mp_search(i, 0, moves->nr, moves->by_old[i].old_vaddr <= lo);

	while (low && lo - moves->by_old[low - 1].old_vaddr < moves->by_old[low - 1].old_size)
		low--;
	return low;
}

bool me_moves_any(const struct me_moves *moves, uint64_t lo, uint64_t hi)
{
	uint32_t i;

	/* Code that the linker dropped has address 0 in debug information. */
	if (!lo || lo >= hi || hi <= moves->first_old || lo >= moves->last_old)
		return false;
	i = me_moves_from(moves, lo);
	return i < moves->nr && moves->by_old[i].old_vaddr < hi;
}

bool me_moves_any_uncopied(const struct me_moves *moves, uint64_t lo, uint64_t hi)
{
	uint32_t i = mp_search(k, 0, moves->nr_uncopied, moves->uncopied[k] < lo);

	return i < moves->nr_uncopied && moves->uncopied[i] < hi;
}

bool me_move_address(const struct me_move *move, uint64_t old, uint64_t *new_vaddr)
{
	uint64_t off = old - move->old_vaddr;

	if (off > move->body_size || off >= move->new_size || off >= move->old_size)
		return false;
	*new_vaddr = move->new_vaddr + off;
	return true;
}

bool me_moves_address(const struct me_moves *moves, uint64_t old, uint64_t *new_vaddr)
{
	uint32_t i = me_moves_from(moves, old);

	return i < moves->nr && !moves->by_old[i].clone &&
	       me_move_address(&moves->by_old[i], old, new_vaddr);
}

void me_moves_map(const struct me_moves *moves, uint64_t lo, uint64_t hi, struct me_ranges *out)
{
	if (!me_moves_any(moves, lo, hi))
		return;
	for (uint32_t i = me_moves_from(moves, lo);
	     i < moves->nr && moves->by_old[i].old_vaddr < hi; i++) {
		const struct me_move *m = &moves->by_old[i];
		uint64_t start = m->new_vaddr, end = m->new_end;

		if (lo > m->old_vaddr && !me_move_address(m, lo, &start))
			continue;
		if (hi - m->old_vaddr < m->old_size && hi - m->old_vaddr <= m->body_size)
			end = m->new_vaddr + (hi - m->old_vaddr);
		else if (m->inlined && hi - m->old_vaddr < m->old_size)
			end = m->new_vaddr + m->body_size;
		me_ranges_add(out, start, end);
	}
}

void me_ranges_add(struct me_ranges *ranges, uint64_t lo, uint64_t hi)
{
	if (lo >= hi || ranges->failed)
		return;
	if (mp_grow(ranges->ranges, ranges->cap, ranges->nr + 1)) {
		ranges->failed = true;
		return;
	}
	ranges->ranges[ranges->nr++] = (struct me_range){lo, hi};
}

static int by_start(const void *a, const void *b)
{
	const struct me_range *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

void me_ranges_join(struct me_ranges *ranges, uint32_t first)
{
	struct me_range *r = ranges->ranges;
	uint32_t nr = first;

	if (ranges->failed || ranges->nr <= first)
		return;
	qsort(r + first, ranges->nr - first, sizeof(*r), by_start);
	for (uint32_t i = first; i < ranges->nr; i++) {
		if (nr > first && r[i].lo <= r[nr - 1].hi) {
			if (r[i].hi > r[nr - 1].hi)
				r[nr - 1].hi = r[i].hi;
		} else {
			r[nr++] = r[i];
		}
	}
	ranges->nr = nr;
}

uint32_t me_ranges_from(const struct me_ranges *ranges, uint64_t lo)
{
	return mp_search(i, 0, ranges->nr, ranges->ranges[i].hi <= lo);
}

bool me_ranges_any(const struct me_ranges *ranges, uint64_t lo, uint64_t hi)
{
	uint32_t i = me_ranges_from(ranges, lo);

	return i < ranges->nr && ranges->ranges[i].lo < hi;
}

void me_ranges_subtract(struct me_ranges *ranges, const struct me_ranges *from)
{
	struct me_ranges left = {0};

	for (uint32_t i = 0; i < ranges->nr; i++) {
		struct me_range r = ranges->ranges[i];

		for (uint32_t k = me_ranges_from(from, r.lo);
		     k < from->nr && from->ranges[k].lo < r.hi; k++) {
			me_ranges_add(&left, r.lo, from->ranges[k].lo);
			r.lo = from->ranges[k].hi;
		}
		me_ranges_add(&left, r.lo, r.hi);
	}
	left.failed |= ranges->failed;
	free(ranges->ranges);
	*ranges = left;
}

void me_ranges_fini(struct me_ranges *ranges)
{
	free(ranges->ranges);
	*ranges = (struct me_ranges){0};
}
