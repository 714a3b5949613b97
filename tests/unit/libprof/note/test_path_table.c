// SPDX-License-Identifier: Apache-2.0
/*
 * test_path_table - the table of path numbers: written and read back; damaged, hostile or
 * ambiguous tables refused.
 */
#include "libprof/note/path_table.h"

#include <xxhash.h>

#include "libprof/base/varint.h"
#include "tests/unit/suite.h"
#include "tests/support/tiny_elf.h"

#define NONE	MP_NONE
#define OUTSIDE MP_PATH_EDGE_OUTSIDE

/*
 * Three functions: a loop with two ways, the second of which has numbers 1 and 2; an empty
 * function; and two blocks at lower addresses, of which only one has a register.
 */
static const struct mp_path_func funcs[] = {{0, 5, 0, 9}, {5, 0, 9, 0}, {5, 2, 9, 3}};
static const struct mp_path_block blocks[] = {
	{0x401000, 16, 14, 0, true, 0, false},	 {0x401010, 7, 7, 1, false, 0, true},
	{0x401017, 5, 0, 1, false, 12345, true}, {0x401400, 8, 6, 15, false, 0, false},
	{0x401408, 0, 0, 7, false, 1, false},	 {0x400100, 9, 9, MP_NO_REGISTER, true, 0, false},
	{0x400200, 200, 150, 2, false, 0, true},
};
static const struct mp_path_edge edges[] = {
	{NONE, 0, OUTSIDE, false, 0},	    {4, 0, MP_EDGE_JUMP, false, 0},
	{0, 1, MP_EDGE_FALL, true, 0},	    {3, 1, MP_EDGE_JUMP, false, 1},
	{0, 2, MP_EDGE_TAKEN, true, 0},	    {1, 3, MP_EDGE_JUMP, true, 0},
	{2, 3, MP_EDGE_TABLE, true, 2},	    {3, 4, MP_EDGE_FALL, true, 7},
	{NONE, 4, OUTSIDE, false, 1000000}, {NONE, 5, OUTSIDE, false, 0},
	{6, 5, MP_EDGE_TAKEN, false, 0},    {5, 6, MP_EDGE_FALL, true, 0},
};

static const struct mp_path_table sample = {
	.funcs = (struct mp_path_func *)funcs,
	.nr_funcs = 3,
	.blocks = (struct mp_path_block *)blocks,
	.nr_blocks = 7,
	.edges = (struct mp_path_edge *)edges,
	.nr_edges = 12,
};

/* A copy that a test may change. */
struct spoilt {
	struct mp_path_table table;
	struct mp_path_func funcs[3];
	struct mp_path_block blocks[7];
	struct mp_path_edge edges[12];
};

static struct mp_path_table *spoil(struct spoilt *s)
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
		      unsigned int need, struct mp_path_table **out, struct mp_err *err)
{
	struct tiny_section sec = {.name = name, .type = type, .data = data, .size = size};
	struct mp_elf *elf = NULL;
	size_t elf_size;
	AUTO_FREE uint8_t *bytes = tiny_elf_build(&sec, 1, NULL, 0, &elf_size);
	int ret;

	ck_assert_int_eq(mp_elf_open_memory("tiny", bytes, elf_size, need, &elf, err), 0);
	ret = mp_path_table_read(elf, out, err);
	mp_elf_close(elf);
	return ret;
}

static int read_section(const void *data, size_t size, struct mp_path_table **out)
{
	struct mp_err err = {{0}};
	int ret =
		read_named(MP_PATH_TABLE_SECTION, SHT_PROGBITS, data, size, MP_ELF_ALL, out, &err);

	if (ret) {
		ck_assert_ptr_null(*out);
		ck_assert_ptr_nonnull(strstr(err.msg, "tiny: "));
	}
	return ret;
}

