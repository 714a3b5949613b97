// SPDX-License-Identifier: Apache-2.0
/*
 * layout_copies - a prototype, which measures what copies of functions for their call sites are worth.
 *
 * MORPH_COPIES=FILE has lines `BRANCH SITE TOTAL TAKEN', exact counts of each branch for each call site of its
 * function (scripts/bench/bench-copies). The call sites of a function are divided so that the fewest branches go the
 * unlikely way; a second copy has the blocks that run for the chosen sites, in an order of its own. Every other way
 * leads from there into the first copy. Without MORPH_COPIES nothing changes.
 */
#include "editor/layout/layout_copies.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "editor/evidence/leaf.h"
#include "editor/layout/predict.h"

struct record {
	uint64_t branch, site;
	double total, taken;
};
struct site {
	uint64_t insn;
	uint32_t first, nr;
	uint32_t call;
	bool may, in;
};
struct ways {
	uint32_t branch;
	double total, taken;
	uint64_t site;
};
struct chosen {
	uint32_t func;
	double gain;
	uint32_t bytes;
	uint64_t *sites;
	uint32_t nr_sites;
	double *block, *edge;
};
struct me_copies {
	const struct mp_cfg *cfg;
	const struct mp_counts *counts;
	struct mp_counts rest;
	uint8_t *zones;
	struct record *records;
	uint32_t nr_records;
	struct chosen *chosen;
	uint32_t nr_chosen;
	uint32_t *next;
	uint8_t *copied, *zones2;
	struct mp_counts mine; /* scratch */
};

static double env(const char *name, double otherwise)
{
	const char *s = getenv(name);
	return s ? atof(s) : otherwise;
}

static int by_branch(const void *a, const void *b)
{
	const struct record *x = a, *y = b;
	if (x->branch != y->branch)
		return x->branch < y->branch ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

static int read_records(struct me_copies *c, const char *path)
{
	FILE *f = fopen(path, "re");
	struct record r;
	uint32_t cap = 0;
	if (!f) {
		perror(path);
		return -errno;
	}
	while (fscanf(f, "%" SCNx64 " %" SCNx64 " %lf %lf", &r.branch, &r.site, &r.total,
		      &r.taken) == 4) {
		if (c->nr_records == cap) {
			cap = 2 * cap + 1024;
			c->records = realloc(c->records, cap * sizeof(r));
		}
		c->records[c->nr_records++] = r;
	}
	fclose(f);
	qsort(c->records, c->nr_records, sizeof(r), by_branch);
	return 0;
}

static int by_site(const void *a, const void *b)
{
	const struct ways *x = a, *y = b;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return x->branch < y->branch ? -1 : x->branch > y->branch;
}

static uint32_t find_call(const struct mp_cfg *cfg, uint64_t insn)
{
	uint32_t lo = 0, hi = cfg->nr_calls, block = insn ? mp_cfg_block_at(cfg, insn) : MP_NONE;
	if (block == MP_NONE)
		return MP_NONE;
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		if (cfg->calls[mid].block < block)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < cfg->nr_calls && cfg->calls[lo].block == block; lo++)
		if (mp_call_insn(cfg, &cfg->calls[lo]) == insn)
			return lo;
	return MP_NONE;
}

static double least(double total, double taken)
{
	return taken < total - taken ? taken : total - taken;
}

struct func_data {
	const struct mp_func *fn;
	uint32_t f, first;
	struct ways *ways;
	uint32_t nr_ways;
	struct site *sites;
	uint32_t nr_sites;
	double *total, *taken, *in_total, *in_taken; /* per block of the function */
};

static double gain_of(const struct func_data *d)
{
	double gain = 0;
	for (uint32_t i = 0; i < d->fn->nr_blocks; i++)
		gain += least(d->total[i], d->taken[i]) - least(d->in_total[i], d->in_taken[i]) -
			least(d->total[i] - d->in_total[i], d->taken[i] - d->in_taken[i]);
	return gain;
}

static void put_in(struct func_data *d, struct site *s, double sign)
{
	for (uint32_t i = s->first; i < s->first + s->nr; i++) {
		d->in_total[d->ways[i].branch] += sign * d->ways[i].total;
		d->in_taken[d->ways[i].branch] += sign * d->ways[i].taken;
	}
	s->in = sign > 0;
}

