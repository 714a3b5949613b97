// SPDX-License-Identifier: Apache-2.0
/*
 * edge_solve - computes the counts of edges without a counter: it removes the leaves of
 * their forest one after the other; see edge_solve.h.
 */
#include "libprof/note/edge_solve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The counters come from an untrusted file: their sums may exceed 64 bits. */
typedef __int128 wide;

/* A block of the function; the last vertex is everything outside of it. */
struct vertex {
	wide excess;	    /* known flow in less known flow out */
	uint32_t nr_open;   /* edges at this vertex without a known count */
	uint32_t open_edge; /* exclusive or of these edges: with one left, its index */
};

struct solver {
	const struct mp_edge_table *table;
	const uint64_t *counters;
	const struct mp_counted_func *func;
	struct vertex *vertices;
	uint32_t *leaves; /* vertices, except outside, that have or had one open edge */
	wide *counts;	  /* counts of the function's edges */
	struct mp_edge_counts *out;
};

static uint64_t to_count(wide v)
{
	if (v < 0)
		return 0;
	return v > UINT64_MAX ? UINT64_MAX : (uint64_t)v;
}

static void add(uint64_t *sum, uint64_t v)
{
	if (__builtin_add_overflow(*sum, v, sum))
		*sum = UINT64_MAX;
}

static struct vertex *vertex_of(const struct solver *s, uint32_t block)
{
	return &s->vertices[block == MP_NONE ? s->func->nr_blocks : block - s->func->first_block];
}

static const struct mp_counted_edge *edge_of(const struct solver *s, uint32_t e)
{
	return &s->table->edges[s->func->first_edge + e];
}

static void set_count(const struct solver *s, uint32_t e, wide count)
{
	const struct mp_counted_edge *edge = edge_of(s, e);

	s->counts[e] = count;
	vertex_of(s, edge->from)->excess -= count;
	vertex_of(s, edge->to)->excess += count;
}

/* @with_spare: spare counters are known, too. Return: number of open edges. */
static uint32_t begin(const struct solver *s, bool with_spare)
{
	uint32_t nr_open = 0;

	memset(s->vertices, 0, (s->func->nr_blocks + 1) * sizeof(*s->vertices));
	for (uint32_t e = 0; e < s->func->nr_edges; e++) {
		const struct mp_counted_edge *edge = edge_of(s, e);

		if (edge->counter != MP_NONE && (with_spare || !edge->spare)) {
			set_count(s, e, s->counters[edge->counter]);
			continue;
		}
		nr_open++;
		/* An edge from a block to itself counts twice here: never a leaf. */
		vertex_of(s, edge->from)->nr_open++;
		vertex_of(s, edge->from)->open_edge ^= e;
		vertex_of(s, edge->to)->nr_open++;
		vertex_of(s, edge->to)->open_edge ^= e;
	}
	return nr_open;
}

/*
 * @negative: negative counts become 0 and are added there; NULL: they stay. Return: edges
 * that stay open.
 */
static uint32_t take_leaves(const struct solver *s, uint32_t nr_open, uint64_t *negative)
{
	const struct vertex *outside = &s->vertices[s->func->nr_blocks];
	uint32_t nr_leaves = 0;

	for (uint32_t v = 0; v < s->func->nr_blocks; v++)
		if (s->vertices[v].nr_open == 1)
			s->leaves[nr_leaves++] = v;
	for (uint32_t i = 0; i < nr_leaves; i++) {
		struct vertex *leaf = &s->vertices[s->leaves[i]], *other;
		const struct mp_counted_edge *edge;
		uint32_t e = leaf->open_edge;
		bool goes_out;
		wide count;

		/* The edge joined two leaves, and the other one was handled first. */
		if (!leaf->nr_open)
			continue;
		edge = edge_of(s, e);
		goes_out = vertex_of(s, edge->from) == leaf;
		other = vertex_of(s, goes_out ? edge->to : edge->from);
		count = goes_out ? leaf->excess : -leaf->excess;
		if (negative && count < 0) {
			add(negative, to_count(-count));
			count = 0;
		}
		set_count(s, e, count);
		nr_open--;
		leaf->nr_open--;
		other->nr_open--;
		other->open_edge ^= e;
		if (other != outside && other->nr_open == 1)
			s->leaves[nr_leaves++] = (uint32_t)(other - s->vertices);
	}
	return nr_open;
}

