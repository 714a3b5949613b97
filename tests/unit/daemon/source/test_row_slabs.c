// SPDX-License-Identifier: Apache-2.0
/*
 * test_row_slabs - rows that were laid into slabs are found there by the code that the BPF programs run
 * (daemon/source/bpf/rows.bpf.h, compiled here for user space), with the same rules as in the bytes
 * that they were made of.
 */
#include "daemon/source/row_slabs.h"

#include "libprof/unwind/rows_laid.h"
#include "tests/unit/suite.h"

static uint8_t *memory[MD_WIRE_SLABS];
static int result; /* of the next add() */

/* ---- what rows.bpf.h needs of BPF ---- */

#define SEC(name)
#define __uint(name, value)	      int(*name)[value]
#define __type(name, value)	      value *name
#define __array(name, value)	      value *name[]
#define __noinline		      __attribute__((noinline))
#define BPF_F_MMAPABLE		      1
#define BPF_MAP_TYPE_ARRAY	      1
#define BPF_MAP_TYPE_ARRAY_OF_MAPS    1
#define hide(x)			      __asm__ volatile("" : "+r"(x))
#define bpf_map_lookup_elem(map, key) find(map, *(key))

#define bpf_loop(nr, step, arg, flags)                                                             \
	do {                                                                                       \
		for (uint32_t loop_nr = 0; loop_nr < (nr); loop_nr++)                              \
			if ((step)(loop_nr, arg))                                                  \
				break;                                                             \
	} while (0)

static void *find(const void *map, uint32_t key);

#include "daemon/source/bpf/rows.bpf.h"

/* A slab is its own inner map. */
static void *find(const void *map, uint32_t key)
{
	if (map != &slabs)
		return (void *)(uintptr_t)map;
	return key < MD_WIRE_SLABS ? memory[key] : NULL;
}

/* ---- slabs ---- */

static struct md_row_slabs laid;

static int add(void *arg, uint32_t nr, uint8_t *at)
{
	int ret = result;

	ck_assert_ptr_eq(arg, &laid);
	ck_assert_uint_eq(nr, laid.nr);
	result = 0;
	if (ret)
		return ret;
	ck_assert_ptr_null(memory[nr]);
	ck_assert_ptr_eq(at, laid.memory + (size_t)nr * MD_WIRE_SLAB);
	memory[nr] = at;
	return 0;
}

static void setup(void)
{
	laid = (struct md_row_slabs){.add = add, .arg = &laid};
	laid.memory = calloc(1, (size_t)MD_WIRE_SLABS * MD_WIRE_SLAB + MD_WIRE_SLAB_ROOM);
	ck_assert_ptr_nonnull(laid.memory);
	result = 0;
}

static void teardown(void)
{
	free(laid.memory);
	memset(memory, 0, sizeof(memory));
}

/* ---- made-up rows ---- */

static uint64_t table[(2u << 20) / 8];

/*
 * Makes rows of @nr_pages pages with @nr_in_page rows in most of them, at places that @seed draws.
 * Return: their bytes.
 */
