// SPDX-License-Identifier: Apache-2.0
/*
 * test_edge_table - the table of counted edges: written and read back, and damaged or hostile
 * input refused.
 */
#include "libprof/note/edge_table.h"

#include <xxhash.h>

#include "libprof/base/varint.h"
#include "tests/unit/suite.h"
#include "tests/support/tiny_elf.h"

#define NONE MP_NONE

/* Two functions: an if in a loop, and one block whose address and counters descend. */
static const struct mp_counted_func funcs[] = {{0, 4, 0, 7}, {4, 0, 7, 0}, {4, 1, 7, 2}};
static const struct mp_counted_block blocks[] = {
	{0x401000, 16, 14}, {0x401010, 7, 7}, {0x401400, 5, 0}, {0x400100, 0, 0}, {0xfff, 200, 150},
};
static const struct mp_counted_edge edges[] = {
	{NONE, 0, 3, MP_EDGE_OUTSIDE, false}, {0, 1, NONE, MP_EDGE_FALL, false},
	{0, 2, 4, MP_EDGE_TAKEN, true},	      {1, 3, NONE, MP_EDGE_JUMP, false},
	{2, 3, 5, MP_EDGE_TABLE, false},      {3, 0, 0, MP_EDGE_JUMP, false},
	{3, NONE, 1, MP_EDGE_OUTSIDE, true},  {NONE, 4, NONE, MP_EDGE_OUTSIDE, false},
	{4, NONE, 2, MP_EDGE_OUTSIDE, false},
};

static const struct mp_edge_table sample = {
	.funcs = (struct mp_counted_func *)funcs,
	.nr_funcs = 3,
	.blocks = (struct mp_counted_block *)blocks,
	.nr_blocks = 5,
	.edges = (struct mp_counted_edge *)edges,
	.nr_edges = 9,
	.nr_counters = 6,
};

/* A copy that a test may change. */
struct spoilt {
	struct mp_edge_table table;
	struct mp_counted_func funcs[3];
	struct mp_counted_block blocks[5];
	struct mp_counted_edge edges[9];
};

static struct mp_edge_table *spoil(struct spoilt *s)
{
	s->table = sample;
	memcpy(s->funcs, funcs, sizeof(funcs));
	memcpy(s->blocks, blocks, sizeof(blocks));
	memcpy(s->edges, edges, sizeof(edges));
	s->table.funcs = s->funcs;
	s->table.blocks = s->blocks;
	s->table.edges = s->edges;
	return &s->table;
}

static int read_named(const char *name, uint32_t type, const void *data, size_t size,
		      unsigned int need, struct mp_edge_table **out, struct mp_err *err)
{
	struct tiny_section sec = {.name = name, .type = type, .data = data, .size = size};
	struct mp_elf *elf = NULL;
	size_t elf_size;
	AUTO_FREE uint8_t *bytes = tiny_elf_build(&sec, 1, NULL, 0, &elf_size);
	int ret;

	ck_assert_int_eq(mp_elf_open_memory("tiny", bytes, elf_size, need, &elf, err), 0);
	ret = mp_edge_table_read(elf, out, err);
	mp_elf_close(elf);
	return ret;
}

static int read_section(const void *data, size_t size, struct mp_edge_table **out)
{
	struct mp_err err = {{0}};
	int ret =
		read_named(MP_EDGE_TABLE_SECTION, SHT_PROGBITS, data, size, MP_ELF_ALL, out, &err);

	if (ret) {
		ck_assert_ptr_null(*out);
		ck_assert_ptr_nonnull(strstr(err.msg, "tiny: "));
	}
	return ret;
}

static void assert_same(const struct mp_edge_table *a, const struct mp_edge_table *b)
{
	ck_assert_uint_eq(a->nr_funcs, b->nr_funcs);
	ck_assert_uint_eq(a->nr_blocks, b->nr_blocks);
	ck_assert_uint_eq(a->nr_edges, b->nr_edges);
	ck_assert_uint_eq(a->nr_counters, b->nr_counters);
	if (a->nr_funcs)
		ck_assert_mem_eq(a->funcs, b->funcs, a->nr_funcs * sizeof(*a->funcs));
	for (uint32_t i = 0; i < a->nr_blocks; i++) {
		ck_assert_uint_eq(a->blocks[i].vaddr, b->blocks[i].vaddr);
		ck_assert_uint_eq(a->blocks[i].size, b->blocks[i].size);
		ck_assert_uint_eq(a->blocks[i].term_off, b->blocks[i].term_off);
	}
	for (uint32_t i = 0; i < a->nr_edges; i++) {
		ck_assert_uint_eq(a->edges[i].from, b->edges[i].from);
		ck_assert_uint_eq(a->edges[i].to, b->edges[i].to);
		ck_assert_uint_eq(a->edges[i].counter, b->edges[i].counter);
		ck_assert_uint_eq(a->edges[i].kind, b->edges[i].kind);
		ck_assert_uint_eq(a->edges[i].spare, b->edges[i].spare);
	}
}

