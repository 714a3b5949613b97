// SPDX-License-Identifier: Apache-2.0
/*
 * test_block_map - maps of each version, as bytes; what clang 14 and 19 write is checked by
 * tests/e2e/stats/export-propeller.sh.
 */
#include "libprof/elf/block_map.h"

#include <errno.h>

#include "libprof/elf/elf.h"
#include "tests/support/tiny_elf.h"
#include "tests/unit/suite.h"

#define TYPE_0 0x6fff4c08
#define TYPE   0x6fff4c0a
#define CODE   0x1000

/* Little-endian addresses. */
#define ADDRESS(low) (low) & 0xff, (low) >> 8, 0, 0, 0, 0, 0, 0

static struct mp_block_map map;

/* Reads @bytes as a section of @type, in a file with code from 0x1000 to 0x1100. */
static int read_map(uint32_t type, const void *bytes, size_t size)
{
	static const uint8_t code[0x100];
	const struct tiny_section sections[] = {
		{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, CODE, code, sizeof(code), 0, 0,
		 0},
		{".llvm_bb_addr_map", type, 0, 0, bytes, size, 0, 0, 0},
	};
	AUTO_FREE uint8_t *file = NULL;
	size_t file_size;
	struct mp_elf *elf;
	int r;

	file = tiny_elf_build(sections, 2, NULL, 0, &file_size);
	ck_assert_msg(!mp_elf_open_memory("prog", file, file_size, MP_ELF_ALL, &elf, &err), "%s",
		      err.msg);
	mp_block_map_fini(&map);
	r = mp_block_map_read(elf, &map, &err);
	mp_elf_close(elf);
	return r;
}

static void teardown(void)
{
	mp_block_map_fini(&map);
}

FIXTURE(NULL, teardown);

static void is_block(uint32_t block, uint64_t vaddr, uint32_t size, uint32_t number)
{
	ck_assert_uint_lt(block, map.nr_blocks);
	ck_assert_uint_eq(map.blocks[block].vaddr, vaddr);
	ck_assert_uint_eq(map.blocks[block].size, size);
	ck_assert_uint_eq(map.blocks[block].number, number);
}

static void is_func(uint32_t func, uint64_t vaddr, uint32_t entry, uint32_t nr_blocks)
{
	ck_assert_uint_lt(func, map.nr_funcs);
	ck_assert_uint_eq(map.funcs[func].vaddr, vaddr);
	ck_assert_uint_eq(map.funcs[func].entry, entry);
	ck_assert_uint_eq(map.funcs[func].nr_blocks, nr_blocks);
}

/* Two functions; the one that stands last lies first. The first has 2 bytes of padding in it. */
static const uint8_t version_0[] = {
	ADDRESS(CODE + 0x90), 2, 0, 5,	  8, 7, 0x20, 1, /* sizes are below 128: one byte each */
	ADDRESS(CODE),	      1, 0, 0x90, 1, 1,
};
static const uint8_t version_1[] = {
	1, 0, ADDRESS(CODE + 0x90), 2, 0, 5,	8, 2, 0x20, 1, /* */
	1, 0, ADDRESS(CODE),	    1, 0, 0x90, 1, 1,
};
static const uint8_t version_2[] = {
	2, 0, ADDRESS(CODE + 0x90), 2, 7, 0, 5,	   8, 3, 2, 0x20, 1, /* */
	2, 0, ADDRESS(CODE),	    1, 4, 0, 0x90, 1, 1,
};

TEST(block_map_reads_each_version)
{
	const struct {
		uint32_t type;
		const uint8_t *bytes;
		size_t size;
		uint32_t numbers[3];
	} rows[] = {{TYPE_0, version_0, sizeof(version_0), {0, 0, 1}},
		    {TYPE, version_1, sizeof(version_1), {0, 0, 1}},
		    {TYPE, version_2, sizeof(version_2), {4, 7, 3}}};

	for (size_t i = 0; i < 3; i++) {
		ck_assert_msg(!read_map(rows[i].type, rows[i].bytes, rows[i].size), "%s", err.msg);
		ck_assert_uint_eq(map.nr_funcs, 2);
		is_func(0, CODE, rows[i].numbers[0], 1);
		is_func(1, CODE + 0x90, rows[i].numbers[1], 2);
		is_block(map.funcs[0].first_block, CODE, 0x90, rows[i].numbers[0]);
		is_block(map.funcs[1].first_block, CODE + 0x90, 5, rows[i].numbers[1]);
		is_block(map.funcs[1].first_block + 1, CODE + 0x97, 0x20, rows[i].numbers[2]);
	}
}