static int compare_double(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x < *y) - (*x > *y);
}

/* One site first, then others move while that gains. */
static double cluster(struct func_data *d, bool single)
{
	double best = 0, gain;
	uint32_t chosen = MP_NONE;

	(void)compare_double;
	for (uint32_t i = 0; i < d->nr_sites; i++) {
		if (!d->sites[i].may)
			continue;
		put_in(d, &d->sites[i], 1);
		gain = gain_of(d);
		put_in(d, &d->sites[i], -1);
		if (gain > best) {
			best = gain;
			chosen = i;
		}
	}
	if (chosen == MP_NONE)
		return 0;
	put_in(d, &d->sites[chosen], 1);
	if (single || d->nr_sites > 400)
		return best;
	for (int round = 0; round < 4; round++) {
		bool changed = false;
		for (uint32_t i = 0; i < d->nr_sites; i++) {
			if (!d->sites[i].may)
				continue;
			put_in(d, &d->sites[i], d->sites[i].in ? -1 : 1);
			gain = gain_of(d);
			if (gain > best * (1 + 1e-9)) {
				best = gain;
				changed = true;
			} else
				put_in(d, &d->sites[i], d->sites[i].in ? -1 : 1);
		}
		if (!changed)
			break;
	}
	return best;
}

/* Counts of all blocks and edges for the chosen sites; flow from the entry, branches as counted. */
static void solve(struct me_copies *c, const struct func_data *d)
{
	const struct mp_cfg *cfg = c->cfg;
	double entry = 0, change = 1;
	uint32_t first = d->fn->first_block, end = first + d->fn->nr_blocks;

	for (uint32_t i = 0; i < d->nr_sites; i++)
		if (d->sites[i].in)
			entry += c->counts->block[cfg->calls[d->sites[i].call].block];
	for (uint32_t b = first; b < end; b++) {
		c->mine.block[b] = 0;
		for (uint32_t e = 0; e < cfg->blocks[b].nr_edges; e++)
			c->mine.edge[cfg->blocks[b].first_edge + e] = 0;
	}
	for (int round = 0; round < 300 && change > 0.5; round++) {
		double *in = calloc(d->fn->nr_blocks + 1, sizeof(*in));
		change = 0;
		in[mp_cfg_block_starting(cfg, d->fn->vaddr) - first] = entry;
		for (uint32_t b = first; b < end; b++)
			for (uint32_t e = 0; e < cfg->blocks[b].nr_edges; e++) {
				uint32_t k = cfg->blocks[b].first_edge + e;
				in[cfg->edges[k].to - first] += c->mine.edge[k];
			}
		for (uint32_t b = first; b < end; b++) {
			const struct mp_block *block = &cfg->blocks[b];
			double x = in[b - first], whole = c->counts->block[b];
			if (x > whole)
				x = whole;
			if (block->term == MP_TERM_COND)
				x = d->in_total[b - first];
			change += x > c->mine.block[b] ? x - c->mine.block[b]
						       : c->mine.block[b] - x;
			c->mine.block[b] = x;
			for (uint32_t e = 0; e < block->nr_edges; e++) {
				uint32_t k = block->first_edge + e;
				if (block->term == MP_TERM_COND)
					c->mine.edge[k] = cfg->edges[k].kind == MP_EDGE_FALL
								  ? x - d->in_taken[b - first]
								  : d->in_taken[b - first];
				else
					c->mine.edge[k] = whole > 0 ? x * c->counts->edge[k] / whole
								    : 0;
			}
		}
		free(in);
	}
}

/* Mark what is reachable from marked blocks without jumps through tables. */
static void reach(const struct mp_cfg *cfg, const struct mp_func *fn, uint8_t *mark)
{
	bool changed = true;
	while (changed) {
		changed = false;
		for (uint32_t b = fn->first_block; b < fn->first_block + fn->nr_blocks; b++)
			for (uint32_t e = 0;
			     mark[b - fn->first_block] && cfg->blocks[b].term != MP_TERM_TABLE &&
			     e < cfg->blocks[b].nr_edges;
			     e++) {
				uint32_t to = cfg->edges[cfg->blocks[b].first_edge + e].to -
					      fn->first_block;
				if (!mark[to]) {
					mark[to] = 1;
					changed = true;
				}
			}
	}
}

