// SPDX-License-Identifier: Apache-2.0
/* rows - checks and searches unwind rows; see rows.h. */
#include "libprof/base/search.h"
#include "libprof/unwind/rows_head_private.h"
#include "libprof/unwind/rows.h"

#include <errno.h>
#include <string.h>

#include "libprof/unwind/rows_laid.h"

static const struct mp_row_rule no_row = {.cfa = MP_ROW_STOP, .stop = MP_ROW_STOP_NO_ROW};

const char *mp_row_stop_name(enum mp_row_stop stop)
{
	static const char *const names[] = {
		[MP_ROW_STOP_NONE] = "none",
		[MP_ROW_STOP_NO_ROW] = "no FDE",
		[MP_ROW_STOP_EXPRESSION] = "unknown expression",
		[MP_ROW_STOP_RETURN] = "unknown place of the return address",
		[MP_ROW_STOP_PROGRAM] = "ambiguous program",
		[MP_ROW_STOP_OVERLAP] = "two FDEs at one address",
		[MP_ROW_STOP_RANGE] = "out of range",
		[MP_ROW_STOP_STACK] = "another stack",
	};

	return stop < MP_NR_ROW_STOP ? names[stop] : "?";
}

/* Fields that a rule's kind does not use are 0, so that equal rules have equal bytes. */
static bool row_rule_is_sound(const struct mp_row_rule *r)
{
	static const uint8_t zero[16];

	if (r->cfa >= MP_NR_ROW_CFA || r->cfa_reg >= 16 || r->rbp >= MP_NR_ROW_SAVED ||
	    r->flags & ~(MP_ROW_SIGNAL | MP_ROW_BOTTOM | MP_ROW_ENTRIES))
		return false;
	if (r->cfa == MP_ROW_STOP || r->flags & MP_ROW_BOTTOM)
		return !r->cfa && !r->cfa_reg && !r->rbp && !r->ra &&
		       !memcmp(&r->cfa_off, zero, sizeof(zero)) && r->stop < MP_NR_ROW_STOP &&
		       !r->stop == !!(r->flags & MP_ROW_BOTTOM);
	if (r->stop || (r->ra != MP_ROW_AT_CFA && r->ra != MP_ROW_AT_RSP && r->ra != MP_ROW_AT_RBP))
		return false;
	if (r->cfa == MP_ROW_REGISTER && r->cfa_add)
		return false;
	return !r->rbp_off || (r->rbp != MP_ROW_SAME && r->rbp != MP_ROW_UNKNOWN);
}

static bool is_page_in_order(const struct mp_rows *rows, uint32_t page)
{
	uint32_t from = rows->pages[page], to = rows->pages[page + 1];

	if (from > to || to > rows->nr_rows)
		return false;
	for (uint32_t i = from; i < to; i++) {
		if (rows->rows[i].number >= rows->nr_rules)
			return false;
		if (i > from && rows->rows[i].low <= rows->rows[i - 1].low)
			return false;
		if (i && rows->rows[i].number == rows->rows[i - 1].number)
			return false;
	}
	return true;
}

static bool are_in_order(const struct mp_rows *rows)
{
	const struct mp_row_rule *last;

	if (rows->pages[0] || rows->pages[rows->nr_pages] != rows->nr_rows)
		return false;
	for (uint32_t i = 0; i < rows->nr_pages; i++)
		if (!is_page_in_order(rows, i))
			return false;
	if (!rows->nr_rows)
		return true;
	last = &rows->rules[rows->rows[rows->nr_rows - 1].number];
	return last->cfa == MP_ROW_STOP && last->stop == MP_ROW_STOP_NO_ROW;
}

bool mp_rows_head_is_sound(const struct mp_rows_head *head)
{
	return head->nr_rules <= MP_ROWS_RULES_MAX && head->nr_rows <= MP_ROWS_MAX &&
	       head->nr_pages <= MP_ROWS_PAGES_MAX && head->base < MP_ROWS_BASE_END &&
	       head->base % MP_ROWS_PAGE == 0;
}

