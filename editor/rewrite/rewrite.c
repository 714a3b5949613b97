// SPDX-License-Identifier: Apache-2.0
/* rewrite - cuts the blocks of a finished plan, and calls both rewrites. */
#include "editor/rewrite/rewrite.h"

#include <errno.h>
#include <stdlib.h>

#include "editor/rewrite/inline.h"
#include "editor/rewrite/slots.h"

/* Return: per block: does the plan copy it? NULL: out of memory. Ownership: free(). */
static uint8_t *find_copied(const struct me_rewriting *r)
{
	uint8_t *copied = calloc((size_t)r->cfg->nr_blocks + 1, 1);

	for (uint32_t i = 0; copied && i < r->plan->nr_blocks; i++) {
		const struct me_plan_block *planned = &r->plan->blocks[i];

		if (!planned->stub && !planned->left_out)
			copied[planned->block] = 1;
	}
	return copied;
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* In how many parts @nr blocks from @i on are cut, by @at, the index of each block's first part. */
static uint8_t nr_parts_of(const struct me_plan *plan, const uint32_t *at, uint32_t i, uint8_t nr)
{
	uint32_t end = i + nr < plan->nr_blocks ? i + nr : plan->nr_blocks, parts = at[end] - at[i];

	return parts < UINT8_MAX ? (uint8_t)parts : UINT8_MAX;
}

/* Plan the parts of each block where the plan has the block. Return: 0, -ENOMEM. */
static int cut_plan(struct me_plan *plan, const uint32_t *first)
{
	uint32_t *at = malloc(((size_t)plan->nr_blocks + 1) * sizeof(*at)), nr = 0;
	struct me_plan_block *blocks = NULL;

	for (uint32_t i = 0; at && i < plan->nr_blocks; i++) {
		const struct me_plan_block *planned = &plan->blocks[i];

		at[i] = nr;
		nr += planned->stub ? 1 : first[planned->block + 1] - first[planned->block];
	}
	if (at)
		blocks = calloc((size_t)nr + 1, sizeof(*blocks));
	if (!blocks) {
		free(at);
		return -ENOMEM;
	}
	at[plan->nr_blocks] = nr;
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		const struct me_plan_block *planned = &plan->blocks[i];
		struct me_plan_block *parts = &blocks[at[i]];
		uint32_t nr_parts = at[i + 1] - at[i];

		for (uint32_t k = 0; k < nr_parts; k++)
			parts[k] = (struct me_plan_block){.block = first[planned->block] + k,
							  .zone = planned->zone,
							  .why = planned->why,
							  .clone = planned->clone,
							  .version = planned->version};
		parts[0] = *planned;
		parts[0].block = first[planned->block];
		parts[0].favour_fall = 0;
		parts[0].run = nr_parts_of(plan, at, i, planned->run);
		parts[0].loop = nr_parts_of(plan, at, i, planned->loop);
		parts[nr_parts - 1].favour_fall = planned->favour_fall;
	}
	free(at);
	free(plan->blocks);
	plan->blocks = blocks;
	plan->nr_blocks = nr;
	return 0;
}

/*
 * Cuts blocks behind the calls that are replaced, and at @slots. @cuts: with room for them; no call is among both, since
 * the code of a PLT stub replaces no call.
 */
static int cut(const struct me_rewriting *r, const uint64_t *slots, uint32_t nr_slots,
	       uint64_t *cuts, uint32_t **first, struct mp_err *err)
{
	const struct mp_cfg *cfg = r->cfg;
	uint32_t nr = 0, kept = 0;
	int rc;

	for (; nr < r->nr_replaced; nr++)
		cuts[nr] = r->replaced[nr].end;
	for (uint32_t i = 0; i < nr_slots; i++)
		cuts[nr++] = slots[i];
	for (uint32_t i = 0; i < nr; i++) {
		const struct mp_block *block = &cfg->blocks[mp_cfg_block_at(cfg, cuts[i] - 1)];

		if (cuts[i] < block->vaddr + block->size)
			cuts[kept++] = cuts[i];
	}
	if (!kept)
		return 0;
	qsort(cuts, kept, sizeof(*cuts), by_address);
	rc = mp_cfg_cut(r->cfg, cuts, kept, first, err);
	if (!rc && cut_plan(r->plan, *first))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	return rc;
}

int me_rewrite_plan(struct me_rewriting *r, uint32_t **first, struct mp_err *err)
{
	size_t nr_calls = (size_t)r->cfg->nr_calls + 1;
	uint64_t *slots = malloc(nr_calls * sizeof(*slots)),
		 *cuts = malloc(nr_calls * sizeof(*cuts));
	uint8_t *copied = find_copied(r);
	uint32_t nr_slots = 0;
	int rc = slots && cuts && copied ? 0 : mp_err_set(err, ENOMEM, "out of memory");

	*first = NULL;
	if (!rc && r->inlines)
		rc = me_inline_choose(r, copied, err);
	if (!rc && r->slots) {
		nr_slots = me_slots_find(r->cfg, copied, slots);
		qsort(slots, nr_slots, sizeof(*slots), by_address);
	}
	free(copied);
	if (!rc)
		rc = cut(r, slots, nr_slots, cuts, first, err);
	free(cuts);
	if (!rc && r->inlines)
		rc = me_inline_mark(r, err);
	if (!rc && r->slots)
		me_slots_mark(r->cfg, slots, nr_slots, r->plan);
	free(slots);
	return rc;
}