static void assert_round_trip(const struct mp_edge_table *in)
{
	struct mp_edge_table *table = NULL;
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size;

	ck_assert_int_eq(mp_edge_table_encode(in, &bytes, &size, NULL), 0);
	ck_assert_int_eq(read_section(bytes, size, &table), 0);
	assert_same(in, table);
	ck_assert_uint_eq(table->hash, mp_edge_table_hash(bytes, size));
	mp_edge_table_free(table);
}

TEST(edge_table_survives_the_round_trip)
{
	assert_round_trip(&sample);
}

TEST(edge_table_of_nothing_is_valid)
{
	struct mp_edge_table empty = {0};

	assert_round_trip(&empty);
}

TEST(edge_table_takes_any_address_and_size)
{
	struct spoilt s;
	struct mp_edge_table *table = spoil(&s);

	s.blocks[0].vaddr = UINT64_MAX;
	s.blocks[0].size = s.blocks[0].term_off = 0;
	s.blocks[1] = (struct mp_counted_block){0, UINT32_MAX, 0};
	s.blocks[2] = (struct mp_counted_block){UINT64_MAX - UINT32_MAX, UINT32_MAX, UINT32_MAX};
	s.blocks[3].vaddr = 1ull << 63;
	assert_round_trip(table);
}

/* Twice as many edges as blocks, half of them counted, as in real functions. */
TEST(edge_table_takes_about_three_bytes_an_edge)
{
	struct mp_edge_table big = {.nr_funcs = 500, .nr_blocks = 10000, .nr_edges = 20000};
	uint8_t *bytes;
	size_t size;

	big.funcs = calloc(big.nr_funcs, sizeof(*big.funcs));
	big.blocks = calloc(big.nr_blocks, sizeof(*big.blocks));
	big.edges = calloc(big.nr_edges, sizeof(*big.edges));
	for (uint32_t f = 0; f < big.nr_funcs; f++)
		big.funcs[f] = (struct mp_counted_func){f * 20, 20, f * 40, 40};
	for (uint32_t b = 0; b < big.nr_blocks; b++)
		big.blocks[b] = (struct mp_counted_block){0x401000 + b * 18, 18, b % 3 ? 16 : 18};
	for (uint32_t e = 0; e < big.nr_edges; e++) {
		uint32_t first = e / 40 * 20, from = e / 2;

		big.edges[e] = (struct mp_counted_edge){
			.from = from,
			.to = e % 2 && from % 20 < 19 ? from + 1 : first + e * 7 % 20,
			.counter = e % 2 ? NONE : big.nr_counters++,
			.kind = e % 2 ? MP_EDGE_FALL : MP_EDGE_TAKEN,
		};
	}
	ck_assert_int_eq(mp_edge_table_encode(&big, &bytes, &size, NULL), 0);
	ck_assert_uint_lt(size, 3 * big.nr_blocks + 3 * big.nr_edges + 2 * big.nr_funcs + 100);
	free(bytes);
	assert_round_trip(&big);
	free(big.funcs);
	free(big.blocks);
	free(big.edges);
}

static void assert_refused(const struct mp_edge_table *table, int line)
{
	struct mp_err err = {{0}};
	uint8_t *bytes;
	size_t size;

	ck_assert_msg(mp_edge_table_encode(table, &bytes, &size, &err) == -EINVAL, "line %d", line);
	ck_assert_ptr_null(bytes);
	ck_assert_uint_ne(err.msg[0], 0);
}

#define REFUSED(change)                                                                            \
	do {                                                                                       \
		table = spoil(&s);                                                                 \
		change;                                                                            \
		assert_refused(table, __LINE__);                                                   \
	} while (0)

TEST(edge_table_refuses_to_write_what_does_not_fit_together)
{
	struct mp_edge_table *table;
	struct spoilt s;

	REFUSED(s.funcs[1].first_block = 3);
	REFUSED(s.funcs[2].first_edge = 6);
	REFUSED(s.funcs[2].nr_blocks = 2);
	REFUSED(s.funcs[2].nr_edges = 1);
	REFUSED(s.funcs[0].nr_edges = UINT32_MAX);
	REFUSED(table->nr_funcs = 2);
	REFUSED(table->nr_edges = 8);
	REFUSED(table->nr_counters = 5);
	REFUSED(table->nr_counters = 10);
	REFUSED(s.blocks[0].term_off = 17);
	REFUSED(s.blocks[0].vaddr = UINT64_MAX - 15);
	REFUSED(s.edges[1].to = 4);
	REFUSED(s.edges[8].from = 3);
	REFUSED(s.edges[1].kind = 4);
	REFUSED(s.edges[1].kind = MP_EDGE_OUTSIDE);
	REFUSED(s.edges[0].kind = MP_EDGE_JUMP);
	REFUSED(s.edges[0].to = NONE);
	REFUSED(s.edges[1].spare = true);
	REFUSED(s.edges[2].counter = 6);
	REFUSED(s.edges[2].counter = 5);
	/* Without a change it is valid. */
	assert_round_trip(spoil(&s));
}

