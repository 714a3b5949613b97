// SPDX-License-Identifier: Apache-2.0
/* rows_laid - searches rows that lie page by page; see rows_laid.h. */
#include "libprof/unwind/rows_laid.h"

#include <stdlib.h>
#include <string.h>

#include "libprof/unwind/rows_page_private.h"

size_t mp_rows_page_size(const struct mp_rows_page *page)
{
	size_t size = sizeof(*page);

	if (!page->nr_numbers)
		return size + page->first[MP_ROWS_GRANULES] * sizeof(struct mp_row);
	size += MP_ROWS_GRANULES + page->nr_numbers * sizeof(uint16_t) +
		page->nr_pairs * sizeof(uint16_t) + page->first[MP_ROWS_GRANULES];
	return (size + 3) & ~(size_t)3;
}

/* ---- the rows of a granule -------------------------------------------------------------------- */

/* Goes through the rows that begin in one granule. */
struct cursor {
	struct mp_page_parts parts;
	uint32_t at, end; /* codes or rows */
	uint32_t low;	  /* of the row met last, or of the granule */
};

static struct cursor rows_of_granule(const struct mp_rows_page *page, uint32_t granule)
{
	struct cursor c = {.parts = mp_page_parts(page),
			   .at = page->first[granule],
			   .end = page->first[granule + 1],
			   .low = granule << MP_ROWS_GRANULE_SHIFT};

	/* The first row of a wide page is not the page's own. */
	if (c.parts.rows && !granule)
		c.at = 1;
	return c;
}

static bool next_row(struct cursor *c, struct mp_row *row)
{
	struct mp_page_row next;

	if (c->at >= c->end)
		return false;
	if (c->parts.rows) {
		*row = c->parts.rows[c->at++];
		return true;
	}
	next = mp_page_row(&c->parts, &c->at);
	c->low += next.distance;
	*row = (struct mp_row){(uint16_t)c->low, c->parts.numbers[next.index]};
	return true;
}

/* Return: the rule of the row that begins last before the granule. */
static uint16_t number_before(const struct mp_rows_page *page, uint32_t granule)
{
	const struct mp_page_parts parts = mp_page_parts(page);

	if (!parts.rows)
		return parts.numbers[parts.start[granule]];
	return parts.rows[granule ? page->first[granule] - 1 : 0].number;
}

/* ---- searching ------------------------------------------------------------------------------ */

static bool page_of(const struct mp_rows *rows, uint64_t vaddr, uint32_t *page)
{
	uint64_t nr = (vaddr - rows->base) / MP_ROWS_PAGE;

	*page = (uint32_t)nr;
	return vaddr >= rows->base && nr < rows->nr_pages;
}

const struct mp_row_rule *mp_rows_laid_find(const struct mp_rows *rows, uint64_t vaddr,
					    const struct mp_row_rule *none)
{
	uint32_t nr, granule = (uint16_t)vaddr >> MP_ROWS_GRANULE_SHIFT;
	const struct mp_rows_page *page;
	struct cursor cursor;
	struct mp_row row;
	uint16_t number;

	if (!page_of(rows, vaddr, &nr))
		return none;
	page = mp_rows_laid_page(rows, nr);
	number = number_before(page, granule);
	cursor = rows_of_granule(page, granule);
	while (next_row(&cursor, &row) && row.low <= (uint16_t)vaddr)
		number = row.number;
	return &rows->rules[number];
}

enum nearest {
	NOTHING,
	ENTRY,
	STOP, /* it may begin an FDE, too: what lies before it is not known to belong */
};

/* Finds the last row of the granule at or below @low that begins an FDE or stops. */
static enum nearest nearest_in(const struct mp_rows *rows, const struct mp_rows_page *page,
			       uint32_t granule, uint16_t low, uint16_t *entry)
{
	struct cursor cursor = rows_of_granule(page, granule);
	enum nearest nearest = NOTHING;
	struct mp_row row;

	while (next_row(&cursor, &row) && row.low <= low) {
		const struct mp_row_rule *rule = &rows->rules[row.number];

		/* See mp_rows_entry(). */
		if (rule->stop) {
			if (rule->stop != MP_ROW_STOP_STACK)
				nearest = STOP;
		} else if (rule->flags & MP_ROW_ENTRIES) {
			nearest = ENTRY;
			*entry = row.low;
		}
	}
	return nearest;
}