static size_t make(uint32_t seed, uint64_t base, uint32_t nr_pages, uint32_t nr_in_page)
{
	const uint32_t nr_rules = 40;
	struct mp_rows_head *head = (void *)table;
	struct mp_row_rule *rules = (void *)(head + 1);
	uint32_t *pages = (void *)(rules + nr_rules), page, i, nr = 0, low;
	struct mp_row *rows = (void *)(pages + nr_pages + 1);

	srand(seed);
	memset(table, 0, sizeof(table));
	rules[0] = (struct mp_row_rule){.stop = MP_ROW_STOP_NO_ROW};
	for (i = 1; i < nr_rules; i++)
		rules[i] = (struct mp_row_rule){.cfa = MP_ROW_REGISTER,
						.cfa_reg = 4,
						.cfa_off = (int32_t)i * 8,
						.ra = MP_ROW_AT_CFA,
						.ra_off = -8,
						.flags = i % 3	 ? 0
							 : i % 2 ? 4
								 : 8};
	rules[7] = (struct mp_row_rule){.stop = MP_ROW_STOP_RANGE};
	for (page = 0; page < nr_pages; page++) {
		pages[page] = nr;
		if (rand() % 4 == 0 && page + 1 < nr_pages)
			continue; /* a page without rows */
		low = rand() % 3 ? (uint32_t)rand() % 600 : 0;
		for (i = 0; i < nr_in_page && low < MP_ROWS_PAGE; i++, nr++) {
			rows[nr] = (struct mp_row){(uint16_t)low,
						   (uint16_t)(nr % 2 * 20 + 1 + rand() % 18)};
			low += 1 + (uint32_t)rand() % (2 * MP_ROWS_PAGE / (nr_in_page + 1) + 1);
		}
	}
	pages[nr_pages] = nr;
	rows[nr - 1].number = 0;
	*head = (struct mp_rows_head){MP_ROWS_MAGIC, nr_rules, nr, nr_pages, base};
	return mp_rows_size(nr_rules, nr, nr_pages);
}

/* Lays the @size bytes of table[]. */
static void *lay(size_t size, struct mp_rows *rows)
{
	struct mp_rows flat;
	void *bytes;

	ck_assert_int_eq(mp_rows_open("made", table, size, &flat, NULL), 0);
	ck_assert_int_eq(mp_rows_lay(&flat, &bytes, &size), 0);
	ck_assert_int_eq(mp_rows_laid_open("made", bytes, size, rows, NULL), 0);
	return bytes;
}

static int add_table(size_t size, bool uses_up, struct md_wire_file *file, struct mp_rows *view)
{
	struct mp_rows rows;
	void *bytes = lay(size, &rows);
	int ret = md_row_slabs_add(&laid, &rows, uses_up, file, view);

	free(bytes);
	return ret;
}

static void same_rules(const struct md_wire_file *file, const struct mp_rows *rows, uint32_t nr)
{
	const struct code code = {.base = file->base,
				  .nr_pages = file->nr_pages,
				  .directory = file->directory,
				  .rules = file->rules};
	const struct mp_row_rule *expected;
	uint64_t size = (uint64_t)rows->nr_pages * MP_ROWS_PAGE, at;
	struct morph_row_rule rule;

	for (uint32_t i = 0; i < nr; i++) {
		at = i % 2 ? rows->base + (uint64_t)rand() % size
			   : rows->base + (uint64_t)rand() % rows->nr_pages * MP_ROWS_PAGE +
				     rows->rows[(uint32_t)rand() % rows->nr_rows].low;
		expected = mp_rows_find(rows, at);
		if (!find_rule(&code, at, &rule)) {
			ck_assert_uint_eq(expected->stop, MP_ROW_STOP_NO_ROW);
			continue;
		}
		ck_assert_msg(!memcmp(&rule, expected, sizeof(rule)), "another rule at %#lx",
			      (unsigned long)at);
	}
	ck_assert(!find_rule(&code, rows->base - 1, &rule));
	ck_assert(!find_rule(&code, rows->base + size, &rule));
}

/* morphd finds the same rows in the slabs as in the bytes, and makes the same bytes from them. */
static void same_view(const struct mp_rows *view, const struct mp_rows *rows, size_t size,
		      uint32_t nr)
{
	uint64_t span = (uint64_t)rows->nr_pages * MP_ROWS_PAGE, at, start, expected;
	size_t packed_size;
	AUTO_FREE void *packed = NULL;

	for (uint32_t i = 0; i < nr; i++) {
		at = rows->base + (i % 2 ? (uint64_t)rand() % (span + 2) - 1
					 : (uint64_t)rand() % rows->nr_pages * MP_ROWS_PAGE +
						   (uint64_t)rand() % 3);
		ck_assert(!memcmp(mp_rows_find(view, at), mp_rows_find(rows, at),
				  sizeof(struct mp_row_rule)));
		start = expected = 1;
		ck_assert_int_eq(mp_rows_entry(view, at, &start),
				 mp_rows_entry(rows, at, &expected));
		ck_assert_uint_eq(start, expected);
	}
	packed = mp_rows_flatten(view, &packed_size);
	ck_assert_uint_eq(packed_size, size);
	ck_assert(!memcmp(packed, table, size));
}