void mp_rows_head_read(const struct mp_rows_head *head, struct mp_rows *out)
{
	out->base = head->base;
	out->nr_rules = head->nr_rules;
	out->nr_rows = head->nr_rows;
	out->rules = (const struct mp_row_rule *)(head + 1);
	out->nr_pages = head->nr_pages;
	out->pages = (const uint32_t *)(out->rules + out->nr_rules);
}

int mp_rows_check_rules(const char *path, const struct mp_rows *rows, struct mp_err *err)
{
	for (uint32_t i = 0; i < rows->nr_rules; i++)
		if (!row_rule_is_sound(&rows->rules[i]))
			return mp_err_set(err, EBADMSG, "%s: unwind rows: rule %u makes no sense",
					  path, i);
	return 0;
}

int mp_rows_open(const char *path, const void *bytes, size_t size, struct mp_rows *out,
		 struct mp_err *err)
{
	const struct mp_rows_head *head = bytes;
	size_t used;
	int ret;

	*out = (struct mp_rows){0};
	if (size < sizeof(*head) || head->magic != MP_ROWS_MAGIC)
		return mp_err_set(err, EBADMSG, "%s: unwind rows: not a table of rows", path);
	if (!mp_rows_head_is_sound(head) ||
	    size != mp_rows_size(head->nr_rules, head->nr_rows, head->nr_pages))
		return mp_err_set(err, EBADMSG, "%s: unwind rows: sizes make no sense", path);
	mp_rows_head_read(head, out);
	out->rows = (const struct mp_row *)(out->pages + out->nr_pages + 1);
	used = (size_t)((const uint8_t *)(out->rows + out->nr_rows) - (const uint8_t *)bytes);
	for (; used < size; used++)
		if (((const uint8_t *)bytes)[used])
			return mp_err_set(err, EBADMSG, "%s: unwind rows: bytes behind them", path);
	ret = mp_rows_check_rules(path, out, err);
	if (ret)
		return ret;
	if (!are_in_order(out))
		return mp_err_set(err, EBADMSG, "%s: unwind rows: not in order", path);
	return 0;
}

/* Return: number of rows that lie at or below @vaddr; 0 outside of the table. *@page: its page. */
static uint32_t rows_up_to(const struct mp_rows *rows, uint64_t vaddr, uint32_t *page)
{
	uint64_t nr = (vaddr - rows->base) / MP_ROWS_PAGE;

	if (vaddr < rows->base || nr >= rows->nr_pages)
		return 0;
	*page = (uint32_t)nr;
	return mp_search(i, rows->pages[nr], rows->pages[nr + 1],
			 rows->rows[i].low <= (uint16_t)vaddr);
}

const struct mp_row_rule *mp_rows_find(const struct mp_rows *rows, uint64_t vaddr)
{
	uint32_t page, nr;

	if (rows->laid)
		return mp_rows_laid_find(rows, vaddr, &no_row);
	nr = rows_up_to(rows, vaddr, &page);
	return nr ? &rows->rules[rows->rows[nr - 1].number] : &no_row;
}

bool mp_rows_entry(const struct mp_rows *rows, uint64_t vaddr, uint64_t *start)
{
	const struct mp_row_rule *rule;
	uint32_t page = 0, nr;

	if (rows->laid)
		return mp_rows_laid_entry(rows, vaddr, start);
	nr = rows_up_to(rows, vaddr, &page);
	while (nr--) {
		rule = &rows->rules[rows->rows[nr].number];
		/*
		 * A row that stops may begin an FDE, too: what lies before it is not known to belong. But
		 * a change of stacks lies within its FDE.
		 */
		if (rule->stop && rule->stop != MP_ROW_STOP_STACK)
			return false;
		if (!(rule->flags & MP_ROW_ENTRIES))
			continue;
		while (nr < rows->pages[page])
			page--;
		*start = rows->base + (uint64_t)page * MP_ROWS_PAGE + rows->rows[nr].low;
		return true;
	}
	return false;
}
