// SPDX-License-Identifier: Apache-2.0
/*
 * test_rows_laid - rows that lie page by page are the rows of the table that they were made of: those of
 * made-up tables, and those of the machine's own files, which take half of the room; damaged tables.
 */

#include "libprof/unwind/rows_laid.h"
#include "tests/support/rows_compare.h"
#include "tests/unit/suite.h"

#define NR_RULES 300
#define NR_PAGES 5

static uint64_t table[(1u << 20) / 8];
static struct mp_rows flat, laid;
static void *bytes;
static size_t flat_size, size;

static void teardown(void)
{
	free(bytes);
	bytes = NULL;
}

static void make_rules(struct mp_row_rule *rules)
{
	for (uint32_t i = 1; i < NR_RULES; i++)
		rules[i] = (struct mp_row_rule){.cfa = MP_ROW_REGISTER,
						.cfa_reg = 4,
						.cfa_off = (int32_t)i * 8,
						.ra = MP_ROW_AT_CFA,
						.ra_off = -8,
						.flags = i % 5	 ? 0
							 : i % 2 ? MP_ROW_ENTRY
								 : MP_ROW_ENTRY_ODD};
	rules[0] = (struct mp_row_rule){.stop = MP_ROW_STOP_NO_ROW};
	rules[7] = (struct mp_row_rule){.stop = MP_ROW_STOP_RANGE};
}

/*
 * Makes a table whose pages have rows @distance bytes apart on average, with @nr_numbers rules in each
 * page, and lays it.
 */
static void make(uint32_t seed, uint32_t distance, uint32_t nr_numbers)
{
	struct mp_rows_head *head = (void *)table;
	struct mp_row_rule *rules = (void *)(head + 1);
	uint32_t *pages = (void *)(rules + NR_RULES), nr = 0, low = 0;
	struct mp_row *rows = (void *)(pages + NR_PAGES + 1);
	uint16_t number = 0, before;

	srand(seed);
	memset(table, 0, sizeof(table));
	make_rules(rules);
	for (uint32_t page = 0; page < NR_PAGES; page++) {
		pages[page] = nr;
		if (page == 2)
			continue;
		for (low = (uint32_t)rand() % 3; low < MP_ROWS_PAGE;
		     low += 1 + (uint32_t)rand() % (2 * distance)) {
			before = number;
			while (number == before)
				number = (uint16_t)(1 + (uint32_t)rand() % nr_numbers);
			rows[nr++] = (struct mp_row){(uint16_t)low, number};
		}
	}
	pages[NR_PAGES] = nr;
	rows[nr - 1].number = 0;
	*head = (struct mp_rows_head){MP_ROWS_MAGIC, NR_RULES, nr, NR_PAGES, 3 * MP_ROWS_PAGE};
	flat_size = mp_rows_size(NR_RULES, nr, NR_PAGES);
	ck_assert_uint_le(flat_size, sizeof(table));
	ck_assert_int_eq(mp_rows_open("made", table, flat_size, &flat, NULL), 0);
	free(bytes);
	ck_assert_int_eq(mp_rows_lay(&flat, &bytes, &size), 0);
	ck_assert_int_eq(mp_rows_laid_open("laid", bytes, size, &laid, NULL), 0);
}

/* Compares the look-up of @vaddr in both forms. An assertion each time would take most of the time. */
static void same_at(uint64_t vaddr)
{
	const struct mp_row_rule *a = mp_rows_find(&flat, vaddr), *b = mp_rows_find(&laid, vaddr);
	uint64_t start = 1, other = 1;

	if (memcmp(a, b, sizeof(*a)) ||
	    mp_rows_entry(&flat, vaddr, &start) != mp_rows_entry(&laid, vaddr, &other) ||
	    start != other)
		ck_abort_msg("another rule or function at %#lx", (unsigned long)vaddr);
}

static void same_rows(void)
{
	size_t again;
	void *back = mp_rows_flatten(&laid, &again);

	ck_assert_ptr_nonnull(back);
	ck_assert_uint_eq(again, flat_size);
	ck_assert(!memcmp(back, table, flat_size));
	free(back);
	back = mp_rows_gather(&laid, &again);
	ck_assert_ptr_nonnull(back);
	ck_assert_uint_eq(again, size);
	ck_assert(!memcmp(back, bytes, size));
	free(back);
}

static uint32_t nr_wide(void)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < laid.nr_pages; i++)
		nr += !mp_rows_laid_page(&laid, i)->nr_numbers;
	return nr;
}

FIXTURE(NULL, teardown);

