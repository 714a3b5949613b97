// SPDX-License-Identifier: Apache-2.0
/*
 * layout_proc - procedure layout: the order of functions in the new code.
 *
 * Collects the functions of the plan, the size and weight of their hot parts, and the calls between
 * them; libprof/order/order then decides the order. Called by layout.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/layout/layout_private.h"

#define NONE MP_NONE

/* What 64 entries of an iTLB cover, the first level of most processors, in pages of 4 KiB. */
#define ITLB_REACH (64u << 12)

struct placement {
	const struct mp_cfg *cfg;
	const struct mp_counts *counts;
	const uint8_t *zones;
	uint32_t *index;	     /* per function: its index in funcs, NONE: not laid out */
	uint32_t *func;		     /* the other way round */
	uint32_t *hot_off;	     /* per block: hot bytes of its function before it */
	struct mp_order_func *funcs; /* those laid out, ascending address */
	struct mp_order_arc *arcs;
	uint32_t nr_funcs, nr_arcs;
};

/* Counts hot bytes only, since warm blocks lie elsewhere. Blocks are in their original order. */
static void funcs_collect(struct placement *p)
{
	const struct mp_cfg *cfg = p->cfg;

	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const struct mp_func *func = &cfg->funcs[f];
		struct mp_order_func sum = {0, 0};
		bool laid_out = false;

		for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
			const struct mp_block *block = &cfg->blocks[b];

			p->hot_off[b] = (uint32_t)sum.size;
			if (p->zones[b] == ME_STAY)
				continue;
			laid_out = true;
			sum.weight += p->counts->block[b] * block->nr_insns;
			if (p->zones[b] == ME_ZONE_HOT)
				sum.size += block->size;
		}
		p->index[f] = laid_out ? p->nr_funcs : NONE;
		if (laid_out) {
			p->func[p->nr_funcs] = f;
			p->funcs[p->nr_funcs++] = sum;
		}
	}
}

static void arcs_collect(struct placement *p)
{
	const struct mp_cfg *cfg = p->cfg;

	for (uint32_t i = 0; i < cfg->nr_calls; i++) {
		const struct mp_call *call = &cfg->calls[i];
		const struct mp_block *block = &cfg->blocks[call->block];

		if (call->callee == NONE || block->func == NONE || p->index[block->func] == NONE ||
		    p->index[call->callee] == NONE || !(p->counts->block[call->block] > 0))
			continue;
		p->arcs[p->nr_arcs++] = (struct mp_order_arc){
			.caller = p->index[block->func],
			.callee = p->index[call->callee],
			.offset = p->hot_off[call->block] + call->offset,
			.weight = p->counts->block[call->block],
		};
	}
}

enum mp_order me_funcs_choose(const struct mp_cfg *cfg, const struct mp_counts *counts,
			      const uint8_t *zones)
{
	uint64_t hot = 0;

	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		if (zones[b] == ME_ZONE_HOT)
			hot += cfg->blocks[b].size;
	if (hot <= ITLB_REACH)
		return MP_ORDER_PH;
	return counts->exact ? MP_ORDER_CDS : MP_ORDER_ORIGINAL;
}

int me_funcs_order(const struct mp_cfg *cfg, const struct mp_counts *counts, const uint8_t *zones,
		   enum mp_order order, uint32_t *out, uint32_t *nr_out)
{
	struct placement p = {.cfg = cfg, .counts = counts, .zones = zones};
	size_t nr = (size_t)cfg->nr_funcs + 1;
	int ret = -ENOMEM;

	p.index = malloc(nr * sizeof(*p.index));
	p.func = malloc(nr * sizeof(*p.func));
	p.funcs = calloc(nr, sizeof(*p.funcs));
	p.hot_off = malloc(((size_t)cfg->nr_blocks + 1) * sizeof(*p.hot_off));
	p.arcs = calloc((size_t)cfg->nr_calls + 1, sizeof(*p.arcs));
	if (p.index && p.func && p.funcs && p.hot_off && p.arcs) {
		funcs_collect(&p);
		arcs_collect(&p);
		ret = mp_order_funcs(order, p.funcs, p.nr_funcs, p.arcs, p.nr_arcs, out);
		for (uint32_t i = 0; i < p.nr_funcs && !ret; i++)
			out[i] = p.func[out[i]];
		*nr_out = p.nr_funcs;
	}
	free(p.index);
	free(p.func);
	free(p.funcs);
	free(p.hot_off);
	free(p.arcs);
	return ret;
}
