// SPDX-License-Identifier: Apache-2.0
/* test_lsda - hand-written exception tables: refusals, and landing pads that are far apart. */
#include "editor/unwind/lsda.h"

#include "libprof/elf/eh.h"
#include "tests/unit/suite.h"
#include "tests/support/tiny_elf.h"

#define AT    0x400 /* address of the table */
#define START 0x200 /* address of the function */

static struct me_lsda lsda;

/* Reads @table as part of a file of type @type. */
static const char *read_as(uint16_t type, const void *table, size_t size, struct mp_elf **keep,
			   uint8_t **bytes)
{
	struct tiny_section sec = {
		".gcc_except_table", SHT_PROGBITS, SHF_ALLOC, AT, table, size, 0, 0, 0};
	const char *why = NULL;
	size_t elf_size;

	*bytes = tiny_elf_build(&sec, 1, NULL, 0, &elf_size);
	((Elf64_Ehdr *)*bytes)->e_type = type;
	ck_assert_int_eq(mp_elf_open_memory("t", *bytes, elf_size, MP_ELF_ALL, keep, NULL), 0);
	ck_assert_int_eq(me_lsda_read(*keep, AT, START, 0x100, &lsda, &why), why ? -EPERM : 0);
	return why;
}

static const char *answer(uint16_t type, const void *table, size_t size)
{
	struct mp_elf *elf;
	AUTO_FREE uint8_t *bytes = NULL;
	const char *why = read_as(type, table, size, &elf, &bytes);

	mp_elf_close(elf);
	return why;
}

