// SPDX-License-Identifier: Apache-2.0
/* rows_laid - searches rows that lie page by page; see rows_laid.h. */
#include "libprof/unwind/rows_laid.h"

#include <stdlib.h>
#include <string.h>

/* The rows of one page. */
struct slice {
	const struct mp_row *rows;
	uint32_t nr;
	bool is_own; /* the first of them begins in this page */
};

static struct slice laid_page(const struct mp_rows *rows, uint32_t page)
{
	const struct mp_rows_page *at = (const void *)(rows->laid + rows->pages[page]);

	return (struct slice){(const struct mp_row *)(at + 1), at->first[MP_ROWS_GRANULES],
			      at->has_first};
}

/* Return: whether @vaddr lies in a page. *@index: of its row in *@slice. */
static bool search(const struct mp_rows *rows, uint64_t vaddr, uint32_t *page, struct slice *slice,
		   uint32_t *index)
{
	uint64_t nr = (vaddr - rows->base) / MP_ROWS_PAGE;
	uint32_t lo = 1, hi, mid;

	if (vaddr < rows->base || nr >= rows->nr_pages)
		return false;
	*page = (uint32_t)nr;
	*slice = laid_page(rows, *page);
	/* Row 0 lies at or below each address of the page. Row lo becomes the first above @vaddr. */
	hi = slice->nr;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (slice->rows[mid].low <= (uint16_t)vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	*index = lo - 1;
	return true;
}

const struct mp_row_rule *mp_rows_laid_find(const struct mp_rows *rows, uint64_t vaddr,
					    const struct mp_row_rule *none)
{
	struct slice slice;
	uint32_t page, i;

	if (!search(rows, vaddr, &page, &slice, &i))
		return none;
	return &rows->rules[slice.rows[i].number];
}

bool mp_rows_laid_entry(const struct mp_rows *rows, uint64_t vaddr, uint64_t *start)
{
	const struct mp_row_rule *rule;
	struct slice slice;
	uint32_t page, i;

	if (!search(rows, vaddr, &page, &slice, &i))
		return false;
	for (;;) {
		rule = &rows->rules[slice.rows[i].number];
		/* See mp_rows_entry(). */
		if (rule->stop && rule->stop != MP_ROW_STOP_STACK)
			return false;
		if (rule->flags & MP_ROW_ENTRIES && (i || slice.is_own)) {
			*start = rows->base + (uint64_t)page * MP_ROWS_PAGE + slice.rows[i].low;
			return true;
		}
		if (i) {
			i--;
		} else if (page) {
			slice = laid_page(rows, --page);
			i = slice.nr - 1;
		} else {
			return false;
		}
	}
}

/* ---- both kinds ----------------------------------------------------------------------------- */

/* Gives the rows that page @page has of its own. */
static struct slice own_rows(const struct mp_rows *rows, uint32_t page)
{
	struct slice slice;

	if (!rows->laid)
		return (struct slice){rows->rows + rows->pages[page],
				      rows->pages[page + 1] - rows->pages[page], true};
	slice = laid_page(rows, page);
	if (!slice.is_own) {
		slice.rows++;
		slice.nr--;
	}
	return slice;
}

bool mp_rows_equal(const struct mp_rows *a, const struct mp_rows *b)
{
	if (a->base != b->base || a->nr_rules != b->nr_rules || a->nr_rows != b->nr_rows ||
	    a->nr_pages != b->nr_pages)
		return false;
	if (a->nr_rules && memcmp(a->rules, b->rules, a->nr_rules * sizeof(a->rules[0])))
		return false;
	for (uint32_t page = 0; page < a->nr_pages; page++) {
		const struct slice of_a = own_rows(a, page), of_b = own_rows(b, page);

		if (of_a.nr != of_b.nr ||
		    (of_a.nr && memcmp(of_a.rows, of_b.rows, of_a.nr * sizeof(of_a.rows[0]))))
			return false;
	}
	return true;
}

void *mp_rows_pack(const struct mp_rows *rows, size_t *size)
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
	rules = (void *)(head + 1);
	memcpy(rules, rows->rules, rows->nr_rules * sizeof(rules[0]));
	pages = (void *)(rules + rows->nr_rules);
	out = (void *)(pages + rows->nr_pages + 1);
	for (uint32_t page = 0; page < rows->nr_pages; page++) {
		const struct slice own = own_rows(rows, page);

		pages[page] = nr;
		memcpy(out + nr, own.rows, own.nr * sizeof(out[0]));
		nr += own.nr;
	}
	pages[rows->nr_pages] = nr;
	return head;
}
