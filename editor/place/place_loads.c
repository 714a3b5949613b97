// SPDX-License-Identifier: Apache-2.0
/*
 * place_loads - keeps loads of control words from sharing a slot of the processor's table
 * (editor/evidence/control_word.h). Called by place.
 *
 * What control falls through in sequence moves as a whole, so only a sequence's start may change.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/place/place_private.h"
#include "libprof/base/grow.h"

/* A sequence begins less than this behind the address that the plan wants. */
#define MAX_MOVE 64
#define PAGE	 UINT64_C(4096)

static int compare(const void *a, const void *b)
{
	const struct me_copy_loads *x = a, *y = b;

	return x->copy < y->copy ? -1 : x->copy > y->copy;
}

/* Return: NULL: the copy has none. */
static const struct me_control_loads *loads_of(const struct me_placement *placement, uint32_t copy)
{
	const struct me_copy_loads key = {.copy = copy}, *found;

	if (!placement->copies[copy].loads)
		return NULL;
	found = bsearch(&key, placement->loads, placement->nr_loads, sizeof(key), compare);
	return found ? &found->at : NULL;
}

int me_place_add_loads(const struct mp_cfg *cfg, struct me_placement *placement, uint32_t copy)
{
	struct me_copy_loads has = {.copy = copy};

	me_control_loads_find(cfg, placement->copies[copy].block, &has.at);
	if (!has.at.nr)
		return 0;
	if (mp_push(placement->loads, placement->nr_loads, placement->cap_loads, has))
		return -ENOMEM;
	placement->copies[copy].loads = true;
	return 0;
}

/* Slots are known within a page only. Return: how many of the copy's loads find theirs taken. */
static uint32_t take(struct me_taken_slots *taken, const struct me_control_loads *loads,
		     uint64_t vaddr)
{
	uint32_t nr = 0;

	for (uint8_t k = 0; loads && k < loads->nr; k++) {
		uint64_t at = vaddr + loads->at[k];
		uint32_t slot = UINT32_C(1) << me_control_load_slot(at);

		if (at / PAGE != taken->page)
			*taken = (struct me_taken_slots){at / PAGE, 0};
		nr += !!(taken->slots & slot);
		taken->slots |= slot;
	}
	return nr;
}

void me_place_take_loads(const struct me_placement *placement, uint32_t i,
			 struct me_taken_slots *taken)
{
	take(taken, loads_of(placement, i), placement->copies[i].new_vaddr);
}

/* How many loads would share a slot if the sequence that begins with copy @i began at @vaddr. */
static uint32_t shared(const struct me_placement *placement, uint32_t i, uint64_t vaddr,
		       struct me_taken_slots taken)
{
	uint32_t nr = 0;

	for (;; i++) {
		const struct me_copy *copy = &placement->copies[i];

		nr += take(&taken, loads_of(placement, i), vaddr);
		if (!copy->falls || i + 1 == placement->nr_copies)
			return nr;
		vaddr = me_place_from(&placement->copies[i + 1], vaddr + me_copy_size(copy));
	}
}

static bool has_loads(const struct me_placement *placement, uint32_t i)
{
	while (!placement->copies[i].loads)
		if (!placement->copies[i].falls || ++i == placement->nr_copies)
			return false;
	return true;
}

uint64_t me_place_loads(const struct me_placement *placement, uint32_t i, uint64_t vaddr,
			const struct me_taken_slots *taken)
{
	uint64_t step = UINT64_C(1) << placement->copies[i].align_log2, best = vaddr;
	uint32_t least = UINT32_MAX;

	if (!has_loads(placement, i))
		return vaddr;
	for (uint64_t at = vaddr; least && at < vaddr + MAX_MOVE; at += step) {
		uint32_t nr = shared(placement, i, at, *taken);

		if (nr < least) {
			least = nr;
			best = at;
		}
	}
	return best;
}