/* Two parts, the second below the first; an empty block; what clang assumed; then another function. */
TEST(block_map_reads_parts_and_skips_frequencies)
{
	static const uint8_t bytes[] = {
		2,
		15,
		2, /* */
		ADDRESS(CODE + 0x80),
		3,
		0,
		0,
		8,
		8,
		2,
		0,
		0,
		8,
		1,
		0,
		4,
		1, /* */
		ADDRESS(CODE),
		1,
		9,
		0,
		8,
		1,   /* */
		100, /* */
		50,
		2,
		1,
		0x80,
		1,
		2,
		3, /* */
		50,
		0,
		50,
		0,
		50,
		0, /* */
		2,
		1,
		ADDRESS(CODE + 0x20),
		1,
		0,
		0,
		4,
		1,
		9,
	};

	ck_assert_msg(!read_map(TYPE, bytes, sizeof(bytes)), "%s", err.msg);
	ck_assert_uint_eq(map.nr_funcs, 2);
	is_func(0, CODE + 0x20, 0, 1);
	is_func(1, CODE + 0x80, 0, 4);
	is_block(0, CODE, 8, 9);
	is_block(1, CODE + 0x80, 8, 0);
	is_block(2, CODE + 0x88, 0, 2);
	is_block(3, CODE + 0x88, 4, 1);
}

TEST(block_map_leaves_out_what_the_linker_left_out)
{
	static const uint8_t bytes[] = {
		1, 0, ADDRESS(0),	 1, 0, 4, 1,	      /* removed */
		1, 0, ADDRESS(CODE),	 1, 0, 4, 1,	      /* */
		1, 0, ADDRESS(CODE),	 2, 0, 2, 8, 0, 2, 1, /* folded */
		1, 0, ADDRESS(CODE + 8), 0,
	};

	ck_assert_msg(!read_map(TYPE, bytes, sizeof(bytes)), "%s", err.msg);
	ck_assert_uint_eq(map.nr_funcs, 1);
	is_func(0, CODE, 0, 1);
}

/* Where a function ends, the map is whole; everywhere else it is damaged. */
TEST(block_map_refuses_what_is_cut)
{
	for (size_t size = 0; size < sizeof(version_2); size++) {
		int r = read_map(TYPE, version_2, size);

		ck_assert_int_eq(r, size && size != 19 ? -EBADMSG : 0);
		if (r)
			ck_assert_ptr_nonnull(
				strstr(err.msg, "prog: .llvm_bb_addr_map is damaged"));
	}
}

TEST(block_map_refuses_bad_bytes)
{
	static const struct {
		size_t at;
		uint8_t byte;
		int r;
	} rows[] = {
		{0, 0, -EOPNOTSUPP},  {0, 3, -EOPNOTSUPP},  /* versions */
		{1, 16, -EOPNOTSUPP},			    /* features */
		{3, 0x20, -EBADMSG},  {4, 1, -EBADMSG},	    /* addresses outside of the code */
		{10, 0xff, -EBADMSG},			    /* number of blocks */
		{12, 0xff, -EBADMSG}, {17, 0xff, -EBADMSG}, /* offset, size: beyond the code */
		{15, 7, -EBADMSG},			    /* a number twice */
	};
	uint8_t bytes[sizeof(version_2)];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memcpy(bytes, version_2, sizeof(bytes));
		bytes[rows[i].at] = rows[i].byte;
		ck_assert_msg(read_map(TYPE, bytes, sizeof(bytes)) == rows[i].r, "%zu: %s", i,
			      err.msg);
	}
	/* In version 0, offsets are from the function's address. */
	memcpy(bytes, version_0, sizeof(version_0));
	bytes[12] = 4;
	ck_assert_int_eq(read_map(TYPE_0, bytes, sizeof(version_0)), -EBADMSG);
	/* Version 1 had no features. */
	memcpy(bytes, version_1, sizeof(version_1));
	bytes[1] = 8;
	ck_assert_int_eq(read_map(TYPE, bytes, sizeof(version_1)), -EOPNOTSUPP);
}

/* A byte of code is in one block: otherwise a small map could stand for any number of bytes. */
TEST(block_map_refuses_functions_that_overlap)
{
	static const uint8_t one[] = {2, 0, ADDRESS(CODE), 1, 0, 0, 0x90, 1, 1};
	uint8_t all[100][sizeof(one)];

	for (size_t i = 0; i < 100; i++) {
		memcpy(all[i], one, sizeof(one));
		all[i][2] = (uint8_t)i;
	}
	ck_assert_int_eq(read_map(TYPE, all, sizeof(all)), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "functions overlap"));
	ck_assert_int_eq(read_map(TYPE, all, sizeof(one)), 0);
}

TEST(block_map_refuses_a_file_without_one)
{
	ck_assert_int_eq(read_map(SHT_PROGBITS, version_2, sizeof(version_2)), -ENODATA);
	ck_assert_ptr_nonnull(strstr(err.msg, "-fbasic-block-sections=labels"));
}
