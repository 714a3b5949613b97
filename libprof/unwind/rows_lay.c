// SPDX-License-Identifier: Apache-2.0
/* rows_lay - writes rows page by page; see rows_laid.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/unwind/rows_laid.h"

/* A row as this file names it: distance << KEY_SHIFT | index of numbers[]. */
#define KEY_SHIFT 8
#define KEYS	  (1u << (MP_ROWS_GRANULE_SHIFT + KEY_SHIFT))

struct layer {
	const struct mp_row *rows; /* of the page */
	uint32_t nr;
	uint16_t before;		  /* rule at the page's beginning */
	uint8_t index[MP_ROWS_RULES_MAX]; /* of numbers[], + 1; 0: not there */
	uint16_t numbers[MP_ROWS_NUMBERS_MAX];
	uint32_t nr_numbers;
	uint16_t pairs[MP_ROWS_SHORT];
	uint32_t nr_pairs, nr_codes;
	uint16_t count[KEYS];		   /* of the rows with this key */
	uint8_t code[KEYS];		   /* index of its pair, + 1; 0: none */
	uint32_t met[MP_ROWS_IN_PAGE_MAX]; /* keys, in the order in which they were met first */
	uint32_t nr_met;
};

/* Return: false: the page has too many rules. */
static bool add_number(struct layer *l, uint16_t number)
{
	if (l->index[number])
		return true;
	if (l->nr_numbers == MP_ROWS_NUMBERS_MAX)
		return false;
	l->numbers[l->nr_numbers++] = number;
	l->index[number] = (uint8_t)l->nr_numbers;
	return true;
}

/* Return: the key of row @i. */
static uint32_t key_of(const struct layer *l, uint32_t i)
{
	uint32_t low = l->rows[i].low, from = low & ~((1u << MP_ROWS_GRANULE_SHIFT) - 1);

	if (i && l->rows[i - 1].low > from)
		from = l->rows[i - 1].low;
	return (low - from) << KEY_SHIFT | (l->index[l->rows[i].number] - 1u);
}

static void forget_page(struct layer *l)
{
	while (l->nr_numbers)
		l->index[l->numbers[--l->nr_numbers]] = 0;
	while (l->nr_met) {
		l->nr_met--;
		l->count[l->met[l->nr_met]] = 0;
		l->code[l->met[l->nr_met]] = 0;
	}
	l->nr_pairs = l->nr_codes = 0;
}

static bool find_numbers(struct layer *l)
{
	uint32_t granule = MP_ROWS_GRANULES, nr = 0;

	add_number(l, l->before);
	for (uint32_t i = 0; i < l->nr; i++) {
		if (l->rows[i].low >> MP_ROWS_GRANULE_SHIFT != granule)
			nr = 0;
		granule = l->rows[i].low >> MP_ROWS_GRANULE_SHIFT;
		if (++nr > MP_ROWS_STEPS_MAX || !add_number(l, l->rows[i].number))
			return false;
	}
	return true;
}

/* Sorts numbers[] by how many rows have them: only the first ones have codes of two bytes. */
static void sort_numbers(struct layer *l)
{
	uint32_t nr[MP_ROWS_NUMBERS_MAX] = {0}, most;
	uint16_t number;

	for (uint32_t i = 0; i < l->nr; i++)
		nr[l->index[l->rows[i].number] - 1]++;
	for (uint32_t i = 0; i < l->nr_numbers; i++) {
		most = i;
		for (uint32_t j = i + 1; j < l->nr_numbers; j++)
			if (nr[j] > nr[most])
				most = j;
		number = l->numbers[most];
		l->numbers[most] = l->numbers[i];
		l->numbers[i] = number;
		nr[most] = nr[i];
		l->index[number] = (uint8_t)(i + 1);
	}
}

/* Return: the bytes of a row that has no pair. */
static uint32_t size_without(uint32_t key)
{
	uint32_t distance = key >> KEY_SHIFT, index = key & UINT8_MAX;

	return index < 1u << MP_ROWS_SHORT_SHIFT &&
			       distance << MP_ROWS_SHORT_SHIFT < (MP_ROWS_LONG - MP_ROWS_SHORT) << 8
		       ? 2
		       : 3;
}

