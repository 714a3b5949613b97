/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rows - unwind rows of one file, checked once and then looked up in interrupts.
 * Their bytes come from the reader and may be hostile. This file and rows.c know nothing of
 * the kernel, so that tests and fuzzers compile them, too.
 */
#ifndef MORPH_ROWS_TABLE_H
#define MORPH_ROWS_TABLE_H

#include <linux/types.h>

#include "kmod/uapi/morph_rows.h"

/* Granule of the index that is made here: so few rows lie in one that the search is short. */
#define MORPH_ROWS_GRANULE_SHIFT 9
#define MORPH_ROWS_GRANULE	 (1U << MORPH_ROWS_GRANULE_SHIFT)
#define MORPH_ROWS_GRANULES	 (MORPH_ROWS_PAGE / MORPH_ROWS_GRANULE) /* in a page */

/* Points into the bytes that were checked, and to the index. */
struct morph_rows_table {
	u64 base, size; /* link-time addresses that the rows cover */
	const struct morph_row_rule *rules;
	const struct morph_row *rows;
	const u32 *index; /* of the first row in each granule; then nr_rows */
	const u32 *pages;
	u32 nr_rules, nr_rows, nr_pages;
};

/*
 * morph_rows_check - checks the @size bytes at @bytes (8-aligned), which must outlive *@out
 * and never change. Sets all but @out->index. Return: 0, -EBADMSG.
 */
int morph_rows_check(const void *bytes, size_t size, struct morph_rows_table *out);

/* Return: bytes of the index of checked rows. */
size_t morph_rows_index_size(const struct morph_rows_table *rows);
/* Fills @index, which must outlive @rows, and sets @rows->index. */
void morph_rows_make_index(struct morph_rows_table *rows, u32 *index);

/*
 * morph_rows_find - the rule of the link-time address @vaddr. Return: NULL outside of all rows.
 */
static inline const struct morph_row_rule *morph_rows_find(const struct morph_rows_table *rows,
							   u64 vaddr)
{
	u64 off = vaddr - rows->base;
	const u32 *index;
	u32 from, half, nr;
	u16 low = vaddr;

	if (off >= rows->size)
		return NULL;
	index = rows->index + (off >> MORPH_ROWS_GRANULE_SHIFT);
	from = index[0];
	nr = index[1] - from;
	/* The row of @vaddr is the last one that begins at or below it; all before @from do. */
	while (nr) {
		half = (nr + 1) / 2;
		if (rows->rows[from + half - 1].low <= low)
			from += half;
		nr -= half;
	}
	return from ? &rows->rules[rows->rows[from - 1].number] : NULL;
}

#endif
