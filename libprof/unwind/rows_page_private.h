// SPDX-License-Identifier: Apache-2.0
/* rows_page_private - reads the rows of one laid page; see rows_laid.h. For rows_laid and rows_check. */
#ifndef MP_ROWS_PAGE_PRIVATE_H
#define MP_ROWS_PAGE_PRIVATE_H

#include "libprof/unwind/rows_laid.h"

/* Where the parts of a page are. Of a wide page, only @rows. */
struct mp_page_parts {
	const uint8_t *start, *codes;
	const uint16_t *numbers, *pairs;
	uint32_t pair_shift;
	const struct mp_row *rows;
};

static inline struct mp_page_parts mp_page_parts(const struct mp_rows_page *page)
{
	struct mp_page_parts parts = {0};

	if (!page->nr_numbers) {
		parts.rows = (const struct mp_row *)(page + 1);
		return parts;
	}
	parts.pair_shift = mp_rows_pair_shift(page->nr_numbers);
	parts.start = (const uint8_t *)(page + 1);
	parts.numbers = (const uint16_t *)(parts.start + MP_ROWS_GRANULES);
	parts.pairs = parts.numbers + page->nr_numbers;
	parts.codes = (const uint8_t *)(parts.pairs + page->nr_pairs);
	return parts;
}

/* The bytes of a code that is no index of pairs[]. */
static inline uint32_t mp_page_code_size(uint8_t code)
{
	return code < MP_ROWS_SHORT ? 1 : code < MP_ROWS_LONG ? 2 : 3;
}

/* A row's distance from the one before, and the index of its number. */
struct mp_page_row {
	uint16_t distance, index;
};

/* Reads the row whose code is at @codes[*@at], and goes to the next one. */
static inline struct mp_page_row mp_page_row(const struct mp_page_parts *parts, uint32_t *at)
{
	const uint8_t *code = &parts->codes[*at];
	uint32_t bits, shift = MP_ROWS_SHORT_SHIFT;

	*at += mp_page_code_size(code[0]);
	if (code[0] >= MP_ROWS_LONG)
		return (struct mp_page_row){(uint16_t)((code[0] & 1) << 8 | code[1]), code[2]};
	if (code[0] >= MP_ROWS_SHORT) {
		bits = (uint32_t)(code[0] - MP_ROWS_SHORT) << 8 | code[1];
	} else {
		bits = parts->pairs[code[0]];
		shift = parts->pair_shift;
	}
	return (struct mp_page_row){(uint16_t)(bits >> shift),
				    (uint16_t)(bits & ((1u << shift) - 1))};
}

#endif
