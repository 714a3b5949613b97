// SPDX-License-Identifier: GPL-2.0
/* rows - checks unwind rows; see rows.h. */
#include <linux/errno.h>

#include "kmod/rows.h"

static size_t table_size(const struct morph_rows_head *head)
{
	size_t size = sizeof(*head) + head->nr_rules * sizeof(struct morph_row_rule) +
		      ((size_t)head->nr_pages + 1) * sizeof(u32) +
		      head->nr_rows * sizeof(struct morph_row);

	return (size + 7) & ~(size_t)7;
}

/* A rule that ends the walk: it has a reason, or there is no caller. */
static bool is_sound_end(const struct morph_row_rule *r)
{
	bool is_bottom = r->flags & MORPH_ROW_BOTTOM;

	return r->cfa == MORPH_ROW_STOP && !r->cfa_reg && !r->rbp && !r->ra && !r->cfa_off &&
	       !r->cfa_add && !r->rbp_off && !r->ra_off && r->stop < MORPH_NR_ROW_STOP &&
	       is_bottom == (r->stop == MORPH_ROW_STOP_NONE);
}

static bool is_sound(const struct morph_row_rule *r)
{
	if (r->cfa >= MORPH_NR_ROW_CFA || r->cfa_reg >= MORPH_NR_REGS ||
	    r->rbp >= MORPH_NR_ROW_SAVED ||
	    r->flags & ~(MORPH_ROW_SIGNAL | MORPH_ROW_BOTTOM | MORPH_ROW_ENTRY))
		return false;
	if (r->cfa == MORPH_ROW_STOP || r->flags & MORPH_ROW_BOTTOM)
		return is_sound_end(r);
	if (r->stop ||
	    (r->ra != MORPH_ROW_AT_CFA && r->ra != MORPH_ROW_AT_RSP && r->ra != MORPH_ROW_AT_RBP))
		return false;
	if (r->cfa == MORPH_ROW_REGISTER && r->cfa_add)
		return false;
	return !r->rbp_off || (r->rbp != MORPH_ROW_SAME && r->rbp != MORPH_ROW_UNKNOWN);
}

static bool is_page_in_order(const struct morph_rows_table *rows, u32 page)
{
	u32 from = rows->pages[page], to = rows->pages[page + 1], i;

	if (from > to || to > rows->nr_rows)
		return false;
	for (i = from; i < to; i++) {
		if (rows->rows[i].number >= rows->nr_rules)
			return false;
		if (i > from && rows->rows[i].low <= rows->rows[i - 1].low)
			return false;
		if (i && rows->rows[i].number == rows->rows[i - 1].number)
			return false;
	}
	return true;
}

static bool are_in_order(const struct morph_rows_table *rows)
{
	const struct morph_row_rule *last;
	u32 i;

	if (rows->pages[0] || rows->pages[rows->nr_pages] != rows->nr_rows)
		return false;
	for (i = 0; i < rows->nr_pages; i++)
		if (!is_page_in_order(rows, i))
			return false;
	if (!rows->nr_rows)
		return true;
	last = &rows->rules[rows->rows[rows->nr_rows - 1].number];
	return last->cfa == MORPH_ROW_STOP && last->stop == MORPH_ROW_STOP_NO_ROW;
}

int morph_rows_check(const void *bytes, size_t size, struct morph_rows_table *out)
{
	const struct morph_rows_head *head = bytes;
	const u8 *used;
	u32 i;

	if (size < sizeof(*head) || head->magic != MORPH_ROWS_MAGIC ||
	    head->nr_rules > MORPH_ROWS_RULES_MAX || head->nr_rows > MORPH_ROWS_MAX ||
	    head->nr_pages > MORPH_ROWS_PAGES_MAX || head->base >= MORPH_ROWS_BASE_END ||
	    head->base % MORPH_ROWS_PAGE || size != table_size(head))
		return -EBADMSG;
	*out = (struct morph_rows_table){
		.base = head->base,
		.size = (u64)head->nr_pages * MORPH_ROWS_PAGE,
		.rules = (const void *)(head + 1),
		.nr_rules = head->nr_rules,
		.nr_rows = head->nr_rows,
		.nr_pages = head->nr_pages,
	};
	out->pages = (const void *)(out->rules + out->nr_rules);
	out->rows = (const void *)(out->pages + out->nr_pages + 1);
	for (used = (const void *)(out->rows + out->nr_rows); used < (const u8 *)bytes + size;
	     used++)
		if (*used)
			return -EBADMSG;
	for (i = 0; i < out->nr_rules; i++)
		if (!is_sound(&out->rules[i]))
			return -EBADMSG;
	return are_in_order(out) ? 0 : -EBADMSG;
}

size_t morph_rows_index_size(const struct morph_rows_table *rows)
{
	return ((size_t)rows->nr_pages * MORPH_ROWS_GRANULES + 1) * sizeof(u32);
}

void morph_rows_make_index(struct morph_rows_table *rows, u32 *index)
{
	u32 page, granule, row, end;

	rows->index = index;
	for (page = 0; page < rows->nr_pages; page++) {
		row = rows->pages[page];
		end = rows->pages[page + 1];
		for (granule = 0; granule < MORPH_ROWS_GRANULES; granule++) {
			while (row < end && rows->rows[row].low < granule * MORPH_ROWS_GRANULE)
				row++;
			*index++ = row;
		}
	}
	*index = rows->nr_rows;
}