static void assert_same(const struct mp_path_table *a, const struct mp_path_table *b)
{
	ck_assert_uint_eq(a->nr_funcs, b->nr_funcs);
	ck_assert_uint_eq(a->nr_blocks, b->nr_blocks);
	ck_assert_uint_eq(a->nr_edges, b->nr_edges);
	if (a->nr_funcs)
		ck_assert_mem_eq(a->funcs, b->funcs, a->nr_funcs * sizeof(*a->funcs));
	for (uint32_t i = 0; i < a->nr_blocks; i++) {
		ck_assert_uint_eq(a->blocks[i].vaddr, b->blocks[i].vaddr);
		ck_assert_uint_eq(a->blocks[i].size, b->blocks[i].size);
		ck_assert_uint_eq(a->blocks[i].term_off, b->blocks[i].term_off);
		ck_assert_uint_eq(a->blocks[i].reg, b->blocks[i].reg);
		ck_assert_uint_eq(a->blocks[i].starts, b->blocks[i].starts);
		ck_assert_uint_eq(a->blocks[i].shift, b->blocks[i].shift);
		ck_assert_uint_eq(a->blocks[i].fully_reported, b->blocks[i].fully_reported);
	}
	for (uint32_t i = 0; i < a->nr_edges; i++) {
		ck_assert_uint_eq(a->edges[i].from, b->edges[i].from);
		ck_assert_uint_eq(a->edges[i].to, b->edges[i].to);
		ck_assert_uint_eq(a->edges[i].kind, b->edges[i].kind);
		ck_assert_uint_eq(a->edges[i].carries, b->edges[i].carries);
		ck_assert_uint_eq(a->edges[i].value, b->edges[i].value);
	}
}

static void assert_round_trip(const struct mp_path_table *in)
{
	struct mp_path_table *table = NULL;
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size;

	ck_assert_msg(!mp_path_table_encode(in, &bytes, &size, &err), "%s", err.msg);
	ck_assert_int_eq(read_section(bytes, size, &table), 0);
	assert_same(in, table);
	ck_assert_uint_eq(table->hash, mp_path_table_hash(bytes, size));
	mp_path_table_free(table);
}

TEST(path_table_survives_the_round_trip)
{
	assert_round_trip(&sample);
}

TEST(path_table_of_nothing_is_valid)
{
	struct mp_path_table empty = {0};

	assert_round_trip(&empty);
}

TEST(path_table_takes_any_address_and_number)
{
	struct spoilt s;
	struct mp_path_table *table = spoil(&s);

	s.blocks[0].vaddr = 0;
	s.blocks[0].size = UINT32_MAX;
	s.blocks[1].vaddr = 1ull << 63;
	s.blocks[2].vaddr = (1ull << 63) + UINT32_MAX;
	s.blocks[2].shift = UINT64_MAX;
	s.blocks[3] = (struct mp_path_block){
		UINT64_MAX - UINT32_MAX, UINT32_MAX, UINT32_MAX, 14, false, 1, true};
	s.blocks[4] = (struct mp_path_block){UINT64_MAX, 0, 0, 13, false, 0, false};
	s.edges[8].value = UINT64_MAX - 1;
	assert_round_trip(table);
}

TEST(path_table_that_was_read_knows_where_blocks_are)
{
	static const struct {
		uint64_t vaddr;
		uint32_t block;
	} where[] = {
		{0, NONE},	  {0x4000ff, NONE}, {0x400100, 5},    {0x400108, 5},
		{0x400109, NONE}, {0x400200, 6},    {0x4002c7, 6},    {0x4002c8, NONE},
		{0x401000, 0},	  {0x40100f, 0},    {0x401010, 1},    {0x40101b, 2},
		{0x40101c, NONE}, {0x401407, 3},    {0x401408, NONE}, {UINT64_MAX, NONE},
	};
	struct mp_path_table *table;
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size;

	ck_assert_int_eq(mp_path_table_encode(&sample, &bytes, &size, NULL), 0);
	ck_assert_int_eq(read_section(bytes, size, &table), 0);
	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++)
		ck_assert_uint_eq(mp_path_table_block_at(table, where[i].vaddr), where[i].block);
	ck_assert_uint_eq(table->registers, 1 << 0 | 1 << 1 | 1 << 15 | 1 << 7 | 1 << 2);
	mp_path_table_free(table);
}

