// SPDX-License-Identifier: Apache-2.0
/*
 * rows_laid - unwind rows page by page, as walks in the kernel want them, looked up where they lie. So
 * morphd needs no second copy of them. Called by rows and by the daemon.
 *
 * Each page is a struct mp_rows_page, then its rows. Its first row begins at its first address: where the
 * page has no row of its own there, this is the row that the page before ends with. In the first page,
 * it is the last row of all, which says that nothing is known.
 */
#ifndef MP_ROWS_LAID_H
#define MP_ROWS_LAID_H

#include "libprof/unwind/rows.h"

#define MP_ROWS_GRANULES 128

struct mp_rows_page {
	uint16_t first[MP_ROWS_GRANULES + 1]; /* of each granule: rows before it; then all rows */
	uint16_t has_first;		      /* 1: the first row is the page's own */
};

/* mp_rows_laid_find - as mp_rows_find(). @none: the answer outside of all pages. */
const struct mp_row_rule *mp_rows_laid_find(const struct mp_rows *rows, uint64_t vaddr,
					    const struct mp_row_rule *none);
/* mp_rows_laid_entry - as mp_rows_entry(). */
bool mp_rows_laid_entry(const struct mp_rows *rows, uint64_t vaddr, uint64_t *start);

/* Return: the same rules at the same addresses. */
bool mp_rows_equal(const struct mp_rows *a, const struct mp_rows *b);
/*
 * mp_rows_pack - makes the bytes that mp_rows_open() reads, of rows of either kind that are not empty.
 * Return: bytes for free(), *@size of them; NULL: no memory.
 */
void *mp_rows_pack(const struct mp_rows *rows, size_t *size);

#endif
