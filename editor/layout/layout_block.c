// SPDX-License-Identifier: Apache-2.0
/*
 * layout_block - branch alignment: the order of one function's blocks inside one zone.
 *
 * Decides which block follows which, so that the most frequent ways fall through. Merges chains
 * bottom-up, the heaviest link first, like Pettis and Hansen (PLDI 1990) and the greedy variant of
 * Young et al. (PLDI 1997). Then layout_improve exchanges links for better ones. Called by layout.c.
 */
#include <errno.h>
#include <string.h>

#include "editor/layout/layout_improve.h"
#include "editor/layout/layout_private.h"
#include "libprof/order/order_exttsp.h"

#define NONE MP_NONE

/* The cost of an executed jump as an instruction, besides the taken branch. */
#define INSN_WEIGHT 0.25

struct link {
	uint32_t from, to; /* cfg blocks */
	double gain;	   /* of putting `to` right behind `from` */
	bool fall;	   /* as in the original */
	bool chosen;	   /* by links_improve(): merged first */
};

struct chain {
	uint32_t head, tail;
	uint32_t nr_blocks;
	double heat; /* count of the hottest block */
	double pull; /* count of edges between it and placed chains */
};

struct order {
	const struct mp_cfg *cfg;
	const struct mp_counts *counts;
	const struct mp_func *func;
	double old_way;	      /* as of me_blocks_order() */
	uint32_t *next;	      /* per block of the function: the block behind it, cfg index */
	uint32_t *chain_of;   /* per block: any block of its chain, union-find */
	struct chain *chains; /* per block: valid at the representative */
	uint32_t *heads;      /* representatives of chains that are not placed yet */
	struct link *links;
	uint32_t nr_links;
};

static uint32_t local(const struct order *o, uint32_t block)
{
	return block - o->func->first_block;
}

static uint32_t chain_find(struct order *o, uint32_t block)
{
	uint32_t i = local(o, block);

	while (o->chain_of[i] != i) {
		o->chain_of[i] = o->chain_of[o->chain_of[i]];
		i = o->chain_of[i];
	}
	return i;
}

/*
 * The savings if edge @e of @block falls through, compared with no useful block behind @block: a
 * taken branch each time, and an instruction each time a jump is not needed. A conditional branch
 * with neither successor adjacent needs a jump on the rarer way.
 */
static double edge_gain(const struct order *o, const struct mp_block *block, uint32_t e)
{
	double count = o->counts->edge[e], jumps = count;

	if (block->term == MP_TERM_COND) {
		if (block->nr_edges <
		    2) /* the other successor is outside, so only this one can fall */
			return count * (1 + INSN_WEIGHT);
		for (uint32_t i = 0; i < block->nr_edges; i++) {
			double other = o->counts->edge[block->first_edge + i];

			if (other < jumps)
				jumps = other;
		}
	}
	return count + INSN_WEIGHT * jumps;
}

/* The weight of the compiler's choice for edge @e of block @b, in executions. */
static double edge_known(const struct order *o, uint32_t b, uint32_t e)
{
	bool fell = o->cfg->blocks[b].term == MP_TERM_COND && o->cfg->edges[e].kind == MP_EDGE_FALL;

	return fell ? o->old_way * o->counts->block[b] : 0;
}

static void links_collect(struct order *o, const uint8_t *zones, enum me_zone zone)
{
	const struct mp_cfg *cfg = o->cfg;
	const struct mp_func *func = o->func;

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		if (zones[b] != zone)
			continue;
		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++) {
			uint32_t to = cfg->edges[e].to;

			if (cfg->edges[e].kind == MP_EDGE_TABLE || to == b || zones[to] != zone ||
			    (cfg->blocks[to].flags & MP_BLOCK_ENTRY))
				continue;
			o->links[o->nr_links++] = (struct link){
				.from = b,
				.to = to,
				.gain = edge_gain(o, block, e) + edge_known(o, b, e),
				.fall = cfg->edges[e].kind == MP_EDGE_FALL,
			};
		}
	}
}