/* Return: bytes that a pair for this key saves, beside the two bytes of the pair. */
static uint32_t saves(const struct layer *l, uint32_t key)
{
	uint32_t distance = key >> KEY_SHIFT, shift = mp_rows_pair_shift(l->nr_numbers);

	return distance << shift > UINT16_MAX ? 0 : l->count[key] * (size_without(key) - 1);
}

static void give_pair(struct layer *l, uint32_t key)
{
	l->pairs[l->nr_pairs++] = (uint16_t)(key >> KEY_SHIFT << mp_rows_pair_shift(l->nr_numbers) |
					     (key & UINT8_MAX));
	l->code[key] = (uint8_t)l->nr_pairs;
}

/* Gives pairs to the rows for which these save most. */
static void choose_pairs(struct layer *l)
{
	uint32_t least = 2, nr_from[UINT8_MAX + 1] = {0}, saved, key;

	for (uint32_t i = 0; i < l->nr; i++) {
		key = key_of(l, i);
		if (!l->count[key]++)
			l->met[l->nr_met++] = key;
	}
	for (uint32_t i = 0; i < l->nr_met; i++) {
		saved = saves(l, l->met[i]);
		nr_from[saved < UINT8_MAX ? saved : UINT8_MAX]++;
	}
	for (uint32_t i = UINT8_MAX; i-- > 0;)
		nr_from[i] += nr_from[i + 1];
	do {
		least++;
	} while (least < UINT8_MAX && nr_from[least] > MP_ROWS_SHORT);
	for (uint32_t i = 0; i < l->nr_met && l->nr_pairs < MP_ROWS_SHORT; i++)
		if (saves(l, l->met[i]) >= least)
			give_pair(l, l->met[i]);
	/* If short codes are left, pairs that save one byte less get them. */
	for (uint32_t i = 0; i < l->nr_met && least > 3 && l->nr_pairs < MP_ROWS_SHORT; i++)
		if (saves(l, l->met[i]) == least - 1)
			give_pair(l, l->met[i]);
	for (uint32_t i = 0; i < l->nr_met; i++) {
		key = l->met[i];
		l->nr_codes += l->count[key] * (l->code[key] ? 1 : size_without(key));
	}
}

static size_t narrow_size(const struct layer *l)
{
	return (sizeof(struct mp_rows_page) + MP_ROWS_GRANULES + 2 * l->nr_numbers +
		2 * l->nr_pairs + l->nr_codes + 3) &
	       ~(size_t)3;
}

static size_t wide_size(const struct layer *l)
{
	return sizeof(struct mp_rows_page) + (l->nr + 1) * sizeof(struct mp_row);
}

static void write_wide(const struct layer *l, struct mp_rows_page *page)
{
	struct mp_row *out = (struct mp_row *)(page + 1);
	uint32_t granule = 0;

	out[0] = (struct mp_row){.number = l->before};
	for (uint32_t i = 0; i < l->nr; i++) {
		for (; granule <= l->rows[i].low >> MP_ROWS_GRANULE_SHIFT; granule++)
			page->first[granule] = (uint16_t)(i + 1);
		out[i + 1] = l->rows[i];
	}
	for (; granule <= MP_ROWS_GRANULES; granule++)
		page->first[granule] = (uint16_t)(l->nr + 1);
}

/* Return: the bytes of the row's code, written at @to. */
static uint32_t write_row(const struct layer *l, uint32_t key, uint8_t *to)
{
	uint32_t distance = key >> KEY_SHIFT, index = key & UINT8_MAX;
	uint32_t bits = distance << MP_ROWS_SHORT_SHIFT | index;

	if (l->code[key]) {
		to[0] = (uint8_t)(l->code[key] - 1);
		return 1;
	}
	if (size_without(key) == 2) {
		to[0] = (uint8_t)(MP_ROWS_SHORT + (bits >> 8));
		to[1] = (uint8_t)bits;
		return 2;
	}
	to[0] = (uint8_t)(MP_ROWS_LONG | distance >> 8);
	to[1] = (uint8_t)distance;
	to[2] = (uint8_t)index;
	return 3;
}

