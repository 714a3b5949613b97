// SPDX-License-Identifier: Apache-2.0
/*
 * test_loops - loops are found outermost first, whatever their entries; distances are those of the
 * shortest way in either version. Compared with a search without Dijkstra's and Tarjan's
 * algorithms, on graphs drawn at random.
 */
#include "tests/unit/suite.h"

#include "editor/instrument/loop_distance.h"
#include "editor/base/loops.h"
#include "tests/support/toycfg.h"

enum {
	ENTRY,
	OUTER,
	INNER,
	BACK,
	END,
	NR
};

/* entry; outer { inner { inner }; back }; end */
static void make_nest(struct toy *toy)
{
	toy_init(toy);
	toy_func(toy, "nest");
	toy_blocks(toy, {MP_TERM_FALL, 1}, {MP_TERM_FALL, 10}, {MP_TERM_COND, 100},
		   {MP_TERM_COND, 10}, {MP_TERM_RET, 1});
	toy_edges(toy, {ENTRY, OUTER, MP_EDGE_FALL, 1}, {OUTER, INNER, MP_EDGE_FALL, 10},
		  {INNER, BACK, MP_EDGE_FALL, 10}, {INNER, INNER, MP_EDGE_TAKEN, 90},
		  {BACK, END, MP_EDGE_FALL, 1}, {BACK, OUTER, MP_EDGE_TAKEN, 9});
	toy_finish(toy);
}

TEST(inner_loops_follow_their_outer_loop)
{
	static struct toy toy;
	AUTO(me_loops_fini) struct me_loops loops = {0};

	make_nest(&toy);
	ck_assert_int_eq(me_loops_find(&toy.cfg, 0, &loops), 0);
	ck_assert_uint_eq(loops.nr, 2);
	ck_assert_uint_eq(loops.list[0].parent, MP_NONE);
	ck_assert_uint_eq(loops.list[0].header, OUTER);
	ck_assert_uint_eq(loops.list[0].nr_blocks, 3);
	ck_assert_uint_eq(loops.list[1].parent, 0);
	ck_assert_uint_eq(loops.list[1].header, INNER);
	ck_assert_uint_eq(loops.of_block[ENTRY], MP_NONE);
	ck_assert_uint_eq(loops.of_block[OUTER], 0);
	ck_assert_uint_eq(loops.of_block[INNER], 1);
	ck_assert_uint_eq(loops.of_block[BACK], 0);
	ck_assert(me_loops_holds(&loops, 0, 1));
	ck_assert(!me_loops_holds(&loops, 1, 0));
}

TEST(distances_are_those_of_the_shortest_way)
{
	static struct toy toy;
	struct me_plan_block blocks[NR] = {{.block = ENTRY},
					   {.block = OUTER},
					   {.block = BACK},
					   {.block = INNER},
					   {.block = END}};
	struct me_plan plan = {.blocks = blocks, .nr_blocks = NR};
	AUTO(me_distances_fini) struct me_distances d = {0};
	uint32_t from[2 * NR];

	make_nest(&toy);
	ck_assert_int_eq(me_distances_init(&d, &toy.cfg, 0, &plan), 0);
	me_distances_from(&d, OUTER, from);
	/* Version A has no jump between these blocks, version B one more. */
	ck_assert_uint_eq(from[INNER], 4);
	ck_assert_uint_eq(from[OUTER], 12);
	ck_assert_uint_eq(from[ENTRY], ME_LOOP_FAR);
	me_distances_from(&d, INNER, from);
	ck_assert_uint_eq(from[INNER], 4);
	me_distances_from(&d, END, from);
	ck_assert_uint_eq(from[END], ME_LOOP_FAR);
}

#define DRAWN 12

/* Is there a way of at least one edge? */
static void reach(const struct toy *toy, bool way[DRAWN][DRAWN])
{
	for (uint32_t e = 0; e < toy->cfg.nr_edges; e++)
		way[toy->edges[e].from][toy->edges[e].to] = true;
	for (int k = 0; k < DRAWN; k++)
		for (int i = 0; i < DRAWN; i++)
			for (int j = 0; j < DRAWN; j++)
				way[i][j] |= way[i][k] && way[k][j];
}

TEST(a_block_is_in_a_loop_if_it_reaches_itself)
{
	static struct toy toy;
	uint32_t random = 1;

	for (int run = 0; run < 2000; run++) {
		bool way[DRAWN][DRAWN] = {{false}};
		AUTO(me_loops_fini) struct me_loops loops = {0};

		toy_start(&toy, "drawn");
		for (int b = 0; b < DRAWN; b++)
			toy_block(&toy, MP_TERM_COND, 1);
		for (uint32_t b = 0; b < DRAWN; b++)
			for (int e = 0; e < 2; e++) {
				random = random * 1664525 + 1013904223;
				if (random >> 30)
					toy_edge(&toy, b, (random >> 16) % DRAWN,
						 e ? MP_EDGE_TAKEN : MP_EDGE_FALL, 1);
			}
		toy_finish(&toy);
		reach(&toy, way);
		ck_assert_int_eq(me_loops_find(&toy.cfg, 0, &loops), 0);
		for (uint32_t b = 0; b < DRAWN; b++) {
			ck_assert_int_eq(loops.of_block[b] != MP_NONE, way[b][b]);
			/* Blocks that reach each other share their outermost loop. */
			for (uint32_t l = 0; way[b][b] && l < loops.nr; l++)
				for (uint32_t k = 0; loops.list[l].parent == MP_NONE && k < DRAWN;
				     k++)
					if (way[b][k] && way[k][b])
						ck_assert_int_eq(me_loops_holds(&loops, l,
										loops.of_block[b]),
								 me_loops_holds(&loops, l,
										loops.of_block[k]));
		}
		for (uint32_t l = 0; l < loops.nr; l++)
			ck_assert(loops.list[l].parent == MP_NONE || loops.list[l].parent < l);
	}
}