/* Rows in slabs are one table again, which is that of before. */
static void same_table(const struct mp_rows *view, size_t size)
{
	struct mp_rows before, again;
	void *first = lay(size, &before), *gathered = mp_rows_gather(view, &size);

	ck_assert_int_eq(mp_rows_laid_open("gathered", gathered, size, &again, NULL), 0);
	ck_assert(!memcmp(first, gathered, size));
	ck_assert(mp_rows_equal(view, &before) && mp_rows_equal(&again, view));
	free(first);
	free(gathered);
}

FIXTURE(setup, teardown);

TEST(the_same_rule_is_found_at_each_address)
{
	struct md_wire_file file, found;
	struct mp_rows rows, view;
	uint64_t base;
	size_t size;

	for (uint32_t i = 0; i < 60; i++) {
		base = i % 3 ? (uint64_t)i * MP_ROWS_PAGE : 0;
		size = make(i, base, 1 + i % 7, i % 5 ? 3 + i * 20 : 12000);
		ck_assert_int_eq(mp_rows_open("made", table, size, &rows, NULL), 0);
		ck_assert_int_eq(add_table(size, i % 2, &file, &view), 0);
		same_rules(&file, &rows, 30000);
		same_view(&view, &rows, size, 30000);
		same_table(&view, size);
		ck_assert(md_row_slabs_find(&laid, &view, &found));
		ck_assert(found.base == file.base && found.nr_pages == file.nr_pages &&
			  found.directory == file.directory && found.rules == file.rules);
		ck_assert(!md_row_slabs_find(&laid, &rows, &found));
	}
	/* Enough for parts to be pushed to the next slab. */
	ck_assert_uint_gt(laid.nr, 1);
}

TEST(rows_that_differ_in_one_place_are_not_equal)
{
	struct md_wire_file file;
	struct mp_rows rows, view;
	size_t size = make(5, 0, 4, 200);
	struct mp_row *row =
		(struct mp_row *)((uint32_t *)((struct mp_row_rule *)((struct mp_rows_head *)table +
								      1) +
					       40) +
				  5);
	void *bytes;

	ck_assert_int_eq(add_table(size, false, &file, &view), 0);
	for (uint32_t i = 1; i + 1 < ((struct mp_rows_head *)table)->nr_rows; i++) {
		uint16_t number = row[i].number;

		row[i].number = number == 39 ? 38 : 39;
		if (number != row[i].number && row[i - 1].number != row[i].number &&
		    row[i + 1].number != row[i].number) {
			bytes = lay(size, &rows);
			ck_assert(!mp_rows_equal(&view, &rows));
			free(bytes);
		}
		row[i].number = number;
	}
	bytes = lay(size, &rows);
	ck_assert(mp_rows_equal(&view, &rows));
	free(bytes);
}

TEST(rows_that_fill_a_page_are_found_or_refused)
{
	struct md_wire_file file;
	struct mp_rows rows, view;
	size_t size = make(1, 0, 1, 65536);
	struct mp_rows_head *head = (void *)table;
	uint32_t *pages = (void *)((struct mp_row_rule *)(head + 1) + head->nr_rules);
	struct mp_row *row = (void *)(pages + 2);
	void *bytes;

	/* Nearly each address of a page has a row. */
	memset(row, 0, 65536 * sizeof(*row));
	for (uint32_t i = 0; i < MP_ROWS_IN_PAGE_MAX; i++)
		row[i] = (struct mp_row){(uint16_t)i, (uint16_t)(i % 2 + 1)};
	row[MP_ROWS_IN_PAGE_MAX - 1].number = 0;
	pages[1] = head->nr_rows = MP_ROWS_IN_PAGE_MAX;
	size = mp_rows_size(head->nr_rules, head->nr_rows, 1);
	ck_assert_int_eq(mp_rows_open("full", table, size, &rows, NULL), 0);
	ck_assert_int_eq(add_table(size, true, &file, &view), 0);
	same_rules(&file, &rows, 100000);
	same_view(&view, &rows, size, 10000);
	row[MP_ROWS_IN_PAGE_MAX - 1].number = 2;
	row[MP_ROWS_IN_PAGE_MAX] = (struct mp_row){MP_ROWS_IN_PAGE_MAX, 0};
	pages[1] = ++head->nr_rows;
	size = mp_rows_size(head->nr_rules, head->nr_rows, 1);
	ck_assert_int_eq(mp_rows_open("full", table, size, &rows, NULL), 0);
	ck_assert_int_eq(mp_rows_lay(&rows, &bytes, &size), -EFBIG);
}