static void write_narrow(const struct layer *l, struct mp_rows_page *page)
{
	uint8_t *start = (uint8_t *)(page + 1), *codes;
	uint16_t *numbers = (uint16_t *)(start + MP_ROWS_GRANULES), before = l->before;
	uint32_t granule = 0, at = 0;

	page->nr_numbers = (uint8_t)l->nr_numbers;
	page->nr_pairs = (uint8_t)l->nr_pairs;
	memcpy(numbers, l->numbers, l->nr_numbers * sizeof(numbers[0]));
	memcpy(numbers + l->nr_numbers, l->pairs, l->nr_pairs * sizeof(l->pairs[0]));
	codes = (uint8_t *)(numbers + l->nr_numbers + l->nr_pairs);
	for (uint32_t i = 0; i <= l->nr; i++) {
		uint32_t upto = i < l->nr ? (l->rows[i].low >> MP_ROWS_GRANULE_SHIFT) + 1u
					  : MP_ROWS_GRANULES;

		for (; granule < upto; granule++) {
			page->first[granule] = (uint16_t)at;
			start[granule] = (uint8_t)(l->index[before] - 1);
		}
		if (i == l->nr)
			break;
		at += write_row(l, key_of(l, i), codes + at);
		before = l->rows[i].number;
	}
	page->first[MP_ROWS_GRANULES] = (uint16_t)at;
}

/* Return: bytes of the page, written to zeros at @page. */
static size_t write_page(struct layer *l, struct mp_rows_page *page)
{
	size_t size = wide_size(l);
	bool is_narrow = find_numbers(l);

	if (is_narrow) {
		sort_numbers(l);
		choose_pairs(l);
		is_narrow = l->nr_codes <= UINT16_MAX && narrow_size(l) < size;
	}
	if (is_narrow) {
		size = narrow_size(l);
		write_narrow(l, page);
	} else {
		write_wide(l, page);
	}
	forget_page(l);
	return size;
}

static int lay_all(struct layer *l, const struct mp_rows *rows, struct mp_rows_head *head,
		   size_t *size)
{
	struct mp_row_rule *rules = (struct mp_row_rule *)(head + 1);
	uint32_t *pages = (uint32_t *)(rules + rows->nr_rules), nr;
	size_t at = (size_t)((uint8_t *)(pages + rows->nr_pages + 1) - (uint8_t *)head);

	*head = (struct mp_rows_head){MP_ROWS_LAID_MAGIC, rows->nr_rules, rows->nr_rows,
				      rows->nr_pages, rows->base};
	memcpy(rules, rows->rules, rows->nr_rules * sizeof(rules[0]));
	for (nr = 0; nr < rows->nr_pages; nr++) {
		uint32_t from = rows->pages[nr];

		l->rows = rows->rows + from;
		l->nr = rows->pages[nr + 1] - from;
		if (l->nr > MP_ROWS_IN_PAGE_MAX)
			return -EFBIG;
		l->before = rows->rows[(from ? from : rows->nr_rows) - 1].number;
		pages[nr] = (uint32_t)at;
		at += write_page(l, (struct mp_rows_page *)((uint8_t *)head + at));
	}
	pages[nr] = (uint32_t)at;
	*size = (at + 7) & ~(size_t)7;
	return 0;
}

int mp_rows_lay(const struct mp_rows *rows, void **bytes, size_t *size)
{
	/* No page is larger than a wide one. */
	size_t max = mp_rows_size(rows->nr_rules, rows->nr_rows, rows->nr_pages) +
		     rows->nr_pages * (sizeof(struct mp_rows_page) + sizeof(struct mp_row));
	struct layer *layer = calloc(1, sizeof(*layer));
	void *table = calloc(1, max + 8), *less;
	int ret = -ENOMEM;

	if (layer && table)
		ret = lay_all(layer, rows, table, size);
	free(layer);
	if (ret) {
		free(table);
		return ret;
	}
	less = realloc(table, *size);
	*bytes = less ? less : table;
	return 0;
}