TEST(each_address_has_the_same_rule_and_the_same_function)
{
	static const uint32_t distances[] = {2, 5, 40, 300, 30000};
	static const uint32_t numbers[] = {6, 127, 250, 299};

	for (uint32_t i = 0; i < 20; i++) {
		make(i, distances[i % 5], numbers[(i + i / 5) % 4]);
		for (uint64_t at = flat.base - 2; at < flat.base + NR_PAGES * MP_ROWS_PAGE + 2;
		     at++)
			same_at(at);
		same_rows();
	}
}

TEST(pages_of_many_rules_or_few_rows_are_wide)
{
	make(1, 40, 127);
	ck_assert_uint_eq(nr_wide(), 1); /* the one without rows */
	make(1, 40, 299);
	ck_assert_uint_eq(nr_wide(), NR_PAGES);
	make(1, 2, 20);
	ck_assert_uint_eq(nr_wide(), NR_PAGES);
	make(1, 30000, 20);
	ck_assert_uint_eq(nr_wide(), NR_PAGES);
}

TEST_EACH(rows_of_real_files_take_half_of_the_room, 2)
{
	static const char *const files[] = {"/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6"};
	const char *path = files[_i];
	struct mp_elf *elf;
	void *table_bytes;

	if (mp_elf_open(path, MP_ELF_FDES, &elf, NULL))
		return; /* another distribution */
	ck_assert_int_eq(rows_of_elf(elf, &table_bytes, &flat_size, &flat, NULL), 0);
	ck_assert_int_eq(mp_rows_lay(&flat, &bytes, &size), 0);
	ck_assert_int_eq(mp_rows_laid_open(path, bytes, size, &laid, NULL), 0);
	for (uint32_t page = 0; page < flat.nr_pages; page++)
		for (uint32_t i = flat.pages[page]; i < flat.pages[page + 1]; i++)
			for (int off = -1; off < 2; off++)
				same_at(flat.base + (uint64_t)page * MP_ROWS_PAGE +
					flat.rows[i].low + (uint64_t)off);
	ck_assert_uint_lt(size, flat_size * 6 / 10);
	free(table_bytes);
	mp_elf_close(elf);
}

/* Return: whether the table, cut to @length, is accepted. Looks rows up if it is. */
static bool is_accepted(const uint8_t *from, size_t length)
{
	/* A copy, so that reading beyond the end is an error that tools see. */
	AUTO_FREE uint8_t *copy = malloc(length + !length);
	struct mp_rows rows;
	bool ok;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, from, length);
	ok = !mp_rows_laid_open("damaged", copy, length, &rows, NULL);
	for (uint64_t at = 0; ok && at < NR_PAGES * MP_ROWS_PAGE; at += 611)
		if (mp_rows_find(&rows, rows.base + at)->cfa >= MP_NR_ROW_CFA)
			ck_abort_msg("a rule of no kind at %#lx", (unsigned long)at);
	return ok;
}

TEST_EACH(a_table_that_was_cut_is_refused, 2)
{
	make(3, _i ? 100 : 1000, _i ? 127 : 299);
	ck_assert(is_accepted(bytes, size));
	for (size_t length = 0; length < size; length += length < 400 ? 1 : 997)
		ck_assert(!is_accepted(bytes, length));
}

TEST_EACH(a_damaged_table_is_refused_or_another_table, 2)
{
	uint8_t *at;
	uint32_t nr_accepted = 0, nr = 0;
	size_t head;

	make(4, _i ? 100 : 1000, _i ? 100 : 299);
	head = sizeof(struct mp_rows_head) + NR_RULES * sizeof(struct mp_row_rule);
	for (size_t i = head; i < size; i += i < head + 2000 ? 1 : 53) {
		at = (uint8_t *)bytes + i;
		for (uint32_t bit = 0; bit < 8; bit += 3) {
			*at ^= (uint8_t)(1u << bit);
			nr_accepted += is_accepted(bytes, size);
			nr++;
			*at ^= (uint8_t)(1u << bit);
		}
	}
	/* A row may move, or have another rule; positions and numbers of rows may not. */
	ck_assert_uint_lt(nr_accepted, nr * 3 / 4);
	for (size_t i = 0; i < sizeof(struct mp_rows_head) - sizeof(uint64_t); i++) {
		at = (uint8_t *)bytes + i;
		*at ^= 1;
		ck_assert(!is_accepted(bytes, size));
		*at ^= 1;
	}
	for (size_t i = head; i < head + (NR_PAGES + 1) * sizeof(uint32_t); i++) {
		at = (uint8_t *)bytes + i;
		*at ^= 1;
		ck_assert(!is_accepted(bytes, size));
		*at ^= 1;
	}
}

TEST(a_flat_table_is_not_a_laid_one)
{
	struct mp_rows rows;

	make(5, 100, 20);
	ck_assert_int_eq(mp_rows_laid_open("flat", table, flat_size, &rows, NULL), -EBADMSG);
	ck_assert_int_eq(mp_rows_open("laid", bytes, size, &rows, NULL), -EBADMSG);
}