/* Behind a jump through a table control is in the first copy. */
static void leave_at_tables(struct me_copies *c, const struct func_data *d)
{
	const struct mp_cfg *cfg = c->cfg;
	const struct mp_func *fn = d->fn;
	uint8_t *near = calloc(fn->nr_blocks, 1), *far = calloc(fn->nr_blocks, 1);
	near[mp_cfg_block_starting(cfg, fn->vaddr) - fn->first_block] = 1;
	for (uint32_t b = fn->first_block; b < fn->first_block + fn->nr_blocks; b++)
		for (uint32_t e = 0; c->mine.block[b] > 0 && cfg->blocks[b].term == MP_TERM_TABLE &&
				     e < cfg->blocks[b].nr_edges;
		     e++)
			far[cfg->edges[cfg->blocks[b].first_edge + e].to - fn->first_block] = 1;
	reach(cfg, fn, near);
	reach(cfg, fn, far);
	for (uint32_t b = fn->first_block; b < fn->first_block + fn->nr_blocks; b++) {
		bool in = near[b - fn->first_block] && !far[b - fn->first_block];
		if (!in)
			c->mine.block[b] = 0;
		for (uint32_t e = 0; e < cfg->blocks[b].nr_edges; e++)
			if (!in || cfg->blocks[b].term == MP_TERM_TABLE)
				c->mine.edge[cfg->blocks[b].first_edge + e] = 0;
	}
	free(near);
	free(far);
}

static double taken_after(struct me_copies *c, const struct mp_counts *counts, uint32_t f,
			  const uint8_t *zones, uint32_t *order)
{
	const struct mp_func *fn = &c->cfg->funcs[f];
	struct me_branches sum = {0};
	uint32_t nr = 0;
	for (uint32_t b = fn->first_block; b < fn->first_block + fn->nr_blocks; b++) {
		c->copied[b] = 0;
		c->next[b] = MP_NONE;
	}
	if (me_blocks_order(c->cfg, counts, f, zones, ME_ZONE_HOT, ME_ORDER_PH, 0, order, &nr))
		return 0;
	for (uint32_t i = 0; i < nr; i++) {
		c->copied[order[i]] = 1;
		c->next[order[i]] = i + 1 < nr ? order[i + 1] : MP_NONE;
	}
	me_branches_add(c->cfg, counts, f, c->next, c->copied, &sum);
	return sum.taken_after;
}

static void consider(struct me_copies *c, struct func_data *d, double minimum)
{
	const struct mp_cfg *cfg = c->cfg;
	uint32_t first = d->fn->first_block, end = first + d->fn->nr_blocks;
	double before, after, gain = cluster(d, getenv("MORPH_COPIES_SINGLE") != NULL);
	struct chosen *ch;
	uint32_t *order = malloc((d->fn->nr_blocks + 1) * sizeof(*order)), bytes = 0, nr_in = 0;

	if (gain < minimum) {
		free(order);
		return;
	}
	solve(c, d);
	leave_at_tables(c, d);
	for (uint32_t b = first; b < end; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		double rest = c->counts->block[b] - c->mine.block[b];
		c->rest.block[b] = rest > 0 ? rest : 0;
		for (uint32_t e = 0; e < block->nr_edges; e++) {
			uint32_t k = block->first_edge + e;
			double r = c->counts->edge[k] - c->mine.edge[k];
			c->rest.edge[k] = r > 0 ? r : 0;
		}
		c->zones2[b] = c->zones[b] != ME_STAY && c->mine.block[b] > 0 ? ME_ZONE_HOT
									      : ME_STAY;
		if (c->zones2[b] == ME_ZONE_HOT)
			bytes += block->size;
	}
	before = taken_after(c, c->counts, d->f, c->zones, order);
	after = taken_after(c, &c->rest, d->f, c->zones, order) +
		taken_after(c, &c->mine, d->f, c->zones2, order);
	for (uint32_t i = 0; i < d->nr_sites; i++)
		nr_in += d->sites[i].in;
	if (before - after >= minimum &&
	    c->zones2[mp_cfg_block_starting(cfg, d->fn->vaddr)] == ME_ZONE_HOT && nr_in) {
		c->chosen = realloc(c->chosen, (c->nr_chosen + 1) * sizeof(*ch));
		ch = &c->chosen[c->nr_chosen++];
		*ch = (struct chosen){.func = d->f, .gain = before - after, .bytes = bytes};
		ch->sites = malloc(nr_in * sizeof(*ch->sites));
		for (uint32_t i = 0; i < d->nr_sites; i++)
			if (d->sites[i].in)
				ch->sites[ch->nr_sites++] = d->sites[i].insn;
		ch->block = malloc(d->fn->nr_blocks * sizeof(double));
		memcpy(ch->block, &c->mine.block[first], d->fn->nr_blocks * sizeof(double));
		{
			uint32_t e0 = cfg->blocks[first].first_edge,
				 e1 = cfg->blocks[end - 1].first_edge +
				      cfg->blocks[end - 1].nr_edges;
			ch->edge = malloc((e1 - e0 + 1) * sizeof(double));
			memcpy(ch->edge, &c->mine.edge[e0], (e1 - e0) * sizeof(double));
		}
	}
	/* undone here; done again for those that are kept */
	for (uint32_t b = first; b < end; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		c->rest.block[b] = c->counts->block[b];
		for (uint32_t e = 0; e < block->nr_edges; e++)
			c->rest.edge[block->first_edge + e] =
				c->counts->edge[block->first_edge + e];
	}
	free(order);
}