bool mp_rows_laid_entry(const struct mp_rows *rows, uint64_t vaddr, uint64_t *start)
{
	uint32_t page, granule = (uint16_t)vaddr >> MP_ROWS_GRANULE_SHIFT;
	enum nearest nearest;
	uint16_t low = (uint16_t)vaddr, entry = 0;

	if (!page_of(rows, vaddr, &page))
		return false;
	for (;;) {
		nearest = nearest_in(rows, mp_rows_laid_page(rows, page), granule, low, &entry);
		if (nearest == ENTRY)
			*start = rows->base + (uint64_t)page * MP_ROWS_PAGE + entry;
		if (nearest != NOTHING || (!granule && !page))
			return nearest == ENTRY;
		low = UINT16_MAX;
		if (!granule)
			page--;
		granule = granule ? granule - 1 : MP_ROWS_GRANULES - 1;
	}
}

/* ---- whole tables ------------------------------------------------------------------------------ */

bool mp_rows_equal(const struct mp_rows *a, const struct mp_rows *b)
{
	if (a->base != b->base || a->nr_rules != b->nr_rules || a->nr_rows != b->nr_rows ||
	    a->nr_pages != b->nr_pages)
		return false;
	if (a->nr_rules && memcmp(a->rules, b->rules, a->nr_rules * sizeof(a->rules[0])))
		return false;
	for (uint32_t nr = 0; nr < a->nr_pages; nr++) {
		const struct mp_rows_page *of_a = mp_rows_laid_page(a, nr);
		const struct mp_rows_page *of_b = mp_rows_laid_page(b, nr);
		size_t size = mp_rows_page_size(of_a);

		if (size != mp_rows_page_size(of_b) || memcmp(of_a, of_b, size))
			return false;
	}
	return true;
}

void *mp_rows_gather(const struct mp_rows *rows, size_t *size)
{
	size_t at = sizeof(struct mp_rows_head) + rows->nr_rules * sizeof(rows->rules[0]) +
		    ((size_t)rows->nr_pages + 1) * sizeof(uint32_t);
	struct mp_rows_head *head;
	struct mp_row_rule *rules;
	uint32_t *pages, nr;

	*size = at;
	for (nr = 0; nr < rows->nr_pages; nr++)
		*size += mp_rows_page_size(mp_rows_laid_page(rows, nr));
	*size = (*size + 7) & ~(size_t)7;
	head = calloc(1, *size);
	if (!head)
		return NULL;
	*head = (struct mp_rows_head){MP_ROWS_LAID_MAGIC, rows->nr_rules, rows->nr_rows,
				      rows->nr_pages, rows->base};
	rules = (struct mp_row_rule *)(head + 1);
	memcpy(rules, rows->rules, rows->nr_rules * sizeof(rules[0]));
	pages = (uint32_t *)(rules + rows->nr_rules);
	for (nr = 0; nr < rows->nr_pages; nr++) {
		const struct mp_rows_page *page = mp_rows_laid_page(rows, nr);

		pages[nr] = (uint32_t)at;
		memcpy((uint8_t *)head + at, page, mp_rows_page_size(page));
		at += mp_rows_page_size(page);
	}
	pages[nr] = (uint32_t)at;
	return head;
}

void *mp_rows_flatten(const struct mp_rows *rows, size_t *size)
{
	struct mp_rows_head *head;
	struct mp_row_rule *rules;
	struct mp_row *out;
	uint32_t *pages, nr = 0;

	*size = mp_rows_size(rows->nr_rules, rows->nr_rows, rows->nr_pages);
	head = calloc(1, *size);
	if (!head)
		return NULL;
	*head = (struct mp_rows_head){MP_ROWS_MAGIC, rows->nr_rules, rows->nr_rows, rows->nr_pages,
				      rows->base};
	rules = (struct mp_row_rule *)(head + 1);
	memcpy(rules, rows->rules, rows->nr_rules * sizeof(rules[0]));
	pages = (uint32_t *)(rules + rows->nr_rules);
	out = (struct mp_row *)(pages + rows->nr_pages + 1);
	for (uint32_t page = 0; page < rows->nr_pages; page++) {
		pages[page] = nr;
		for (uint32_t granule = 0; granule < MP_ROWS_GRANULES; granule++) {
			struct cursor c = rows_of_granule(mp_rows_laid_page(rows, page), granule);

			while (next_row(&c, &out[nr]))
				nr++;
		}
	}
	pages[rows->nr_pages] = nr;
	return head;
}

size_t mp_rows_size(uint32_t nr_rules, uint32_t nr_rows, uint32_t nr_pages)
{
	size_t size = sizeof(struct mp_rows_head) + nr_rules * sizeof(struct mp_row_rule) +
		      ((size_t)nr_pages + 1) * sizeof(uint32_t) + nr_rows * sizeof(struct mp_row);

	return (size + 7) & ~(size_t)7;
}
