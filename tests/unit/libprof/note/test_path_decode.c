// SPDX-License-Identifier: Apache-2.0
/*
 * test_path_decode - from numbers back to paths: every path of many random graphs, at every
 * block, and invalid numbers.
 */
#include "libprof/note/path_decode.h"
#include "libprof/note/path_key.h"

#include "tests/unit/suite.h"

#define MAX_BLOCKS 64
#define MAX_EDGES  512

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
	uint64_t x;

	/* splitmix64 */
	seed += 0x9e3779b97f4a7c15;
	x = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (uint32_t)((x ^ x >> 31) >> 32) % below;
}

/*
 * A function whose blocks are numbered in the order of a walk from its entry. Edges that carry
 * a number lead to blocks with higher numbers. At a merge, an edge's value is the number of
 * path prefixes over the edges before it.
 */
struct graph {
	struct mp_path_table table;
	struct mp_path_func func;
	struct mp_path_block blocks[MAX_BLOCKS];
	struct mp_path_edge edges[MAX_EDGES];
	uint32_t by_vaddr[MAX_BLOCKS];
	uint64_t nr_prefixes[MAX_BLOCKS];
};

static void add_edge(struct graph *g, uint32_t from, uint32_t to, bool carries)
{
	bool starts = g->blocks[to].starts;
	struct mp_path_edge *edge = &g->edges[g->table.nr_edges++];

	carries = carries && !starts;
	*edge = (struct mp_path_edge){
		.from = from,
		.to = to,
		.kind = from == MP_NONE ? MP_PATH_EDGE_OUTSIDE : draw(4),
		.carries = carries,
		.value = starts ? 0 : g->nr_prefixes[to],
	};
	g->nr_prefixes[to] += starts ? 0 : carries ? g->nr_prefixes[from] : 1;
}

static void make_graph(struct graph *g, uint32_t nr_blocks, uint32_t max_ins)
{
	static const uint8_t regs[] = {0, 1, 2, 3, 5, 6, 7, 8, 15};

	memset(g, 0, sizeof(*g));
	g->table = (struct mp_path_table){.funcs = &g->func,
					  .nr_funcs = 1,
					  .blocks = g->blocks,
					  .nr_blocks = nr_blocks,
					  .edges = g->edges,
					  .by_vaddr = g->by_vaddr};
	for (uint32_t b = 0; b < nr_blocks; b++) {
		struct mp_path_block *block = &g->blocks[b];
		uint32_t nr_in = 1 + draw(max_ins);

		*block = (struct mp_path_block){
			.vaddr = 0x1000 + 0x20 * b,
			.size = 1 + draw(0x20),
			.reg = regs[draw(sizeof(regs))],
			.shift = draw(3) ? 0 : draw(1000),
			.starts = !draw(8),
		};
		if (block->starts && draw(2))
			*block = (struct mp_path_block){.vaddr = block->vaddr,
							.size = block->size,
							.reg = MP_NO_REGISTER,
							.starts = true};
		block->term_off = draw(block->size + 1);
		g->by_vaddr[b] = b;
		g->nr_prefixes[b] = block->starts;
		if (!b || !draw(10))
			add_edge(g, MP_NONE, b, false);
		for (uint32_t i = 0; b && i < nr_in; i++)
			add_edge(g, b - 1 - draw(b < 5 ? b : 5), b, draw(6));
		/* The back edge of a loop. */
		if (!draw(5))
			add_edge(g, b + draw(nr_blocks - b), b, false);
	}
	g->func = (struct mp_path_func){0, nr_blocks, 0, g->table.nr_edges};
	g->table.nr_edges = g->func.nr_edges;
}

static struct mp_path path; /* reused for all calls */

/* The edges edges[0 .. nr) lead to @block with @number, which must decode to them. */
static void assert_decodes(const struct graph *g, uint32_t block, uint64_t number,
			   const uint32_t *edges, uint32_t nr)
{
	uint64_t reg = number + g->blocks[block].shift;

	if (g->blocks[block].reg == MP_NO_REGISTER)
		reg = seed;
	ck_assert_int_eq(mp_path_decode(&g->table, block, reg, &path), 0);
	ck_assert_uint_eq(path.block, block);
	ck_assert_uint_eq(path.nr_edges, nr);
	if (nr)
		ck_assert_mem_eq(path.edges, edges, nr * sizeof(*edges));
}

