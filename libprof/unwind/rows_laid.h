// SPDX-License-Identifier: Apache-2.0
/*
 * rows_laid - unwind rows page by page, where most rows take one byte. morphd keeps rows in this form, and
 * its BPF programs walk with it; a table of row_format takes twice as much. Called by rows and by the
 * daemon. All numbers are little-endian:
 *
 *	struct mp_rows_head		its magic is MP_ROWS_LAID_MAGIC
 *	struct mp_row_rule rules[nr_rules]
 *	uint32_t pages[nr_pages + 1]	where each 64 KiB begin, in bytes from the table's start; then the end
 *	struct mp_rows_page, and what belongs to it, for each page, a multiple of 4 bytes
 *	zeros up to a multiple of 8
 *
 * A page is read without any other: it says which rule holds where it begins. Pages may be moved apart if
 * the new positions are written to pages[]. In the first page, the rule that holds at the beginning is
 * that of the last row of all, which says that nothing is known.
 *
 * Behind the struct of a *narrow* page:
 *
 *	uint8_t start[MP_ROWS_GRANULES]	rule at the beginning of each granule: an index of numbers[]
 *	uint16_t numbers[nr_numbers]	of rules
 *	uint16_t pairs[nr_pairs]	distance << 7 | index of numbers[]; with more than 128 numbers, << 8
 *	uint8_t codes[]			of the rows
 *
 * The distance of a row is that from the row before it in the granule, of the first one that from the
 * granule's beginning. A row is a code, by its first byte:
 *
 *	below MP_ROWS_SHORT	the index of a pair
 *	below MP_ROWS_LONG	the upper bits of distance << MP_ROWS_SHORT_SHIFT | index of numbers[], of which
 *				the next byte has the lower 8
 *	others			its lowest bit and the next byte are the distance, the byte after it is the
 *				index of numbers[]
 *
 * Behind the struct of a *wide* page are struct mp_row rows[]. The first of them has the rule at the page's
 * beginning, and low = 0; the others are the page's own.
 */
#ifndef MP_ROWS_LAID_H
#define MP_ROWS_LAID_H

#include "libprof/unwind/rows.h"

#define MP_ROWS_LAID_MAGIC 0x3257524dU /* "MRW2" */

#define MP_ROWS_GRANULE_SHIFT 9
#define MP_ROWS_GRANULES      (MP_ROWS_PAGE >> MP_ROWS_GRANULE_SHIFT)

#define MP_ROWS_NUMBERS_MAX 255u
#define MP_ROWS_FEW_NUMBERS 128u
#define MP_ROWS_SHORT	    0xc0u
#define MP_ROWS_SHORT_SHIFT 6
#define MP_ROWS_LONG	    0xfeu
/* The most rows in a granule of a narrow page. So a search takes few steps. */
#define MP_ROWS_STEPS_MAX 128u
/* The most rows in a page; compilers make some thousand. */
#define MP_ROWS_IN_PAGE_MAX 60000u

struct mp_rows_page {
	/* For each granule, how much of the page lies before it: bytes of codes in a narrow page, rows in a wide
	 * one. The last number is that of the whole page. */
	uint16_t first[MP_ROWS_GRANULES + 1];
	uint8_t nr_numbers; /* 0: the page is wide */
	uint8_t nr_pairs;
};

_Static_assert(sizeof(struct mp_rows_page) == 260, "size of a page's struct");

/*
 * mp_rows_lay - makes a table in this form. @rows: checked by mp_rows_open().
 * Return: 0; -ENOMEM; -EFBIG: more rows in a page than code can have.
 * Ownership: the caller frees *@bytes.
 */
int mp_rows_lay(const struct mp_rows *rows, void **bytes, size_t *size);
/*
 * mp_rows_laid_open - as mp_rows_open(), for a table in this form. @bytes may come from anybody.
 * Return: 0, -EBADMSG.
 */
int mp_rows_laid_open(const char *path, const void *bytes, size_t size, struct mp_rows *out,
		      struct mp_err *err);
/*
 * mp_rows_gather - makes one table of pages that were moved apart. Return: bytes for free(), *@size of
 * them; NULL: no memory.
 */
void *mp_rows_gather(const struct mp_rows *rows, size_t *size);
/* mp_rows_flatten - makes the table of row_format that has the same rows. Return: as mp_rows_gather(). */
void *mp_rows_flatten(const struct mp_rows *rows, size_t *size);

/* Return: page @nr of rows that were opened. */
static inline const struct mp_rows_page *mp_rows_laid_page(const struct mp_rows *rows, uint32_t nr)
{
	return (const struct mp_rows_page *)(rows->laid + rows->pages[nr]);
}
/* Return: bytes of the page and what belongs to it, a multiple of 4. */
size_t mp_rows_page_size(const struct mp_rows_page *page);

/* Return: how far the distance of a pair is shifted in a page with so many numbers. */
static inline uint32_t mp_rows_pair_shift(uint32_t nr_numbers)
{
	return nr_numbers > MP_ROWS_FEW_NUMBERS ? 8 : 7;
}

/* mp_rows_laid_find - as mp_rows_find(). @none: the answer outside of all pages. */
const struct mp_row_rule *mp_rows_laid_find(const struct mp_rows *rows, uint64_t vaddr,
					    const struct mp_row_rule *none);
/* mp_rows_laid_entry - as mp_rows_entry(). */
bool mp_rows_laid_entry(const struct mp_rows *rows, uint64_t vaddr, uint64_t *start);

/* Return: the same bytes, wherever their pages are. Both are in this form, or without rows. */
bool mp_rows_equal(const struct mp_rows *a, const struct mp_rows *b);

#endif