/* The heaviest first. Original fall-throughs win ties, so that nothing changes without evidence. */
static int link_compare(const void *a, const void *b)
{
	const struct link *x = a, *y = b;

	if (x->chosen != y->chosen)
		return x->chosen ? -1 : 1;
	if (x->gain != y->gain)
		return x->gain > y->gain ? -1 : 1;
	if (x->fall != y->fall)
		return x->fall ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

static void chains_init(struct order *o)
{
	for (uint32_t i = 0; i < o->func->nr_blocks; i++) {
		uint32_t b = o->func->first_block + i;

		o->next[i] = NONE;
		o->chain_of[i] = i;
		o->chains[i] = (struct chain){
			.head = b, .tail = b, .nr_blocks = 1, .heat = o->counts->block[b]};
	}
}

static void chains_merge(struct order *o)
{
	qsort(o->links, o->nr_links, sizeof(*o->links), link_compare);
	for (uint32_t i = 0; i < o->nr_links; i++) {
		const struct link *link = &o->links[i];
		uint32_t a = chain_find(o, link->from), b = chain_find(o, link->to);

		if (a == b || o->chains[a].tail != link->from || o->chains[b].head != link->to)
			continue;
		o->next[local(o, link->from)] = link->to;
		o->chain_of[b] = a;
		o->chains[a].tail = o->chains[b].tail;
		o->chains[a].nr_blocks += o->chains[b].nr_blocks;
		if (o->chains[b].heat > o->chains[a].heat)
			o->chains[a].heat = o->chains[b].heat;
	}
}

/* Exchanges links of the chains for others that are worth more together. Return: 0, -ENOMEM. */
static int links_improve(struct order *o)
{
	struct me_improve_link *links = malloc(((size_t)o->nr_links + 1) * sizeof(*links));
	int ret;

	if (!links)
		return -ENOMEM;
	for (uint32_t i = 0; i < o->nr_links; i++) {
		const struct link *link = &o->links[i];

		links[i] = (struct me_improve_link){
			.from = local(o, link->from),
			.to = local(o, link->to),
			.gain = link->gain,
			.chosen = o->next[local(o, link->from)] == link->to,
		};
	}
	ret = me_links_improve(links, o->nr_links, o->func->nr_blocks);
	for (uint32_t i = 0; i < o->nr_links; i++)
		o->links[i].chosen = links[i].chosen;
	free(links);
	return ret;
}

/* Chains by the heaviest links first, then by the links that are better than these. */
static int chains_build(struct order *o)
{
	int ret;

	chains_init(o);
	chains_merge(o);
	ret = links_improve(o);
	chains_init(o);
	chains_merge(o);
	return ret;
}

static void chain_place(struct order *o, uint32_t c, const uint8_t *zones, enum me_zone zone,
			uint32_t *out, uint32_t *nr_out)
{
	for (uint32_t b = o->chains[c].head; b != NONE; b = o->next[local(o, b)])
		out[(*nr_out)++] = b;
	for (uint32_t b = o->chains[c].head; b != NONE; b = o->next[local(o, b)]) {
		const struct mp_block *block = &o->cfg->blocks[b];

		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++) {
			uint32_t to = o->cfg->edges[e].to;

			if (zones[to] == zone)
				o->chains[chain_find(o, to)].pull += o->counts->edge[e];
		}
	}
}

/* After the chain of the entry, always places the chain with the most edges from placed chains.
 * Chains without such edges come last, the hottest first, then in the original order. */
static void chains_place(struct order *o, const uint8_t *zones, enum me_zone zone, uint32_t *out,
			 uint32_t *nr_out)
{
	const struct mp_func *func = o->func;
	uint32_t nr = 0;

	/* Compact, so that the loop below visits chains and not blocks: large functions have many. */
	for (uint32_t i = 0; i < func->nr_blocks; i++) {
		if (zones[func->first_block + i] == zone && o->chain_of[i] == i)
			o->heads[nr++] = i;
	}
	while (nr) {
		uint32_t best = 0;

		for (uint32_t k = 0; k < nr; k++) {
			const struct chain *chain = &o->chains[o->heads[k]];
			const struct chain *than = &o->chains[o->heads[best]];

			if (o->cfg->blocks[chain->head].flags & MP_BLOCK_ENTRY) {
				best = k;
				break;
			}
			if (chain->pull > than->pull ||
			    (chain->pull == than->pull &&
			     (chain->heat > than->heat ||
			      (chain->heat == than->heat && chain->head < than->head))))
				best = k;
		}
		chain_place(o, o->heads[best], zones, zone, out, nr_out);
		o->heads[best] = o->heads[--nr];
	}
}

static int blocks_ph(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t func,
		     const uint8_t *zones, enum me_zone zone, double old_way, uint32_t *out,
		     uint32_t *nr_out)
{
	const struct mp_func *f = &cfg->funcs[func];
	struct order o = {.cfg = cfg, .counts = counts, .func = f, .old_way = old_way};
	uint32_t nr_edges = 0;
	int ret = -ENOMEM;

	*nr_out = 0;
	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++)
		nr_edges += cfg->blocks[b].nr_edges;
	o.next = malloc(((size_t)f->nr_blocks + 1) * sizeof(*o.next));
	o.chain_of = malloc(((size_t)f->nr_blocks + 1) * sizeof(*o.chain_of));
	o.chains = malloc(((size_t)f->nr_blocks + 1) * sizeof(*o.chains));
	o.heads = malloc(((size_t)f->nr_blocks + 1) * sizeof(*o.heads));
	o.links = malloc(((size_t)nr_edges + 1) * sizeof(*o.links));
	if (o.next && o.chain_of && o.chains && o.heads && o.links) {
		links_collect(&o, zones, zone);
		ret = chains_build(&o);
		if (!ret)
			chains_place(&o, zones, zone, out, nr_out);
	}
	free(o.next);
	free(o.chain_of);
	free(o.chains);
	free(o.heads);
	free(o.links);
	return ret;
}