/* Tries all paths of a block, from the last edge to the first. Return: number of paths. */
static uint64_t try_all(const struct graph *g, uint32_t sampled, uint32_t at, uint64_t number,
			uint32_t *edges, uint32_t free)
{
	uint64_t nr = 0;

	if (g->blocks[at].starts) {
		assert_decodes(g, sampled, number, edges + free, MAX_BLOCKS - free);
		return 1;
	}
	for (uint32_t e = 0; e < g->table.nr_edges; e++) {
		const struct mp_path_edge *edge = &g->edges[e];

		if (edge->to != at)
			continue;
		edges[free - 1] = e;
		if (edge->carries) {
			nr += try_all(g, sampled, edge->from, number + edge->value, edges,
				      free - 1);
			continue;
		}
		assert_decodes(g, sampled, number + edge->value, edges + free - 1,
			       MAX_BLOCKS - (free - 1));
		nr++;
	}
	return nr;
}

TEST(path_decode_finds_every_path_of_small_graphs)
{
	uint32_t edges[MAX_BLOCKS];
	uint64_t nr_paths = 0;
	struct graph g;

	for (uint64_t s = 0; s < 300; s++) {
		seed = s;
		make_graph(&g, 2 + draw(9), 3);
		for (uint32_t b = 0; b < g.table.nr_blocks; b++) {
			uint64_t nr = try_all(&g, b, b, 0, edges, MAX_BLOCKS);

			/* Every number is used exactly once. */
			ck_assert_uint_eq(nr, g.nr_prefixes[b]);
			nr_paths += nr;
			if (g.blocks[b].reg == MP_NO_REGISTER)
				continue;
			ck_assert_int_eq(mp_path_decode(&g.table, b, nr + g.blocks[b].shift, &path),
					 -EINVAL);
			ck_assert_int_eq(mp_path_decode(&g.table, b, UINT64_MAX, &path), -EINVAL);
			if (g.blocks[b].shift)
				ck_assert_int_eq(mp_path_decode(&g.table, b, 0, &path), -EINVAL);
		}
	}
	ck_assert_uint_gt(nr_paths, 5000);
	mp_path_fini(&path);
}

static uint32_t draw_successor(const struct graph *g, uint32_t block)
{
	uint32_t found = MP_NONE, nr = 0;

	for (uint32_t e = 0; e < g->table.nr_edges; e++)
		if (g->edges[e].from == block && !draw(++nr))
			found = e;
	return found;
}

TEST(path_decode_follows_random_walks)
{
	uint32_t nr_steps = 0, longest = 0;
	uint32_t taken[MAX_BLOCKS];
	struct graph g;

	for (uint64_t s = 0; s < 200; s++) {
		uint64_t number = 0;
		uint32_t at = 0, nr = 0;

		seed = s << 32;
		make_graph(&g, 20 + draw(44), 3);
		/* Walk from the entry, counting like the instrumented program. */
		for (uint32_t e = 0, step = 0; e != MP_NONE && step < 1000; step++) {
			const struct mp_path_edge *edge = &g.edges[e];

			if (!edge->carries)
				number = nr = 0;
			taken[nr++] = e;
			number += edge->value;
			at = edge->to;
			if (g.blocks[at].starts)
				number = nr = 0;
			assert_decodes(&g, at, number, taken, nr);
			longest = nr > longest ? nr : longest;
			nr_steps++;
			e = draw_successor(&g, at);
		}
	}
	ck_assert_uint_gt(nr_steps, 5000);
	ck_assert_uint_gt(longest, 8);
	mp_path_fini(&path);
}

TEST(path_decode_refuses_blocks_that_are_none)
{
	struct mp_path_table empty = {0};

	ck_assert_int_eq(mp_path_decode(&empty, 0, 0, &path), -EINVAL);
	ck_assert_int_eq(mp_path_decode(&empty, MP_NONE, 0, &path), -EINVAL);
}