/* Chains of diamonds, as in real functions. */
TEST(path_table_takes_about_three_bytes_an_edge)
{
	struct mp_path_table big = {.nr_funcs = 500, .nr_blocks = 10000, .nr_edges = 12500};
	uint8_t *bytes;
	size_t size;

	big.funcs = calloc(big.nr_funcs, sizeof(*big.funcs));
	big.blocks = calloc(big.nr_blocks, sizeof(*big.blocks));
	big.edges = calloc(big.nr_edges, sizeof(*big.edges));
	for (uint32_t f = 0; f < big.nr_funcs; f++)
		big.funcs[f] = (struct mp_path_func){f * 20, 20, f * 25, 25};
	for (uint32_t b = 0; b < big.nr_blocks; b++)
		big.blocks[b] = (struct mp_path_block){0x401000 + b * 18, 18, b % 3 ? 16 : 18, 0,
						       b % 4 == 0,	  0,  b % 5 == 0};
	for (uint32_t e = 0; e < big.nr_edges; e++) {
		uint32_t at = e / 5 * 4;

		big.edges[e] = (struct mp_path_edge[]){
			{at % 20 ? at - 1 : at, at, MP_EDGE_FALL, false, 0},
			{at, at + 1, MP_EDGE_FALL, true, 0},
			{at, at + 2, MP_EDGE_TAKEN, true, 0},
			{at + 1, at + 3, MP_EDGE_JUMP, true, 0},
			{at + 2, at + 3, MP_EDGE_FALL, true, 1},
		}[e % 5];
	}
	ck_assert_int_eq(mp_path_table_encode(&big, &bytes, &size, NULL), 0);
	ck_assert_uint_lt(size, 4 * big.nr_blocks + 3 * big.nr_edges + 2 * big.nr_funcs + 100);
	free(bytes);
	assert_round_trip(&big);
	free(big.funcs);
	free(big.blocks);
	free(big.edges);
}

static void assert_refused(const struct mp_path_table *table, const char *why, int line)
{
	struct mp_err err = {{0}};
	uint8_t *bytes;
	size_t size;

	ck_assert_msg(mp_path_table_encode(table, &bytes, &size, &err) == -EINVAL, "line %d", line);
	ck_assert_ptr_null(bytes);
	ck_assert_msg(strstr(err.msg, why) != NULL, "line %d: %s", line, err.msg);
}

#define REFUSED(change, why)                                                                       \
	do {                                                                                       \
		table = spoil(&s);                                                                 \
		change;                                                                            \
		assert_refused(table, why, __LINE__);                                              \
	} while (0)

TEST(path_table_refuses_to_write_what_does_not_fit_together)
{
	struct mp_path_table *table;
	struct spoilt s;

	REFUSED(s.funcs[1].first_block = 3, "function 1");
	REFUSED(s.funcs[2].first_edge = 6, "function 2");
	REFUSED(s.funcs[2].nr_blocks = 3, "function 2");
	REFUSED(s.funcs[2].nr_edges = 2, "of no function");
	REFUSED(s.funcs[0].nr_edges = UINT32_MAX, "function 0");
	REFUSED(table->nr_funcs = 2, "of no function");
	REFUSED(table->nr_edges = 11, "function 2");
	REFUSED(s.blocks[0].term_off = 17, "ends before");
	REFUSED(s.blocks[4].vaddr = UINT64_MAX; s.blocks[4].size = 1, "ends before");
	REFUSED(s.blocks[1].vaddr = 0x40100f, "lies in");
	REFUSED(s.blocks[1].reg = MP_REGISTER_RSP, "register");
	REFUSED(s.blocks[1].reg = 16, "register");
	REFUSED(s.blocks[1].reg = MP_NO_REGISTER, "register");
	REFUSED(s.blocks[5].shift = 1, "register");
	REFUSED(s.edges[1].from = 5, "leaves");
	REFUSED(s.edges[9].to = 4, "leaves");
	REFUSED(s.edges[9].to = NONE, "leaves");
	REFUSED(s.edges[2].kind = 4, "kind");
	REFUSED(s.edges[2].kind = OUTSIDE, "kind");
	REFUSED(s.edges[0].kind = MP_EDGE_FALL, "kind");
	REFUSED(s.edges[8].carries = true, "kind");
	REFUSED(s.edges[1].value = 1, "starts");
	REFUSED(s.edges[1].carries = true, "starts");
	REFUSED(s.edges[4].to = 1, "one number");
	REFUSED(s.edges[3].to = 3, "out of order");
	/* Without a change it is valid. */
	assert_round_trip(spoil(&s));
}

