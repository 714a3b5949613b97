// SPDX-License-Identifier: Apache-2.0
/* rows_check - checks a table of laid rows; see rows_laid.h. Each byte may be hostile. */
#include <errno.h>
#include <string.h>

#include "libprof/unwind/rows_head_private.h"
#include "libprof/unwind/rows_page_private.h"

#define GRANULE (1u << MP_ROWS_GRANULE_SHIFT)

struct check {
	const struct mp_rows *rows;
	uint32_t nr_rows; /* seen */
	uint32_t number;  /* rule of the row seen last */
};

static bool add_row(struct check *c, uint32_t number)
{
	/* Before the first row, nothing is known, and the first row may say so. */
	bool is_new = number != c->number || !c->nr_rows;

	c->number = number;
	c->nr_rows++;
	return is_new && number < c->rows->nr_rules;
}

/* Checks the rows that begin in a granule, whose codes lie from @at to before @end. */
static bool is_granule_sound(struct check *c, const struct mp_rows_page *page,
			     const struct mp_page_parts *parts, uint32_t at, uint32_t end)
{
	struct mp_page_row row;
	uint32_t low = 0;

	for (uint32_t nr = 0; at < end; nr++) {
		uint8_t code = parts->codes[at];

		if (mp_page_code_size(code) > end - at ||
		    (code < MP_ROWS_SHORT && code >= page->nr_pairs))
			return false;
		row = mp_page_row(parts, &at);
		low += row.distance;
		if (nr == MP_ROWS_STEPS_MAX || (nr && !row.distance) || low >= GRANULE ||
		    row.index >= page->nr_numbers || !add_row(c, parts->numbers[row.index]))
			return false;
	}
	return true;
}

static bool is_narrow_sound(struct check *c, const struct mp_rows_page *page)
{
	const struct mp_page_parts parts = mp_page_parts(page);

	if (page->nr_pairs > MP_ROWS_SHORT || page->first[0])
		return false;
	for (uint32_t i = 0; i < MP_ROWS_GRANULES; i++) {
		uint32_t at = page->first[i], end = page->first[i + 1];

		if (at > end || parts.start[i] >= page->nr_numbers ||
		    parts.numbers[parts.start[i]] != c->number ||
		    !is_granule_sound(c, page, &parts, at, end))
			return false;
	}
	return true;
}

static bool is_wide_sound(struct check *c, const struct mp_rows_page *page)
{
	const struct mp_row *rows = mp_page_parts(page).rows;

	if (page->nr_pairs || page->first[0] != 1 || rows[0].low || rows[0].number != c->number)
		return false;
	for (uint32_t i = 0; i < MP_ROWS_GRANULES; i++) {
		if (page->first[i] > page->first[i + 1])
			return false;
		for (uint32_t at = page->first[i]; at < page->first[i + 1]; at++)
			if (rows[at].low >> MP_ROWS_GRANULE_SHIFT != i ||
			    (at > 1 && rows[at].low <= rows[at - 1].low) ||
			    !add_row(c, rows[at].number))
				return false;
	}
	return true;
}

/* Return: true: page @nr has all its parts before the next one, and zeros between. */
static bool has_size(const struct mp_rows *rows, uint32_t nr)
{
	uint32_t at = rows->pages[nr], end = rows->pages[nr + 1];
	const struct mp_rows_page *page = mp_rows_laid_page(rows, nr);
	size_t size;

	if (at % 4 || end < at || end - at < sizeof(*page))
		return false;
	size = mp_rows_page_size(page);
	if (end - at != size)
		return false;
	if (!page->nr_numbers)
		return page->first[MP_ROWS_GRANULES] >= 1;
	for (const uint8_t *p = mp_page_parts(page).codes + page->first[MP_ROWS_GRANULES];
	     p < rows->laid + end; p++)
		if (*p)
			return false;
	return true;
}

/* Sets the rule that holds before the first row: that of the last one. */
static bool find_first(struct check *c, const struct mp_rows_page *page)
{
	const struct mp_page_parts parts = mp_page_parts(page);
	const struct mp_row_rule *rule;

	if (parts.rows)
		c->number = parts.rows[0].number;
	else if (parts.start[0] < page->nr_numbers)
		c->number = parts.numbers[parts.start[0]];
	else
		return false;
	if (c->number >= c->rows->nr_rules)
		return false;
	rule = &c->rows->rules[c->number];
	return rule->cfa == MP_ROW_STOP && rule->stop == MP_ROW_STOP_NO_ROW;
}

static bool are_pages_sound(const struct mp_rows *rows, size_t start, size_t size)
{
	struct check c = {.rows = rows};
	uint32_t first;

	if (rows->pages[0] != start || rows->pages[rows->nr_pages] > size ||
	    ((rows->pages[rows->nr_pages] + 7u) & ~7u) != size)
		return false;
	for (uint32_t i = 0; i < rows->nr_pages; i++)
		if (rows->pages[i + 1] > rows->pages[rows->nr_pages] || !has_size(rows, i))
			return false;
	if (!rows->nr_pages)
		return !rows->nr_rows;
	if (!find_first(&c, mp_rows_laid_page(rows, 0)))
		return false;
	first = c.number;
	for (uint32_t i = 0; i < rows->nr_pages; i++) {
		const struct mp_rows_page *page = mp_rows_laid_page(rows, i);

		if (!(page->nr_numbers ? is_narrow_sound(&c, page) : is_wide_sound(&c, page)))
			return false;
	}
	return c.nr_rows == rows->nr_rows && c.number == first;
}

int mp_rows_laid_open(const char *path, const void *bytes, size_t size, struct mp_rows *out,
		      struct mp_err *err)
{
	const struct mp_rows_head *head = bytes;
	size_t start;
	int ret;

	*out = (struct mp_rows){0};
	if (size < sizeof(*head) || head->magic != MP_ROWS_LAID_MAGIC)
		return mp_err_set(err, EBADMSG, "%s: unwind rows: not a table of rows", path);
	start = sizeof(*head) + head->nr_rules * sizeof(out->rules[0]) +
		((size_t)head->nr_pages + 1) * sizeof(out->pages[0]);
	if (!mp_rows_head_is_sound(head) || size < start || size > UINT32_MAX || size % 8)
		return mp_err_set(err, EBADMSG, "%s: unwind rows: sizes make no sense", path);
	mp_rows_head_read(head, out);
	out->laid = bytes;
	ret = mp_rows_check_rules(path, out, err);
	if (ret)
		return ret;
	if (!are_pages_sound(out, start, size))
		return mp_err_set(err, EBADMSG, "%s: unwind rows: not in order", path);
	for (size_t at = out->pages[out->nr_pages]; at < size; at++)
		if (out->laid[at])
			return mp_err_set(err, EBADMSG, "%s: unwind rows: bytes behind them", path);
	return 0;
}
