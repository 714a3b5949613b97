// SPDX-License-Identifier: Apache-2.0
/*
 * test_edge_solve - computes all counts from some: random walks through random graphs, complete
 * and broken off.
 */
#include "libprof/note/edge_solve.h"

#include "tests/unit/suite.h"

#define NONE MP_NONE
#define OUT  MP_EDGE_OUTSIDE

/* ---- random ones ----------------------------------------------------------------------------- */

static uint64_t seed;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 33) % n);
}

struct graph {
	struct mp_edge_table table;
	struct mp_counted_func funcs[4];
	struct mp_counted_block blocks[200];
	struct mp_counted_edge edges[1000];
	uint64_t true_edge[1000], true_block[200], counters[1000];
};

/* Some edges are parallel, some blocks are their own successors, some cannot be reached. */
static void make_func(struct graph *g, struct mp_counted_func *func, uint32_t nr_blocks)
{
	struct mp_edge_table *t = &g->table;
	uint32_t first = t->nr_blocks, nr_edges = nr_blocks + below(2 * nr_blocks);

	*func = (struct mp_counted_func){first, nr_blocks, t->nr_edges, 0};
	t->nr_blocks += nr_blocks;
	t->edges[t->nr_edges++] = (struct mp_counted_edge){NONE, first, NONE, OUT, false};
	/* Each block has a successor, and the last one an exit, so that walks end. */
	for (uint32_t b = 0; b + 1 < nr_blocks; b++)
		t->edges[t->nr_edges++] = (struct mp_counted_edge){first + b, first + b + 1, NONE,
								   MP_EDGE_FALL, false};
	t->edges[t->nr_edges++] =
		(struct mp_counted_edge){first + nr_blocks - 1, NONE, NONE, OUT, false};
	for (uint32_t i = 0; i < nr_edges; i++) {
		struct mp_counted_edge edge = {first + below(nr_blocks), first + below(nr_blocks),
					       NONE, MP_EDGE_TAKEN, false};

		if (!below(8)) {
			edge.to = NONE;
			edge.kind = OUT;
		} else if (!below(16)) {
			edge.from = NONE;
			edge.kind = OUT;
		}
		t->edges[t->nr_edges++] = edge;
	}
	func->nr_edges = t->nr_edges - func->first_edge;
}

/* Return: the next edge of a walk at @block; NONE: the walk begins. */
static uint32_t choose(const struct graph *g, const struct mp_counted_func *func, uint32_t block)
{
	uint32_t end = func->first_edge + func->nr_edges, nr = 0, chosen = 0;

	for (uint32_t e = func->first_edge; e < end; e++)
		if (g->table.edges[e].from == block && !below(++nr))
			chosen = e;
	ck_assert_uint_gt(nr, 0);
	return chosen;
}

/*
 * @break_one_in: one in so many walks ends in the middle; 0: none. Return: number of broken
 * walks.
 */
static unsigned int walk(struct graph *g, const struct mp_counted_func *func, unsigned int nr_walks,
			 unsigned int break_one_in)
{
	unsigned int nr_broken = 0;

	for (unsigned int i = 0; i < nr_walks; i++) {
		uint32_t block = NONE;

		do {
			uint32_t e = choose(g, func, block);

			block = g->table.edges[e].to;
			g->true_edge[e]++;
			if (block == NONE)
				break;
			g->true_block[block]++;
			if (break_one_in && !below(break_one_in)) {
				nr_broken++;
				break;
			}
		} while (true);
	}
	return nr_broken;
}

static uint32_t root_of(uint32_t *parent, uint32_t v)
{
	while (parent[v] != v)
		v = parent[v];
	return v;
}

/*
 * Puts counters on the edges outside of a random spanning tree, and on one in @spare_one_in
 * tree edges.
 */
static void put_counters(struct graph *g, const struct mp_counted_func *func,
			 unsigned int spare_one_in)
{
	uint32_t parent[201], order[1000];

	for (uint32_t v = 0; v <= func->nr_blocks; v++)
		parent[v] = v;
	for (uint32_t i = 0; i < func->nr_edges; i++) {
		uint32_t j = below(i + 1);

		order[i] = order[j];
		order[j] = func->first_edge + i;
	}
	for (uint32_t i = 0; i < func->nr_edges; i++) {
		struct mp_counted_edge *edge = &g->table.edges[order[i]];
		uint32_t outside = func->nr_blocks, from, to;

		from = root_of(parent,
			       edge->from == NONE ? outside : edge->from - func->first_block);
		to = root_of(parent, edge->to == NONE ? outside : edge->to - func->first_block);
		parent[from] = to;
		if (from != to) {
			if (!spare_one_in || below(spare_one_in))
				continue;
			edge->spare = true;
		}
		edge->counter = g->table.nr_counters++;
		g->counters[edge->counter] = g->true_edge[order[i]];
	}
}

static struct graph *make_graph(uint64_t s)
{
	struct graph *g = calloc(1, sizeof(*g));