TEST(nothing_is_taken_of_what_is_refused)
{
	struct md_wire_file file = {.nr_pages = 7};
	struct mp_rows view;
	uint32_t used;
	size_t size = make(3, 0, 2, 100);

	result = -EPERM;
	ck_assert_int_eq(add_table(size, true, &file, &view), -EPERM);
	ck_assert_uint_eq(file.nr_pages, 0);
	ck_assert_uint_eq(laid.used, 0);
	ck_assert_int_eq(add_table(size, true, &file, &view), 0);
	used = laid.used;
	laid.used = (MD_WIRE_SLABS << MD_WIRE_SLAB_SHIFT) - 500;
	laid.nr = MD_WIRE_SLABS;
	ck_assert_int_eq(add_table(size, true, &file, &view), -ENOSPC);
	ck_assert_uint_eq(laid.used, (MD_WIRE_SLABS << MD_WIRE_SLAB_SHIFT) - 500);
	ck_assert_uint_gt(used, size / 8);
}

TEST(rows_stay_whole_where_they_were_until_all_are_laid)
{
	struct md_wire_file file;
	struct mp_rows rows, view;
	size_t size = make(6, 0, 14, 9000), laid_size;
	uint8_t *bytes = lay(size, &rows), *copy;

	laid_size = rows.pages[rows.nr_pages];
	ck_assert_uint_gt(laid_size, MD_WIRE_SLAB / 2);
	copy = malloc(laid_size);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, bytes, laid_size);
	/* The next slab cannot be had, after some pages were copied and given back. */
	laid.used = MD_WIRE_SLAB - (uint32_t)laid_size / 2;
	laid.nr = 1;
	result = -ENOMEM;
	ck_assert_int_eq(md_row_slabs_add(&laid, &rows, true, &file, &view), -ENOMEM);
	ck_assert(!memcmp(copy, bytes, laid_size));
	ck_assert_int_eq(md_row_slabs_add(&laid, &rows, true, &file, &view), 0);
	ck_assert(memcmp(copy, bytes, laid_size)); /* used up */
	same_table(&view, size);
	free(copy);
	free(bytes);
}

TEST(a_wrong_position_leads_out_of_no_slab)
{
	struct code code = {.nr_pages = 1};
	struct md_wire_file file;
	struct morph_row_rule rule;
	struct mp_rows view;
	size_t size = make(4, 0, 3, 500);

	ck_assert_int_eq(add_table(size, false, &file, &view), 0);
	for (uint32_t i = 0; i < MD_WIRE_SLAB / 8; i++)
		((uint64_t *)memory[0])[i] = (uint64_t)rand() << 33 ^ (uint64_t)rand();
	for (uint32_t i = 0; i < 200000; i++) {
		code.directory = (uint32_t)rand() ^ (uint32_t)rand() << 8;
		if (i % 2)
			code.directory %= MD_WIRE_SLAB;
		code.rules = i % 3 ? (uint32_t)rand() : MD_WIRE_SLAB - i % 32;
		find_rule(&code, (uint64_t)rand() % MP_ROWS_PAGE, &rule);
	}
}
