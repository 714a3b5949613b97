// SPDX-License-Identifier: Apache-2.0
/*
 * stale - converts counts of an old build to counts of a new one. It decides what the
 * samples and transfers of a matched block become, and reports how many found no match.
 * Called by morph-optimize.
 */
#include "libprof/stale/stale.h"
#include "libprof/base/assert.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/search.h"

struct carrying {
	const struct mp_stale_match *match;
	const struct mp_fingerprint *from, *to;
	struct mp_stale_counts *out;
	uint32_t *order; /* the old build's blocks by ascending address */
	uint32_t *func;	 /* per old block: its function */
	/* per old block: the statistics include it; [nr_blocks + f]: the same per function */
	uint8_t *counted;
};

/* ---- address to block ------------------------------------------------------------------------ */

static int compare_blocks(const void *a, const void *b, void *arg)
{
	const struct mp_print_block *blocks = arg;
	const struct mp_print_block *x = &blocks[*(const uint32_t *)a],
				    *y = &blocks[*(const uint32_t *)b];

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static uint32_t block_at(const struct carrying *c, uint64_t vaddr)
{
	const struct mp_print_block *block;
	uint32_t low =
		mp_search(i, 0, c->from->nr_blocks, c->from->blocks[c->order[i]].vaddr <= vaddr);

	if (!low)
		return MP_NONE;
	block = &c->from->blocks[c->order[low - 1]];
	return vaddr - block->vaddr < block->size ? c->order[low - 1] : MP_NONE;
}

/* ---- statistics ----------------------------------------------------------------------------- */

/* Counts a block with samples or transfers, the first time that it is met. */
static void count_block(struct carrying *c, uint32_t block)
{
	struct mp_stale_stats *stats = &c->out->stats;
	uint32_t f = c->func[block];
	uint8_t *func_counted = &c->counted[(size_t)c->from->nr_blocks + f];

	if (!c->counted[block]) {
		c->counted[block] = 1;
		stats->nr_blocks++;
		stats->nr_blocks_matched += c->match->block_to[block] != MP_NONE;
	}
	if (!*func_counted) {
		*func_counted = 1;
		stats->nr_funcs++;
		stats->nr_funcs_matched += c->match->func_to[f] != MP_NONE;
		stats->nr_by[c->match->how[f]]++;
	}
}

/* ---- samples -------------------------------------------------------------------------------- */

static int compare_counts(const void *a, const void *b)
{
	const struct mp_ip_count *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* A block with more instructions takes longer: keep the samples per instruction. */
static uint64_t scaled(uint64_t count, const struct mp_print_block *from,
		       const struct mp_print_block *to)
{
	double share;

	if (!from->nr_insns || !to->nr_insns || from->nr_insns == to->nr_insns)
		return count;
	share = (double)count * to->nr_insns / from->nr_insns;
	return share < 1 ? 1 : share > 0x1p62 ? UINT64_C(1) << 62 : (uint64_t)llround(share);
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static int carry_samples(struct carrying *c, const struct mp_ip_count *counts, size_t nr)
{
	struct mp_stale_counts *out = c->out;
	uint64_t *samples = calloc((size_t)c->from->nr_blocks + 1, sizeof(*samples));

	out->counts = calloc((size_t)c->from->nr_blocks + 1, sizeof(*out->counts));
	if (!samples || !out->counts) {
		free(samples);
		return -ENOMEM;
	}
	for (size_t i = 0; i < nr; i++) {
		uint32_t block = block_at(c, counts[i].vaddr);

		out->stats.samples = add_saturated(out->stats.samples, counts[i].count);
		if (block == MP_NONE)
			continue;
		count_block(c, block);
		if (c->match->block_to[block] == MP_NONE)
			continue;
		out->stats.samples_matched =
			add_saturated(out->stats.samples_matched, counts[i].count);
		samples[block] = add_saturated(samples[block], counts[i].count);
	}
	for (uint32_t b = 0; b < c->from->nr_blocks; b++) {
		const struct mp_print_block *to;

		if (!samples[b])
			continue;
		to = &c->to->blocks[c->match->block_to[b]];
		out->counts[out->nr_counts++] = (struct mp_ip_count){
			to->vaddr, scaled(samples[b], &c->from->blocks[b], to)};
	}
	free(samples);
	if (out->nr_counts)
		qsort(out->counts, out->nr_counts, sizeof(*out->counts), compare_counts);
	return 0;
}

/* ---- transfers ------------------------------------------------------------------------------ */

static int compare_edges(const void *a, const void *b)
{
	const struct mp_edge_count *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

/* True if the branch at the end of @from leads to @to, other than by falling through. */
static bool leads_to(const struct mp_fingerprint *print, uint32_t first_block, uint32_t from,
		     uint32_t to)
{
	const struct mp_print_block *block = &print->blocks[from];

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		if (first_block + print->edges[e].to == to && print->edges[e].kind != MP_EDGE_FALL)
			return true;
	return false;
}

/* True if the old build's transfer stays inside the function. *@target: the block at @to. */
static bool is_inside(const struct carrying *c, uint32_t from, uint64_t to, uint32_t *target)
{
	const struct mp_print_func *func = &c->from->funcs[c->func[from]];
	uint32_t block = block_at(c, to);

	*target = block;
	return block != MP_NONE && c->from->blocks[block].vaddr == to &&
	       leads_to(c->from, func->first_block, from, block);
}

/* Address of the new build's call for the call at @off of @from; 0: there is none. */
static uint64_t call_in(const struct carrying *c, const struct mp_print_block *from,
			const struct mp_print_block *to, uint64_t off)
{
	if (from->nr_calls != to->nr_calls)
		return 0;
	for (uint32_t i = 0; i < from->nr_calls; i++)
		if (c->from->calls[from->first_call + i].off == off)
			return to->vaddr + c->to->calls[to->first_call + i].off;
	return 0;
}

/* Converts one transfer. Return: false if @edge says nothing about the new build. */
static bool carry_edge(struct carrying *c, const struct mp_edge_count *edge,
		       struct mp_edge_count *out)
{
	uint32_t from = block_at(c, edge->from), to_old, to;
	const struct mp_print_block *a, *b;

	if (from == MP_NONE)
		return false;
	count_block(c, from);
	to = c->match->block_to[from];
	if (to == MP_NONE)
		return false;
	a = &c->from->blocks[from];
	b = &c->to->blocks[to];
	*out = *edge;
	out->to = 0;
	if (edge->from - a->vaddr != a->term_off) {
		out->from = call_in(c, a, b, edge->from - a->vaddr);
		return out->from != 0;
	}
	if (b->term_off == b->size)
		return false;
	out->from = b->vaddr + b->term_off;
	if (!is_inside(c, from, edge->to, &to_old))
		return !b->nr_edges; /* a return or a tail call */
	if (c->match->block_to[to_old] == MP_NONE ||
	    !leads_to(c->to, c->to->funcs[c->match->func_to[c->func[from]]].first_block, to,
		      c->match->block_to[to_old]))
		return false;
	out->to = c->to->blocks[c->match->block_to[to_old]].vaddr;
	return true;
}

static int carry_transfers(struct carrying *c, const struct mp_edge_count *edges, size_t nr)
{
	struct mp_stale_counts *out = c->out;
	size_t n = 0;

	out->edges = calloc(nr + 1, sizeof(*out->edges));
	if (!out->edges)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		out->stats.transfers = add_saturated(out->stats.transfers, edges[i].count);
		if (!carry_edge(c, &edges[i], &out->edges[n]))
			continue;
		out->stats.transfers_matched =
			add_saturated(out->stats.transfers_matched, edges[i].count);
		n++;
	}
	if (n)
		qsort(out->edges, n, sizeof(*out->edges), compare_edges);
	for (size_t i = 0; i < n; i++) {
		struct mp_edge_count *last = &out->edges[out->nr_edges ? out->nr_edges - 1 : 0];

		if (out->nr_edges && !compare_edges(last, &out->edges[i])) {
			last->count = add_saturated(last->count, out->edges[i].count);
			last->mispredicted =
				add_saturated(last->mispredicted, out->edges[i].mispredicted);
		} else {
			out->edges[out->nr_edges++] = out->edges[i];
		}
	}
	return 0;
}

/* ---- blocks without knowledge ---------------------------------------------------------------- */

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int list_unknown(struct carrying *c)
{
	struct mp_stale_counts *out = c->out;

	out->unknown = calloc((size_t)c->to->nr_blocks + 1, sizeof(*out->unknown));
	if (!out->unknown)
		return -ENOMEM;
	for (uint32_t f = 0; f < c->to->nr_funcs; f++) {
		const struct mp_print_func *func = &c->to->funcs[f];
		uint32_t of = c->match->func_of[f];

		/* A function without samples has no counts, and nothing is inferred in it. */
		if (of == MP_NONE || !c->from->funcs[of].nr_kept)
			continue;
		for (uint32_t b = func->first_block; b < func->first_block + func->nr_kept; b++)
			if (c->match->block_of[b] == MP_NONE)
				out->unknown[out->nr_unknown++] = c->to->blocks[b].vaddr;
	}
	if (out->nr_unknown)
		qsort(out->unknown, out->nr_unknown, sizeof(*out->unknown), compare_u64);
	return 0;
}

int mp_stale_carry(const struct mp_stale_match *match, const struct mp_ip_count *counts,
		   size_t nr_counts, const struct mp_edge_count *edges, size_t nr_edges,
		   struct mp_stale_counts *out, struct mp_err *err)
{
	const struct mp_fingerprint *from = match->old_build;
	struct carrying c = {.match = match, .from = from, .to = match->new_build, .out = out};
	int r = 0;

	mp_assert(mp_ascends(counts, nr_counts, vaddr) && mp_ascends(edges, nr_edges, from));
	*out = (struct mp_stale_counts){0};
	c.order = malloc(((size_t)from->nr_blocks + 1) * sizeof(*c.order));
	c.func = calloc((size_t)from->nr_blocks + 1, sizeof(*c.func));
	c.counted = calloc((size_t)from->nr_blocks + from->nr_funcs + 1, 1);
	if (!c.order || !c.func || !c.counted)
		r = -ENOMEM;
	for (uint32_t f = 0; f < from->nr_funcs && !r; f++)
		for (uint32_t b = 0; b < from->funcs[f].nr_kept; b++)
			c.func[from->funcs[f].first_block + b] = f;
	for (uint32_t b = 0; b < from->nr_blocks && !r; b++)
		c.order[b] = b;
	if (!r && from->nr_blocks)
		qsort_r(c.order, from->nr_blocks, sizeof(*c.order), compare_blocks, from->blocks);
	if (!r)
		r = carry_samples(&c, counts, nr_counts);
	if (!r && nr_edges)
		r = carry_transfers(&c, edges, nr_edges);
	if (!r)
		r = list_unknown(&c);
	free(c.order);
	free(c.func);
	free(c.counted);
	if (!r)
		return 0;
	mp_stale_counts_fini(out);
	return mp_err_set(err, ENOMEM, "out of memory");
}

void mp_stale_counts_fini(struct mp_stale_counts *counts)
{
	free(counts->counts);
	free(counts->edges);
	free(counts->unknown);
	*counts = (struct mp_stale_counts){0};
}