	seed = s * 7919 + 1;
	g->table.funcs = g->funcs;
	g->table.blocks = g->blocks;
	g->table.edges = g->edges;
	g->table.nr_funcs = 1 + below(4);
	for (uint32_t f = 0; f < g->table.nr_funcs; f++)
		make_func(g, &g->funcs[f], 1 + below(s % 10 ? 12 : 50));
	return g;
}

TEST(edge_solve_finds_all_counts_of_random_walks)
{
	for (uint64_t s = 0; s < 600; s++) {
		AUTO_FREE struct graph *g = make_graph(s);
		AUTO(mp_edge_counts_fini) struct mp_edge_counts counts = {0};
		uint32_t nr_ran = 0;

		for (uint32_t f = 0; f < g->table.nr_funcs; f++) {
			unsigned int nr_walks = below(4) * 25;

			walk(g, &g->funcs[f], nr_walks, 0);
			put_counters(g, &g->funcs[f], s % 3 ? 0 : 4);
			nr_ran += nr_walks > 0;
		}
		ck_assert_int_eq(mp_edge_solve(&g->table, g->counters, &counts, NULL), 0);
		for (uint32_t e = 0; e < g->table.nr_edges; e++)
			ck_assert_uint_eq(counts.edge[e], g->true_edge[e]);
		for (uint32_t b = 0; b < g->table.nr_blocks; b++)
			ck_assert_uint_eq(counts.block[b], g->true_block[b]);
		/* Every cycle through the outside has at least one counter. */
		ck_assert_uint_eq(counts.discrepancy.nr_ran, nr_ran);
		ck_assert_uint_eq(counts.discrepancy.nr_unequal, 0);
		ck_assert_uint_eq(counts.discrepancy.missed, 0);
		ck_assert_uint_eq(counts.discrepancy.negative, 0);
	}
}

/* If every edge is counted, every broken walk is noticed, and all counts are right. */
TEST(edge_solve_sees_walks_that_break_off)
{
	unsigned int nr_broken = 0;

	for (uint64_t s = 0; s < 300; s++) {
		AUTO_FREE struct graph *g = make_graph(s);
		AUTO(mp_edge_counts_fini) struct mp_edge_counts counts = {0};
		unsigned int broken;

		broken = walk(g, &g->funcs[0], 100, 50);
		for (uint32_t f = 0; f < g->table.nr_funcs; f++)
			put_counters(g, &g->funcs[f], 1);
		ck_assert_int_eq(mp_edge_solve(&g->table, g->counters, &counts, NULL), 0);
		for (uint32_t e = 0; e < g->table.nr_edges; e++)
			ck_assert_uint_eq(counts.edge[e], g->true_edge[e]);
		ck_assert_uint_eq(counts.discrepancy.nr_unequal, broken > 0);
		if (!broken)
			ck_assert_uint_eq(counts.discrepancy.missed, 0);
		nr_broken += broken > 0;
	}
	ck_assert_uint_gt(nr_broken, 50);
}

/* ---- small ones ------------------------------------------------------------------------------ */

#define TABLE(nr_block, edge, nr_counter)                                                          \
	(struct mp_edge_table)                                                                     \
	{                                                                                          \
		.funcs =                                                                           \
			&(struct mp_counted_func){0, nr_block, 0, sizeof(edge) / sizeof(edge[0])}, \
		.nr_funcs = 1, .blocks = (struct mp_counted_block[4]){{0}}, .nr_blocks = nr_block, \
		.edges = edge, .nr_edges = sizeof(edge) / sizeof(edge[0]),                         \
		.nr_counters = nr_counter                                                          \
	}

/* 100 enter and 10 never leave: counts of blocks follow the entry, not the exit. */
TEST(edge_solve_reports_how_much_is_missed)
{
	struct mp_counted_edge edges[] = {
		{NONE, 0, 0, OUT, false},
		{0, 1, NONE, MP_EDGE_FALL, false},
		{1, 2, NONE, MP_EDGE_FALL, false},
		{2, NONE, 1, OUT, true},
	};
	struct mp_edge_table table = TABLE(3, edges, 2);
	struct mp_edge_counts counts;

	ck_assert_int_eq(mp_edge_solve(&table, (uint64_t[]){100, 90}, &counts, NULL), 0);
	ck_assert_uint_eq(counts.edge[0], 100);
	ck_assert_uint_eq(counts.edge[3], 90);
	ck_assert_uint_eq(counts.block[0], 100);
	ck_assert_uint_eq(counts.discrepancy.nr_ran, 1);
	ck_assert_uint_eq(counts.discrepancy.nr_unequal, 1);
	ck_assert_uint_eq(counts.discrepancy.spare, 90);
	ck_assert_uint_eq(counts.discrepancy.missed, 10);
	ck_assert_uint_eq(counts.discrepancy.negative, 0);
	mp_edge_counts_fini(&counts);
	ck_assert_int_eq(mp_edge_solve(&table, (uint64_t[]){100, 100}, &counts, NULL), 0);
	ck_assert_uint_eq(counts.edge[1], 100);
	ck_assert_uint_eq(counts.edge[2], 100);
	ck_assert_uint_eq(counts.discrepancy.nr_unequal, 0);
	ck_assert_uint_eq(counts.discrepancy.missed, 0);
	ck_assert_uint_eq(counts.discrepancy.total, 400);
	mp_edge_counts_fini(&counts);
	ck_assert_int_eq(mp_edge_solve(&table, (uint64_t[]){0, 0}, &counts, NULL), 0);
	ck_assert_uint_eq(counts.discrepancy.nr_ran, 0);
	mp_edge_counts_fini(&counts);
}

