// SPDX-License-Identifier: Apache-2.0
/*
 * layout_split - fluff removal: which blocks are copied, and into which zone.
 *
 * Morph (SOSP 1997) section 3.4. A block stays only on evidence that it does not run; a lack of
 * samples is no evidence. Called by layout.c.
 */
#include <errno.h>
#include <string.h>

#include "editor/evidence/eligible.h"
#include "editor/layout/layout_private.h"

/*
 * The rule for blocks without samples, in a function that has some:
 *
 *   inferred flow > 0                               hot
 *   no flow, and evidently fluff                    stays in the old code:
 *       in a .cold part: the compiler's own verdict
 *       every way from it ends in a trap or in a call that does not return
 *       only landing pads lead to it
 *   no flow otherwise                               warm: copied, behind everything hot
 *
 * A function without any sample is copied to the warm zone where a block that is copied calls it
 * directly: its caller ran, so on other input it may. (Taking callees of callees too added 1 to
 * 4 % of executed instructions in interpreters, nothing elsewhere, and half as many bytes again.)
 * Others stay. A function with few samples goes to the warm zone as it is.
 *
 * If every instruction was counted, a block without a count did not run, and stays. By this, gcc's
 * cc1 takes half the bytes; on other input it executes 94.8 instead of 95.2 % in copies.
 */
enum choice {
	UNKNOWN,
	CHOSEN,
	DONE
};

/* With fewer samples, the order that they suggest is no better than the original one. A limit of
 * 10 costs half a point of taken branches (scripts/bench/bench-accuracy), a limit of 40 three points. */
#define FEW_SAMPLES 5

enum mark {
	DOOMED = 1 << 0,  /* every way ends in a trap or noreturn */
	REACHED = 1 << 1, /* from the entry, and not through a landing pad */
};

static bool block_runs(const struct mp_counts *counts, uint32_t b)
{
	return counts->block[b] > 0 || counts->samples[b];
}

/* Marks the smallest set: a loop without exit is not doomed, since it may be the main loop. */
static void func_mark_doomed(const struct mp_cfg *cfg, const struct mp_func *func, uint8_t *marks)
{
	bool changed = true;

	while (changed) {
		changed = false;
		/* Backwards, since most successors come later: two or three rounds suffice. */
		for (uint32_t i = func->nr_blocks; i-- > 0;) {
			uint32_t b = func->first_block + i;
			const struct mp_block *block = &cfg->blocks[b];
			bool doomed = block->term == MP_TERM_TRAP ||
				      block->term == MP_TERM_NORETURN;

			if (marks[b] & DOOMED)
				continue;
			if (!doomed && block->nr_edges && !mp_block_leaves(cfg, block)) {
				doomed = true;
				for (uint32_t e = 0; e < block->nr_edges; e++)
					doomed &= marks[cfg->edges[block->first_edge + e].to] &
						  DOOMED;
			}
			if (doomed) {
				marks[b] |= DOOMED;
				changed = true;
			}
		}
	}
}

static void func_mark_reached(const struct mp_cfg *cfg, const struct mp_func *func, uint8_t *marks,
			      uint32_t *stack)
{
	uint32_t depth = 0;

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		uint16_t roots = MP_BLOCK_ENTRY | MP_BLOCK_ADDRESS_TAKEN | MP_BLOCK_OTHER_ENTRY;

		if (block->flags & MP_BLOCK_LANDING_PAD)
			roots = MP_BLOCK_ENTRY; /* its address stands in the LSDA: no evidence */
		if (block->flags & roots) {
			marks[b] |= REACHED;
			stack[depth++] = b;
		}
	}
	while (depth) {
		const struct mp_block *block = &cfg->blocks[stack[--depth]];

		for (uint32_t e = 0; e < block->nr_edges; e++) {
			uint32_t to = cfg->edges[block->first_edge + e].to;

			if (!(marks[to] & REACHED)) {
				marks[to] |= REACHED;
				stack[depth++] = to;
			}
		}
	}
}

static bool block_is_fluff(const struct mp_block *block, uint8_t mark)
{
	if (block->flags & MP_BLOCK_ENTRY)
		return false;
	return (block->flags & MP_BLOCK_COLD_PART) || (mark & DOOMED) || !(mark & REACHED);
}

static void func_set_zones(const struct mp_cfg *cfg, const struct mp_counts *counts,
			   const struct mp_func *func, const struct me_layout_options *options,
			   const uint8_t *marks, bool weak, uint8_t *zones)
{
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		if (me_block_stays(block))
			continue;
		if (options->block_order == ME_ORDER_ORIGINAL)
			zones[b] = ME_ZONE_HOT;
		else if (block_runs(counts, b))
			zones[b] = weak ? ME_ZONE_WARM : ME_ZONE_HOT;
		else if (counts->complete ? block->flags & MP_BLOCK_ENTRY
					  : !block_is_fluff(block, marks[b]))
			zones[b] = ME_ZONE_WARM;
	}
}

static bool func_is_weak(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t f)
{
	const struct mp_func *func = &cfg->funcs[f];
	uint64_t sum = 0;

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		sum += counts->samples[b];
	return !counts->exact && sum < FEW_SAMPLES;
}

static void funcs_choose_called(const struct mp_cfg *cfg, const uint8_t *eligible,
				const uint8_t *zones, uint8_t *chosen)
{
	for (uint32_t i = 0; i < cfg->nr_calls; i++) {
		const struct mp_call *call = &cfg->calls[i];

		if (call->callee == MP_NONE || chosen[call->callee] != UNKNOWN ||
		    !eligible[call->callee] || zones[call->block] != ME_ZONE_HOT)
			continue;
		chosen[call->callee] = CHOSEN;
	}
}

int me_split_zones(const struct mp_cfg *cfg, const struct mp_counts *counts,
		   const uint8_t *eligible, const struct me_layout_options *options, uint8_t *zones,
		   uint8_t *keep)
{
	uint8_t *chosen = calloc((size_t)cfg->nr_funcs + 1, 1);
	uint8_t *marks = calloc((size_t)cfg->nr_blocks + 1, 1);
	uint32_t *stack = malloc(((size_t)cfg->nr_blocks + 1) * sizeof(*stack));
	int ret = -ENOMEM;

	if (!chosen || !marks || !stack)
		goto out;
	ret = 0;
	memset(zones, ME_STAY, cfg->nr_blocks);
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		uint32_t f = cfg->blocks[b].func;

		if (f != MP_NONE && eligible[f] && block_runs(counts, b))
			chosen[f] = CHOSEN;
	}
	/* First functions with samples, then the functions that these call. */
	for (int round = 0; round < 2; round++) {
		for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
			if (chosen[f] != CHOSEN)
				continue;
			chosen[f] = DONE;
			func_mark_doomed(cfg, &cfg->funcs[f], marks);
			func_mark_reached(cfg, &cfg->funcs[f], marks, stack);
			keep[f] = func_is_weak(cfg, counts, f);
			func_set_zones(cfg, counts, &cfg->funcs[f], options, marks, keep[f], zones);
		}
		if (!counts->complete)
			funcs_choose_called(cfg, eligible, zones, chosen);
	}
out:
	free(chosen);
	free(marks);
	free(stack);
	return ret;
}