/*
 * Compares spare counters with the counts that follow from the other counters. Return:
 * false if there is a cycle.
 */
static bool check_spare(const struct solver *s)
{
	struct mp_edge_discrepancy *d = &s->out->discrepancy;
	bool any = false;

	for (uint32_t e = 0; e < s->func->nr_edges && !any; e++)
		any = edge_of(s, e)->spare;
	if (!any)
		return true;
	if (take_leaves(s, begin(s, false), NULL))
		return false;
	for (uint32_t e = 0; e < s->func->nr_edges; e++) {
		const struct mp_counted_edge *edge = edge_of(s, e);
		wide counted, off;

		if (!edge->spare)
			continue;
		counted = s->counters[edge->counter];
		off = s->counts[e] - counted;
		add(&d->spare, to_count(counted));
		add(&d->missed, to_count(off < 0 ? -off : off));
	}
	return true;
}

static bool has_run(const struct solver *s)
{
	for (uint32_t e = 0; e < s->func->nr_edges; e++) {
		uint32_t counter = edge_of(s, e)->counter;

		if (counter != MP_NONE && s->counters[counter])
			return true;
	}
	return false;
}

/* Return: false if there is a cycle. */
static bool solve(const struct solver *s)
{
	struct mp_edge_discrepancy *d = &s->out->discrepancy;
	bool unequal = false;

	if (!check_spare(s) || take_leaves(s, begin(s, true), &d->negative))
		return false;
	for (uint32_t e = 0; e < s->func->nr_edges; e++) {
		uint64_t count = to_count(s->counts[e]);
		uint32_t to = edge_of(s, e)->to;

		s->out->edge[s->func->first_edge + e] = count;
		add(&d->total, count);
		if (to != MP_NONE)
			add(&s->out->block[to], count);
	}
	for (uint32_t v = 0; v < s->func->nr_blocks && !unequal; v++)
		unequal = s->vertices[v].excess != 0;
	d->nr_ran += has_run(s);
	d->nr_unequal += unequal;
	return true;
}

int mp_edge_solve(const struct mp_edge_table *table, const uint64_t *counters,
		  struct mp_edge_counts *out, struct mp_err *err)
{
	struct solver s = {.table = table, .counters = counters, .out = out};
	uint32_t max_blocks = 0, max_edges = 0;
	int ret = -ENOMEM;

	memset(out, 0, sizeof(*out));
	for (uint32_t f = 0; f < table->nr_funcs; f++) {
		const struct mp_counted_func *func = &table->funcs[f];

		max_blocks = func->nr_blocks > max_blocks ? func->nr_blocks : max_blocks;
		max_edges = func->nr_edges > max_edges ? func->nr_edges : max_edges;
	}
	s.vertices = calloc((size_t)max_blocks + 1, sizeof(*s.vertices));
	s.leaves = calloc((size_t)max_blocks + 1, sizeof(*s.leaves));
	s.counts = calloc((size_t)max_edges + 1, sizeof(*s.counts));
	out->edge = calloc((size_t)table->nr_edges + 1, sizeof(*out->edge));
	out->block = calloc((size_t)table->nr_blocks + 1, sizeof(*out->block));
	if (!s.vertices || !s.leaves || !s.counts || !out->edge || !out->block)
		goto out;
	ret = 0;
	for (uint32_t f = 0; f < table->nr_funcs && !ret; f++) {
		s.func = &table->funcs[f];
		if (!solve(&s))
			ret = -EBADMSG;
	}
out:
	free(s.vertices);
	free(s.leaves);
	free(s.counts);
	if (ret)
		mp_edge_counts_fini(out);
	if (ret == -EBADMSG)
		return mp_err_set(err, EBADMSG, "edge table: edges without a counter form a cycle");
	return ret ? mp_err_set(err, ENOMEM, "edge table: out of memory") : 0;
}

void mp_edge_counts_fini(struct mp_edge_counts *counts)
{
	free(counts->edge);
	free(counts->block);
	counts->edge = counts->block = NULL;
}