/* Reading refuses such a table, but decoding an unchecked one must end too. */
TEST(path_decode_ends_in_a_circle)
{
	struct mp_path_block blocks[] = {{0x1000, 4, 4, 0, false, 0, false},
					 {0x1004, 4, 2, 0, false, 0, false}};
	struct mp_path_edge edges[] = {{1, 0, MP_EDGE_TAKEN, true, 0},
				       {0, 1, MP_EDGE_FALL, true, 0}};
	struct mp_path_table table = {
		.blocks = blocks, .nr_blocks = 2, .edges = edges, .nr_edges = 2};

	ck_assert_int_eq(mp_path_decode(&table, 1, 0, &path), -EINVAL);
	mp_path_fini(&path);
}

static uint32_t key_of(const struct graph *g, uint64_t *vaddrs)
{
	uint8_t key[MP_PATH_KEY_MAX];
	uint32_t size = mp_path_key_encode(&g->table, &path, false, key);

	ck_assert_uint_le(size, sizeof(key));
	return mp_path_key_decode(key, size, vaddrs, NULL);
}

TEST(path_key_names_the_blocks_in_order)
{
	uint64_t vaddrs[MP_PATH_MAX_BLOCKS];
	struct graph g;

	for (uint64_t s = 0; s < 50; s++) {
		seed = s;
		make_graph(&g, 3 + draw(30), 3);
		for (uint32_t b = 0; b < g.table.nr_blocks; b++) {
			uint64_t number = draw((uint32_t)g.nr_prefixes[b]);
			uint32_t nr;

			ck_assert_int_eq(
				mp_path_decode(&g.table, b, number + g.blocks[b].shift, &path), 0);
			nr = key_of(&g, vaddrs);
			ck_assert_uint_eq(nr, path.nr_edges + 1);
			ck_assert_uint_eq(vaddrs[nr - 1], g.blocks[b].vaddr);
			for (uint32_t i = 0; i < path.nr_edges; i++) {
				const struct mp_path_edge *edge = &g.edges[path.edges[i]];
				uint64_t from = edge->from == MP_NONE ? 0
								      : g.blocks[edge->from].vaddr;

				ck_assert_uint_eq(vaddrs[i], from);
				ck_assert_uint_eq(vaddrs[i + 1], g.blocks[edge->to].vaddr);
			}
		}
	}
	mp_path_fini(&path);
}

/* A chain of blocks that is longer than a key: the end of the path is kept. */
TEST(path_key_forgets_what_is_far_back)
{
	enum {
		NR = 2 * MP_PATH_MAX_BLOCKS
	};
	AUTO_FREE struct mp_path_block *blocks = calloc(NR, sizeof(*blocks));
	AUTO_FREE struct mp_path_edge *edges = calloc(NR, sizeof(*edges));
	struct mp_path_table table = {
		.blocks = blocks, .nr_blocks = NR, .edges = edges, .nr_edges = NR};
	uint64_t vaddrs[MP_PATH_MAX_BLOCKS];
	uint8_t key[MP_PATH_KEY_MAX];
	uint32_t size;

	for (uint32_t b = 0; b < NR; b++) {
		/* Numbers of maximal length. */
		blocks[b].vaddr = b % 2 ? 0x1000 + b : UINT64_MAX / 2 + b;
		edges[b] = (struct mp_path_edge){b ? b - 1 : MP_NONE, b, 0, b != 0, 0};
	}
	for (uint32_t b = MP_PATH_MAX_BLOCKS - 3; b < NR; b++) {
		uint32_t nr = b + 2 < MP_PATH_MAX_BLOCKS ? b + 2 : MP_PATH_MAX_BLOCKS;

		ck_assert_int_eq(mp_path_decode(&table, b, 0, &path), 0);
		size = mp_path_key_encode(&table, &path, false, key);
		ck_assert_uint_le(size, sizeof(key));
		ck_assert_uint_eq(mp_path_key_decode(key, size, vaddrs, NULL), nr);
		for (uint32_t i = 0; i < nr && i <= b; i++)
			ck_assert_uint_eq(vaddrs[nr - 1 - i], blocks[b - i].vaddr);
		ck_assert_uint_eq(vaddrs[0] == 0, b + 2 <= MP_PATH_MAX_BLOCKS);
	}
	mp_path_fini(&path);
}