#define ANSWER(type, ...)                                                                          \
	answer(type, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void teardown(void)
{
	me_lsda_fini(&lsda);
}

FIXTURE(NULL, teardown);

TEST(lsda_reads_cleanups_and_gaps)
{
	ck_assert_ptr_null(ANSWER(ET_DYN, 0xff, 0xff, 1, 8, 0, 4, 0, 0, 8, 2, 0x20, 0));
	ck_assert_uint_eq(lsda.nr_sites, 2);
	ck_assert_uint_eq(lsda.sites[0].pad, 0);
	ck_assert_uint_eq(lsda.sites[1].start, START + 8);
	ck_assert_uint_eq(lsda.sites[1].pad, START + 0x20);
	/* No site covers 4 to 7: the result is the first site that ends later. */
	ck_assert_uint_eq(me_lsda_site_at(&lsda, START + 5), 1);
	ck_assert_uint_eq(me_lsda_site_at(&lsda, START + 10), 2);
}

TEST(lsda_refuses_what_it_cannot_carry_over)
{
	/* sites out of order; outside of the function; truncated */
	ck_assert_ptr_nonnull(ANSWER(ET_DYN, 0xff, 0xff, 1, 8, 8, 4, 0, 0, 0, 2, 0, 0));
	ck_assert_ptr_nonnull(ANSWER(ET_DYN, 0xff, 0xff, 1, 8, 8, 4, 0, 0, 10, 2, 0, 0));
	ck_assert_ptr_nonnull(ANSWER(ET_DYN, 0xff, 0xff, 1, 6, 0, 0x81, 2, 0, 0, 0));
	ck_assert_ptr_nonnull(ANSWER(ET_DYN, 0xff, 0xff, 1, 100, 0, 4, 0, 0));
	/* pads relative to an unknown base; call sites relative to themselves */
	ck_assert_ptr_nonnull(ANSWER(ET_DYN, 0x3b, 0, 0, 0, 0, 0xff, 1, 4, 0, 4, 0, 0));
	ck_assert_ptr_nonnull(ANSWER(ET_DYN, 0xff, 0xff, 0x11, 4, 0, 4, 0, 0));
	/* an action that leads to itself; one beyond the end; a type without a table */
	ck_assert_str_eq(ANSWER(ET_DYN, 0xff, 0xff, 1, 4, 0, 4, 8, 1, 0, 0x7f),
			 "actions of the LSDA form a cycle");
	ck_assert_ptr_nonnull(ANSWER(ET_DYN, 0xff, 0xff, 1, 5, 0, 4, 8, 0xff, 0x7f));
	ck_assert_ptr_nonnull(ANSWER(ET_DYN, 0xff, 0xff, 1, 4, 0, 4, 8, 1, 1, 0));
	/* a specification without end */
	ck_assert_ptr_nonnull(ANSWER(ET_DYN, 0xff, 0x9b, 8, 1, 4, 0, 4, 8, 1, 0x7f, 0, 1, 1));
}

TEST(lsda_refuses_absolute_types_where_the_loader_moves_the_file)
{
	static const uint8_t table[] = {0xff, 0x03, 12, 1, 4,	 0,    4, 8, 1,
					1,    0,    0,	0, 0x34, 0x12, 0, 0};

	ck_assert_str_eq(answer(ET_DYN, table, sizeof(table)),
			 "absolute pointer in LSDA type table needs a dynamic relocation");
	ck_assert_ptr_null(answer(ET_EXEC, table, sizeof(table)));
	ck_assert_uint_eq(lsda.nr_types, 1);
}

TEST(lsda_keeps_pads_below_and_far_above)
{
	/* catches type 1 (pc-relative), and has a specification of types 1 and 2 */
	static const uint8_t table[] = {0xff, 0x9b, 21,	  1,	4, 0, 0x10, 8,	  1, /* one site */
					1,    1,    0x7f, 0, /* filter 1, then filter -1 */
					0,    0,    0,	  0x40, 0, 0, 0,    0x20, 0,
					0,    0,	/* types */
					1,    2,    0}; /* the specification */
	struct me_call_site sites[3] = {
		{.start = 0x700000, .size = 8, .pad = 0x250, .action = 1},
		{.start = 0x700008, .size = 8},
		{.start = 0x700020, .size = 4, .pad = 0x7ff000},
	};
	struct me_lsda again = {0};
	const char *why;
	AUTO(me_bytes_fini) struct me_bytes out = {0};
	int32_t base;
	struct tiny_section sec = {.name = "x", .type = SHT_PROGBITS, .flags = SHF_ALLOC};
	struct mp_elf *elf, *old;
	uint8_t *bytes, *old_bytes;
	size_t size;

	ck_assert_ptr_null(read_as(ET_DYN, table, sizeof(table), &old, &old_bytes));
	ck_assert_uint_eq(lsda.nr_types, 2);
	ck_assert(me_lsda_put(&out, 0x10000, &lsda, sites, 3, 0x700000));
	sec.vaddr = 0x10000;
	sec.data = out.data;
	sec.size = out.size;
	bytes = tiny_elf_build(&sec, 1, NULL, 0, &size);
	ck_assert_int_eq(mp_elf_open_memory("t", bytes, size, MP_ELF_ALL, &elf, NULL), 0);
	ck_assert_int_eq(me_lsda_read(elf, 0x10000, 0x700000, 0x100, &again, &why), 0);
	ck_assert_uint_eq(again.nr_sites, 3);
	ck_assert(!memcmp(again.sites, sites, sizeof(sites)));
	ck_assert_uint_eq(again.nr_types, lsda.nr_types);
	ck_assert(!memcmp(again.types, lsda.types, 2 * sizeof(uint64_t)));
	ck_assert_uint_eq(again.specs_size, 3);
	ck_assert(!memcmp(again.specs, table + sizeof(table) - 3, 3));
	me_lsda_fini(&again);
	mp_elf_close(elf);
	free(bytes);
	/* In Rust's form the base is relative to the function's start. */
	out.size = 0;
	lsda.from_start = true;
	ck_assert(me_lsda_put(&out, 0x10000, &lsda, sites, 3, 0x700000));
	ck_assert_uint_eq(out.data[0], 0x4b);
	memcpy(&base, out.data + 1, sizeof(base));
	ck_assert_int_eq(base, 0x24f - 0x700000);
	sec.data = out.data;
	sec.size = out.size;
	bytes = tiny_elf_build(&sec, 1, NULL, 0, &size);
	ck_assert_int_eq(mp_elf_open_memory("t", bytes, size, MP_ELF_ALL, &elf, NULL), 0);
	ck_assert_int_eq(me_lsda_read(elf, 0x10000, 0x700000, 0x100, &again, &why), 0);
	ck_assert_uint_eq(again.nr_sites, 3);
	ck_assert(!memcmp(again.sites, sites, sizeof(sites)));
	lsda.from_start = false;
	/* LLVM's routine of C skips a base: C's tables have none. */
	out.size = 0;
	lsda.baseless = true;
	ck_assert(me_lsda_put(&out, 0x10000, &lsda, sites, 3, 0x700000));
	ck_assert_uint_eq(out.data[0], 0xff);
	sec.data = out.data;
	sec.size = out.size;
	mp_elf_close(elf);
	free(bytes);
	bytes = tiny_elf_build(&sec, 1, NULL, 0, &size);
	ck_assert_int_eq(mp_elf_open_memory("t", bytes, size, MP_ELF_ALL, &elf, NULL), 0);
	ck_assert_int_eq(me_lsda_read(elf, 0x10000, 0x700000, 0x100, &again, &why), 0);
	ck_assert_uint_eq(again.base_enc, 0xff);
	ck_assert_uint_eq(again.nr_sites, 3);
	ck_assert(!memcmp(again.sites, sites, sizeof(sites)));
	/* A pad at the start would be none. */
	sites[2].pad = 0x700000;
	ck_assert(!me_lsda_put(&out, 0x10000, &lsda, sites, 3, 0x700000));
	lsda.baseless = false;
	/* Out of reach of 32 bits. */
	ck_assert(!me_lsda_put(&out, 5ull << 32, &lsda, sites, 3, 0x700000));
	me_lsda_fini(&again);
	mp_elf_close(elf);
	mp_elf_close(old);
	free(bytes);
	free(old_bytes);
}