TEST(edge_table_refuses_every_truncation)
{
	struct mp_edge_table *table = NULL;
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size;

	ck_assert_int_eq(mp_edge_table_encode(&sample, &bytes, &size, NULL), 0);
	for (size_t cut = 1; cut <= size; cut++)
		ck_assert_int_eq(read_section(bytes, size - cut, &table), -EBADMSG);
}

TEST(edge_table_refuses_every_flipped_bit)
{
	struct mp_edge_table *table = NULL;
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size;

	ck_assert_int_eq(mp_edge_table_encode(&sample, &bytes, &size, NULL), 0);
	for (size_t bit = 0; bit < size * 8; bit++) {
		bytes[bit / 8] ^= 1 << bit % 8;
		ck_assert_int_eq(read_section(bytes, size, &table), -EBADMSG);
		bytes[bit / 8] ^= 1 << bit % 8;
	}
}

/* Reads numbers as a table, with a valid checksum. */
static int read_numbers(const uint64_t *numbers, size_t nr)
{
	struct mp_varint_writer w = {0};
	struct mp_edge_table *table = NULL;
	uint64_t sum;
	int ret;

	for (size_t i = 0; i < nr; i++)
		mp_varint_put(&w, numbers[i]);
	sum = XXH3_64bits(w.bytes, w.size);
	mp_varint_put_bytes(&w, &sum, sizeof(sum));
	ret = read_section(w.bytes, w.size, &table);
	mp_edge_table_free(table);
	free(w.bytes);
	return ret;
}

TEST(edge_table_refuses_hostile_numbers_behind_a_good_checksum)
{
	/*
	 * Version, functions, blocks, edges, counters; a function with one block and one edge:
	 * the block's address, size, and offset of its branch; the edge's head (a loop,
	 * counted), its ends.
	 */
	static const uint64_t good[] = {1, 1, 1, 1, 1, 1, 1, 2 * 0x1000, 10, 2, 0x11, 0, 0};
	static const uint64_t values[] = {0,	     1,		 2,	     3,		 4,
					  11,	     0x0c,	 0x1c,	     0x51,	 0x91,
					  1 << 25,   1 << 26,	 UINT32_MAX, 1ull << 32, 1ull << 33,
					  INT64_MAX, 1ull << 63, UINT64_MAX};
	const size_t nr = sizeof(good) / sizeof(good[0]);
	uint64_t numbers[sizeof(good) / sizeof(good[0])];
	unsigned int nr_refused = 0;

	ck_assert_int_eq(read_numbers(good, nr), 0);
	for (size_t i = 0; i < nr; i++)
		for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
			int ret;

			memcpy(numbers, good, sizeof(good));
			numbers[i] = values[v];
			ret = read_numbers(numbers, nr);
			ck_assert(!ret || ret == -EBADMSG);
			nr_refused += ret != 0;
			/* These have only one valid value. */
			if ((i < 7 && i != 4) || i > 10)
				ck_assert_msg(!ret == (numbers[i] == good[i]), "%zu %zu", i, v);
		}
	ck_assert_uint_gt(nr_refused, nr * 10);
}

TEST(edge_table_of_a_newer_version_is_named_as_such)
{
	struct mp_edge_table *table;
	AUTO_FREE uint8_t *bytes = NULL;
	uint64_t sum;
	size_t size;

	ck_assert_int_eq(mp_edge_table_encode(&sample, &bytes, &size, NULL), 0);
	bytes[0] = 2;
	sum = XXH3_64bits(bytes, size - 8);
	memcpy(bytes + size - 8, &sum, 8);
	ck_assert_int_eq(read_named(MP_EDGE_TABLE_SECTION, SHT_PROGBITS, bytes, size, MP_ELF_ALL,
				    &table, &err),
			 -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "version 2"));
}

TEST(edge_table_absent_is_not_damaged)
{
	static const uint8_t zeros[64];
	struct mp_edge_table *table;

	ck_assert_int_eq(read_named(".comment", SHT_PROGBITS, "x", 1, MP_ELF_ALL, &table, &err),
			 -ENOENT);
	ck_assert_int_eq(read_named(MP_EDGE_TABLE_SECTION, SHT_NOBITS, zeros, sizeof(zeros),
				    MP_ELF_ALL, &table, &err),
			 -EBADMSG);
}