TEST(path_table_refuses_numbers_that_say_two_things)
{
	struct mp_path_table *table;
	struct spoilt s;

	REFUSED(s.edges[3].value = 0, "401010 has two ways");
	REFUSED(s.edges[6].value = 1, "401400 has two ways");
	/* Block 3 has three paths, so the next number is 10. */
	REFUSED(s.edges[8].value = 9, "401408 has two ways");
	REFUSED(s.edges[7].value = UINT64_MAX - 2, "401408 has too many ways");
	REFUSED(s.edges[3].carries = true, "on a circle");
	REFUSED(s.edges[11].from = 6, "on a circle");
	REFUSED(s.blocks[6].reg = 3; s.edges[11].to = 5;
		s.edges[11].carries = false, "400200 has no way to it");
	table = spoil(&s);
	s.edges[8].value = 10;
	assert_round_trip(table);
	s.edges[7].value = UINT64_MAX - 4;
	s.edges[8].value = UINT64_MAX - 1;
	assert_round_trip(table);
}

TEST(path_table_refuses_every_truncation)
{
	struct mp_path_table *table = NULL;
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size;

	ck_assert_int_eq(mp_path_table_encode(&sample, &bytes, &size, NULL), 0);
	for (size_t cut = 1; cut <= size; cut++)
		ck_assert_int_eq(read_section(bytes, size - cut, &table), -EBADMSG);
}

TEST(path_table_refuses_every_flipped_bit)
{
	struct mp_path_table *table = NULL;
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size;

	ck_assert_int_eq(mp_path_table_encode(&sample, &bytes, &size, NULL), 0);
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
	struct mp_path_table *table = NULL;
	uint64_t sum;
	int ret;

	for (size_t i = 0; i < nr; i++)
		mp_varint_put(&w, numbers[i]);
	sum = XXH3_64bits(w.bytes, w.size);
	mp_varint_put_bytes(&w, &sum, sizeof(sum));
	ret = read_section(w.bytes, w.size, &table);
	mp_path_table_free(table);
	free(w.bytes);
	return ret;
}

TEST(path_table_refuses_hostile_numbers_behind_a_good_checksum)
{
	/*
	 * Version, functions, blocks, edges; a function with two blocks and two edges: the
	 * blocks' addresses, sizes, sizes of the branch, bits (and the second's shift); the
	 * edges: an entry, and an edge to the next block with a number.
	 */
	static const uint64_t good[] = {1, 1,  2, 2,	2, 2, 2 * 0x1000, 10, 2, 5,
					0, 10, 2, 0x22, 7, 4, 0x38,	  1,  3};
	static const uint64_t values[] = {0,	      1,	 2,	     3,		 4,
					  11,	      0x0c,	 0x1c,	     0x51,	 0x60,
					  0x91,	      1 << 25,	 1 << 26,    UINT32_MAX, 1ull << 32,
					  1ull << 33, INT64_MAX, 1ull << 63, UINT64_MAX};
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
			if (i < 6 || i == 15 || i == 17)
				ck_assert_msg(!ret == (numbers[i] == good[i]), "%zu %zu", i, v);
		}
	ck_assert_uint_gt(nr_refused, nr * 10);
}

TEST(path_table_of_a_newer_version_is_named_as_such)
{
	struct mp_path_table *table;
	AUTO_FREE uint8_t *bytes = NULL;
	uint64_t sum;
	size_t size;

	ck_assert_int_eq(mp_path_table_encode(&sample, &bytes, &size, NULL), 0);
	bytes[0] = 2;
	sum = XXH3_64bits(bytes, size - 8);
	memcpy(bytes + size - 8, &sum, 8);
	ck_assert_int_eq(read_named(MP_PATH_TABLE_SECTION, SHT_PROGBITS, bytes, size, MP_ELF_ALL,
				    &table, &err),
			 -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "version 2"));
}

TEST(path_table_absent_is_not_damaged)
{
	static const uint8_t zeros[64];
	struct mp_path_table *table;

	ck_assert_int_eq(read_named(".comment", SHT_PROGBITS, "x", 1, MP_ELF_ALL, &table, &err),
			 -ENOENT);
	ck_assert_int_eq(read_named(MP_PATH_TABLE_SECTION, SHT_NOBITS, zeros, sizeof(zeros),
				    MP_ELF_ALL, &table, &err),
			 -EBADMSG);
}