/* The blocks of one zone and the edges between them, numbered as in @blocks. */
struct ways {
	struct mp_exttsp problem;
	uint32_t *blocks; /* cfg indexes, ascending */
	uint32_t *number; /* per block of the function */
	uint32_t *sizes;
	double *counts;
	struct mp_exttsp_link *links;
};

static void ways_collect(struct ways *w, const struct order *o, const uint8_t *zones,
			 enum me_zone zone)
{
	const struct mp_cfg *cfg = o->cfg;
	const struct mp_func *func = o->func;
	uint32_t nr = 0, nr_links = 0;

	w->problem = (struct mp_exttsp){
		.sizes = w->sizes, .counts = w->counts, .links = w->links, .entry = MP_NONE};
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		if (zones[b] != zone)
			continue;
		if (cfg->blocks[b].flags & MP_BLOCK_ENTRY)
			w->problem.entry = nr;
		w->sizes[nr] = cfg->blocks[b].size;
		w->counts[nr] = o->counts->block[b];
		w->blocks[nr] = b;
		w->number[local(o, b)] = nr++;
	}
	for (uint32_t i = 0; i < nr; i++) {
		const struct mp_block *block = &cfg->blocks[w->blocks[i]];

		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++) {
			uint32_t to = cfg->edges[e].to;
			bool falls = cfg->edges[e].kind != MP_EDGE_TABLE &&
				     !(cfg->blocks[to].flags & MP_BLOCK_ENTRY);

			if (zones[to] == zone && to != w->blocks[i] && o->counts->edge[e] > 0)
				w->links[nr_links++] = (struct mp_exttsp_link){
					i, w->number[local(o, to)], o->counts->edge[e],
					falls ? edge_gain(o, block, e) +
							edge_known(o, w->blocks[i], e)
					      : 0};
		}
	}
	w->problem.nr_blocks = nr;
	w->problem.nr_links = nr_links;
}

static int blocks_exttsp(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t func,
			 const uint8_t *zones, enum me_zone zone, double old_way, uint32_t *out,
			 uint32_t *nr_out)
{
	const struct order o = {
		.cfg = cfg, .counts = counts, .func = &cfg->funcs[func], .old_way = old_way};
	size_t nr = (size_t)o.func->nr_blocks + 1, nr_edges = 1;
	struct ways w = {.blocks = malloc(nr * sizeof(*w.blocks))};
	int ret = -ENOMEM;

	for (uint32_t b = o.func->first_block; b < o.func->first_block + o.func->nr_blocks; b++)
		nr_edges += cfg->blocks[b].nr_edges;
	w.number = malloc(nr * sizeof(*w.number));
	w.sizes = malloc(nr * sizeof(*w.sizes));
	w.counts = malloc(nr * sizeof(*w.counts));
	w.links = malloc(nr_edges * sizeof(*w.links));
	if (w.blocks && w.number && w.sizes && w.counts && w.links) {
		ways_collect(&w, &o, zones, zone);
		ret = mp_exttsp_order(&w.problem, out);
		for (uint32_t i = 0; i < w.problem.nr_blocks && !ret; i++)
			out[i] = w.blocks[out[i]];
		*nr_out = w.problem.nr_blocks;
	}
	free(w.blocks);
	free(w.number);
	free(w.sizes);
	free(w.counts);
	free(w.links);
	return ret;
}

/*
 * By ascending address from the entry on; then the blocks below the entry, since a .cold part often
 * lies below the function.
 */
static int blocks_original(const struct mp_cfg *cfg, uint32_t func, const uint8_t *zones,
			   enum me_zone zone, uint32_t *out, uint32_t *nr_out)
{
	const struct mp_func *f = &cfg->funcs[func];
	uint32_t end = f->first_block + f->nr_blocks;
	uint32_t entry = f->first_block;

	*nr_out = 0;
	while (entry < end && !(cfg->blocks[entry].flags & MP_BLOCK_ENTRY))
		entry++;
	for (uint32_t b = entry; b < end; b++)
		if (zones[b] == zone)
			out[(*nr_out)++] = b;
	for (uint32_t b = f->first_block; b < entry; b++)
		if (zones[b] == zone)
			out[(*nr_out)++] = b;
	return 0;
}

int me_blocks_order(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t func,
		    const uint8_t *zones, enum me_zone zone, enum me_order order, double old_way,
		    uint32_t *out, uint32_t *nr_out)
{
	switch (order) {
	case ME_ORDER_PH: return blocks_ph(cfg, counts, func, zones, zone, old_way, out, nr_out);
	case ME_ORDER_EXTTSP:
		return blocks_exttsp(cfg, counts, func, zones, zone, old_way, out, nr_out);
	default: return blocks_original(cfg, func, zones, zone, out, nr_out);
	}
}