static int by_worth(const void *a, const void *b)
{
	const struct chosen *x = a, *y = b;
	double wx = x->gain / (x->bytes + 1), wy = y->gain / (y->bytes + 1);
	return wx > wy ? -1 : wx < wy;
}

static void restore(struct me_copies *c, const struct chosen *ch)
{
	const struct mp_func *fn = &c->cfg->funcs[ch->func];
	uint32_t first = fn->first_block, last = first + fn->nr_blocks - 1;
	uint32_t e0 = c->cfg->blocks[first].first_edge,
		 e1 = c->cfg->blocks[last].first_edge + c->cfg->blocks[last].nr_edges;
	memcpy(&c->mine.block[first], ch->block, fn->nr_blocks * sizeof(double));
	memcpy(&c->mine.edge[e0], ch->edge, (e1 - e0) * sizeof(double));
}

int me_copies_choose(const struct mp_cfg *cfg, const struct mp_counts *counts,
		     const uint8_t *eligible, uint8_t *zones, struct me_copies **out)
{
	const char *path = getenv("MORPH_COPIES");
	struct me_copies *c;
	struct me_leaf *leaf;
	double all = 0, gains = 0;
	uint64_t hot = 0, budget, used = 0;
	uint32_t kept = 0;
	int rc;

	*out = NULL;
	if (!path)
		return 0;
	c = calloc(1, sizeof(*c));
	leaf = calloc(1, sizeof(*leaf));
	c->cfg = cfg;
	c->counts = counts;
	c->zones = zones;
	rc = read_records(c, path);
	if (rc)
		return rc;
	c->rest = c->mine = *counts;
	c->rest.block = malloc((cfg->nr_blocks + 1) * sizeof(double));
	c->rest.edge = malloc((cfg->nr_edges + 1) * sizeof(double));
	c->mine.block = calloc(cfg->nr_blocks + 1, sizeof(double));
	c->mine.edge = calloc(cfg->nr_edges + 1, sizeof(double));
	memcpy(c->rest.block, counts->block, cfg->nr_blocks * sizeof(double));
	memcpy(c->rest.edge, counts->edge, cfg->nr_edges * sizeof(double));
	c->next = malloc((cfg->nr_blocks + 1) * sizeof(uint32_t));
	c->copied = calloc(cfg->nr_blocks + 1, 1);
	c->zones2 = malloc(cfg->nr_blocks + 1);
	memset(c->zones2, ME_STAY, cfg->nr_blocks);
	for (uint32_t i = 0; i < c->nr_records; i++)
		all += c->records[i].total;
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		if (zones[b] == ME_ZONE_HOT)
			hot += cfg->blocks[b].size;
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const struct mp_func *fn = &cfg->funcs[f];
		struct func_data d = {.fn = fn, .f = f};
		uint32_t nr = 0;
		if (!fn->nr_blocks || !eligible[f] ||
		    mp_cfg_block_starting(cfg, fn->vaddr) == MP_NONE ||
		    zones[mp_cfg_block_starting(cfg, fn->vaddr)] == ME_STAY ||
		    me_leaf_find(cfg, f, leaf))
			continue;
		d.ways = malloc(sizeof(*d.ways));
		d.total = calloc(fn->nr_blocks, sizeof(double));
		d.taken = calloc(fn->nr_blocks, sizeof(double));
		d.in_total = calloc(fn->nr_blocks, sizeof(double));
		d.in_taken = calloc(fn->nr_blocks, sizeof(double));
		for (uint32_t b = fn->first_block; b < fn->first_block + fn->nr_blocks; b++) {
			const struct mp_block *block = &cfg->blocks[b];
			uint64_t at = block->vaddr + block->size - block->term_len;
			uint32_t lo = 0, hi = c->nr_records;
			if (block->term != MP_TERM_COND)
				continue;
			while (lo < hi) {
				uint32_t mid = (lo + hi) / 2;
				if (c->records[mid].branch < at)
					lo = mid + 1;
				else
					hi = mid;
			}
			for (; lo < c->nr_records && c->records[lo].branch == at; lo++) {
				const struct record *r = &c->records[lo];
				d.ways = realloc(d.ways, (nr + 1) * sizeof(*d.ways));
				d.ways[nr++] = (struct ways){b - fn->first_block, r->total,
							     r->taken, r->site};
				d.total[b - fn->first_block] += r->total;
				d.taken[b - fn->first_block] += r->taken;
			}
		}
		qsort(d.ways, nr, sizeof(*d.ways), by_site);
		d.nr_ways = nr;
		d.sites = calloc(nr + 1, sizeof(*d.sites));
		for (uint32_t i = 0; i < nr; i++) {
			if (!i || d.ways[i].site != d.ways[i - 1].site) {
				struct site *s = &d.sites[d.nr_sites++];
				*s = (struct site){.insn = d.ways[i].site, .first = i};
				s->call = find_call(cfg, s->insn);
				s->may = s->call != MP_NONE && !cfg->calls[s->call].tail &&
					 cfg->calls[s->call].callee == f &&
					 mp_call_target(cfg, &cfg->calls[s->call]) == fn->vaddr &&
					 zones[cfg->calls[s->call].block] != ME_STAY;
			}
			d.sites[d.nr_sites - 1].nr++;
		}
		if (d.nr_sites > 1)
			consider(c, &d, env("MORPH_COPIES_MIN", 0.0001) * all);
		free(d.ways);
		free(d.total);
		free(d.taken);
		free(d.in_total);
		free(d.in_taken);
		free(d.sites);
	}
	budget = (uint64_t)(env("MORPH_COPIES_GROWTH", 0.25) * (double)hot);
	qsort(c->chosen, c->nr_chosen, sizeof(*c->chosen), by_worth);
	for (uint32_t i = 0; i < c->nr_chosen; i++)
		if (used + c->chosen[i].bytes <= budget) {
			used += c->chosen[i].bytes;
			c->chosen[kept++] = c->chosen[i];
		}
	c->nr_chosen = kept;
	for (uint32_t i = 0; i < kept; i++) {
		const struct mp_func *fn = &cfg->funcs[c->chosen[i].func];
		restore(c, &c->chosen[i]);
		gains += c->chosen[i].gain;
		for (uint32_t b = fn->first_block; b < fn->first_block + fn->nr_blocks; b++) {
			const struct mp_block *block = &cfg->blocks[b];
			double rest = counts->block[b] - c->mine.block[b];
			c->rest.block[b] = rest > 0 ? rest : 0;
			for (uint32_t e = 0; e < block->nr_edges; e++) {
				double r = counts->edge[block->first_edge + e] -
					   c->mine.edge[block->first_edge + e];
				c->rest.edge[block->first_edge + e] = r > 0 ? r : 0;
			}
			if (zones[b] == ME_ZONE_HOT && rest < 0.5 &&
			    cfg->blocks[b].vaddr != fn->vaddr && c->mine.block[b] > 0)
				zones[b] = ME_ZONE_WARM;
		}
		fprintf(stderr, "copy %#" PRIx64 " gain %.0f (%.3f %%) bytes %u sites %u\n",
			fn->vaddr, c->chosen[i].gain, 100 * c->chosen[i].gain / all,
			c->chosen[i].bytes, c->chosen[i].nr_sites);
	}
	fprintf(stderr,
		"copies: %u, %" PRIu64 " of %" PRIu64 " hot bytes, gain %.3f %% of %.0f branches\n",
		kept, used, hot, 100 * gains / all, all);
	free(leaf);
	*out = c;
	return 0;
}