TEST(edge_solve_makes_negative_counts_zero)
{
	/* More leaves the first block one way than enters it. */
	struct mp_counted_edge edges[] = {
		{NONE, 0, 0, OUT, false},	   {0, 1, 1, MP_EDGE_TAKEN, false},
		{0, 2, NONE, MP_EDGE_FALL, false}, {1, NONE, 2, OUT, false},
		{2, NONE, NONE, OUT, false},
	};
	struct mp_edge_table table = TABLE(3, edges, 3);
	AUTO(mp_edge_counts_fini) struct mp_edge_counts counts = {0};

	ck_assert_int_eq(mp_edge_solve(&table, (uint64_t[]){5, 7, 7}, &counts, NULL), 0);
	ck_assert_uint_eq(counts.edge[2], 0);
	ck_assert_uint_eq(counts.edge[4], 0);
	ck_assert_uint_eq(counts.block[2], 0);
	ck_assert_uint_eq(counts.discrepancy.negative, 2);
	ck_assert_uint_eq(counts.discrepancy.nr_unequal, 1);
}

TEST(edge_solve_survives_any_counters)
{
	struct mp_counted_edge edges[] = {
		{NONE, 0, 0, OUT, false},	{0, 1, 1, MP_EDGE_TAKEN, false},
		{0, 1, 2, MP_EDGE_FALL, false}, {1, 0, NONE, MP_EDGE_JUMP, false},
		{0, NONE, NONE, OUT, false},
	};
	struct mp_edge_table table = TABLE(2, edges, 3);
	uint64_t counters[] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
	AUTO(mp_edge_counts_fini) struct mp_edge_counts counts = {0};

	ck_assert_int_eq(mp_edge_solve(&table, counters, &counts, NULL), 0);
	/* The exact value would be twice as much. */
	ck_assert_uint_eq(counts.edge[3], UINT64_MAX);
	ck_assert_uint_eq(counts.edge[4], UINT64_MAX);
	ck_assert_uint_eq(counts.block[1], UINT64_MAX);
	ck_assert_uint_eq(counts.discrepancy.total, UINT64_MAX);
}

TEST(edge_solve_refuses_circles_without_a_counter)
{
	struct mp_counted_edge circle[] = {
		{NONE, 0, 0, OUT, false},
		{0, 1, NONE, MP_EDGE_FALL, false},
		{1, 0, NONE, MP_EDGE_JUMP, false},
		{1, NONE, 1, OUT, false},
	};
	struct mp_counted_edge loop[] = {
		{NONE, 0, 0, OUT, false},
		{0, 0, NONE, MP_EDGE_TAKEN, false},
		{0, NONE, 1, OUT, false},
	};
	struct mp_counted_edge through_outside[] = {
		{NONE, 0, NONE, OUT, false},
		{0, NONE, NONE, OUT, false},
	};
	struct mp_edge_table table = TABLE(2, circle, 2);
	AUTO(mp_edge_counts_fini) struct mp_edge_counts counts = {0};
	uint64_t counters[2] = {1, 1};

	ck_assert_int_eq(mp_edge_solve(&table, counters, &counts, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "cycle"));
	ck_assert_ptr_null(counts.edge);
	table = TABLE(1, loop, 2);
	ck_assert_int_eq(mp_edge_solve(&table, counters, &counts, &err), -EBADMSG);
	table = TABLE(1, through_outside, 0);
	ck_assert_int_eq(mp_edge_solve(&table, counters, &counts, &err), -EBADMSG);
	/* A spare counter cannot replace a missing one. */
	loop[1].counter = 0;
	loop[0].counter = 1;
	loop[1].spare = true;
	loop[2].counter = NONE;
	table = TABLE(1, loop, 2);
	ck_assert_int_eq(mp_edge_solve(&table, counters, &counts, &err), -EBADMSG);
	loop[1].spare = false;
	ck_assert_int_eq(mp_edge_solve(&table, counters, &counts, &err), 0);
}

TEST(edge_solve_of_nothing_is_nothing)
{
	struct mp_edge_table table = {0};
	AUTO(mp_edge_counts_fini) struct mp_edge_counts counts = {0};

	ck_assert_int_eq(mp_edge_solve(&table, NULL, &counts, NULL), 0);
	ck_assert_uint_eq(counts.discrepancy.total, 0);
}