/* For a reported path, the key says how many of its last steps are complete. */
TEST(path_key_tells_which_steps_are_complete)
{
	uint64_t vaddrs[MP_PATH_MAX_BLOCKS];
	uint8_t key[MP_PATH_KEY_MAX];
	struct graph g;
	uint32_t size, nr, complete, want, nr_some = 0;

	for (uint64_t s = 0; s < 50; s++) {
		seed = s;
		make_graph(&g, 3 + draw(30), 3);
		for (uint32_t b = 0; b < g.table.nr_blocks; b++)
			g.blocks[b].fully_reported = draw(3);
		for (uint32_t b = 0; b < g.table.nr_blocks; b++) {
			ck_assert_int_eq(mp_path_decode(&g.table, b, g.blocks[b].shift, &path), 0);
			for (want = 0; want < path.nr_edges; want++) {
				uint32_t edge = path.edges[path.nr_edges - 1 - want];

				if (!g.blocks[g.edges[edge].to].fully_reported)
					break;
			}
			size = mp_path_key_encode(&g.table, &path, true, key);
			ck_assert_uint_le(size, sizeof(key));
			nr = mp_path_key_decode(key, size, vaddrs, &complete);
			ck_assert_uint_eq(nr, path.nr_edges + 1);
			ck_assert_uint_eq(vaddrs[nr - 1], g.blocks[b].vaddr);
			ck_assert_uint_eq(complete, want);
			nr_some += want > 1 && want < path.nr_edges;
			/* As a sampled path it has another key. */
			size = mp_path_key_encode(&g.table, &path, false, key);
			ck_assert_uint_eq(mp_path_key_decode(key, size, vaddrs, &complete), nr);
			ck_assert_uint_eq(complete, MP_PATH_SAMPLED);
		}
	}
	ck_assert_uint_gt(nr_some, 10);
	mp_path_fini(&path);
}

TEST(path_key_refuses_what_is_none)
{
	uint8_t key[2 * MP_PATH_MAX_BLOCKS] = {0x80, 0x20};
	uint64_t vaddrs[MP_PATH_MAX_BLOCKS];

	ck_assert_uint_eq(mp_path_key_decode(key, 0, vaddrs, NULL), 0);
	ck_assert_uint_eq(mp_path_key_decode(key, 1, vaddrs, NULL), 0);
	ck_assert_uint_eq(mp_path_key_decode(key, 2, vaddrs, NULL), 1);
	ck_assert_uint_eq(vaddrs[0], 0x1000);
	/* Reported paths: no number of steps, more steps than there are, extra bytes. */
	ck_assert_uint_eq(mp_path_key_decode((const uint8_t *)"\x02\x02\x05", 3, vaddrs, NULL), 0);
	ck_assert_uint_eq(mp_path_key_decode((const uint8_t *)"\x02\x02\x05\x01", 4, vaddrs, NULL),
			  2);
	ck_assert_uint_eq(mp_path_key_decode((const uint8_t *)"\x02\x02\x05\x02", 4, vaddrs, NULL),
			  0);
	ck_assert_uint_eq(
		mp_path_key_decode((const uint8_t *)"\x02\x02\x05\x01\x02", 5, vaddrs, NULL), 0);
	/* Only 0, 0 after 0, and back to 0. */
	ck_assert_uint_eq(mp_path_key_decode((const uint8_t *)"", 1, vaddrs, NULL), 0);
	ck_assert_uint_eq(mp_path_key_decode((const uint8_t *)"\0", 2, vaddrs, NULL), 0);
	ck_assert_uint_eq(mp_path_key_decode((const uint8_t *)"\1\1", 2, vaddrs, NULL), 0);
	ck_assert_uint_eq(mp_path_key_decode((const uint8_t *)"\0\2", 2, vaddrs, NULL), 2);
	/* A loop of one block is a path; more blocks than the limit are refused. */
	ck_assert_uint_eq(mp_path_key_decode(key, MP_PATH_MAX_BLOCKS + 1, vaddrs, NULL),
			  MP_PATH_MAX_BLOCKS);
	ck_assert_uint_eq(mp_path_key_decode(key, MP_PATH_MAX_BLOCKS + 2, vaddrs, NULL), 0);
}