const struct mp_counts *me_copies_rest(const struct me_copies *c)
{
	return &c->rest;
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

int me_copies_add(struct me_copies *c, const struct me_layout_options *options,
		  struct me_plan *plan)
{
	const struct mp_cfg *cfg = c->cfg;
	for (uint32_t i = 0; i < c->nr_chosen; i++) {
		const struct chosen *ch = &c->chosen[i];
		const struct mp_func *fn = &cfg->funcs[ch->func];
		struct me_plan mini = {0};
		uint32_t *order = malloc((fn->nr_blocks + 1) * sizeof(*order)), nr = 0,
			 at = MP_NONE;
		struct me_plan_block *blocks;
		int rc;

		restore(c, ch);
		for (uint32_t b = fn->first_block; b < fn->first_block + fn->nr_blocks; b++)
			c->zones2[b] = c->zones[b] != ME_STAY && c->mine.block[b] > 0 ? ME_ZONE_HOT
										      : ME_STAY;
		rc = me_blocks_order(cfg, &c->mine, ch->func, c->zones2, ME_ZONE_HOT, ME_ORDER_PH,
				     0, order, &nr);
		if (rc)
			return rc;
		mini.blocks = calloc(nr + 1, sizeof(*mini.blocks));
		for (uint32_t k = 0; k < nr; k++) {
			const struct mp_block *block = &cfg->blocks[order[k]];
			double taken = 0, fall = 0;
			for (uint32_t e = block->first_edge;
			     e < block->first_edge + block->nr_edges; e++)
				*(cfg->edges[e].kind == MP_EDGE_FALL ? &fall : &taken) +=
					c->mine.edge[e];
			mini.blocks[k] = (struct me_plan_block){
				.block = order[k],
				.zone = ME_ZONE_HOT,
				.why = ME_WHY_FLOW,
				.favour_fall = block->term == MP_TERM_COND && fall > taken,
				.align_log2 = block->flags & MP_BLOCK_ENTRY ? 4 : 0};
		}
		mini.nr_blocks = nr;
		if (!options->no_tails) {
			rc = me_tails_add(cfg, &c->mine, &mini);
			if (rc)
				return rc;
		}
		if (options->line_log2) {
			rc = me_lines_keep(cfg, &c->mine, options->line_log2, &mini);
			if (rc)
				return rc;
		}
		for (uint32_t k = 0; k < mini.nr_blocks; k++) {
			mini.blocks[k].second = mini.blocks[k].clone ? 2 : 1;
			mini.blocks[k].clone = 1;
		}
		for (uint32_t k = 0; k < plan->nr_blocks; k++)
			if (plan->blocks[k].zone == ME_ZONE_HOT &&
			    cfg->blocks[plan->blocks[k].block].func == ch->func)
				at = k + 1;
		if (at != MP_NONE) {
			blocks = malloc((plan->nr_blocks + mini.nr_blocks + 1) * sizeof(*blocks));
			memcpy(blocks, plan->blocks, at * sizeof(*blocks));
			memcpy(blocks + at, mini.blocks, mini.nr_blocks * sizeof(*blocks));
			memcpy(blocks + at + mini.nr_blocks, plan->blocks + at,
			       (plan->nr_blocks - at) * sizeof(*blocks));
			free(plan->blocks);
			plan->blocks = blocks;
			plan->nr_blocks += mini.nr_blocks;
			plan->seconds = realloc(plan->seconds, (plan->nr_seconds + ch->nr_sites) *
								       sizeof(uint64_t));
			memcpy(plan->seconds + plan->nr_seconds, ch->sites,
			       ch->nr_sites * sizeof(uint64_t));
			plan->nr_seconds += ch->nr_sites;
		}
		free(mini.blocks);
		free(order);
	}
	if (plan->nr_seconds)
		qsort(plan->seconds, plan->nr_seconds, sizeof(uint64_t), by_address);
	return 0;
}
