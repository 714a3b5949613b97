// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_unwind_rows - any bytes as .eh_frame and as a table of rows.
 *
 * With an even first byte, the rest is .eh_frame: it is refused, or its rows are a table that the
 * reader accepts, and page by page they are the same. With an odd one, the rest is a table of one of the two
 * forms, by its magic: it is refused, or every lookup works.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/unwind/rows.h"
#include "libprof/unwind/rows_compile.h"
#include "libprof/unwind/rows_laid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Looks up both sides of each row; the row itself must be found. */
static void use(const struct mp_rows *rows)
{
	for (uint32_t page = 0; page < rows->nr_pages; page++) {
		uint64_t base = rows->base + (uint64_t)page * MP_ROWS_PAGE;

		for (uint32_t i = rows->pages[page]; i < rows->pages[page + 1]; i++) {
			const struct mp_row *row = &rows->rows[i];

			if (mp_rows_find(rows, base + row->low) != &rows->rules[row->number])
				abort();
			if (i && mp_rows_find(rows, base + row->low - 1) !=
					 &rows->rules[rows->rows[i - 1].number])
				abort();
		}
	}
	if (mp_rows_find(rows, rows->base - 1)->stop != MP_ROW_STOP_NO_ROW ||
	    mp_rows_find(rows, UINT64_MAX)->stop != MP_ROW_STOP_NO_ROW)
		abort();
}

/* Reads every row of laid rows. Where they are one table, it can be laid again. */
static void use_laid(const struct mp_rows *laid)
{
	size_t size;
	void *bytes = mp_rows_flatten(laid, &size);
	struct mp_rows rows;
	uint64_t start;

	if (!bytes)
		return;
	if (mp_rows_open("flat", bytes, size, &rows, NULL))
		abort();
	for (uint32_t page = 0; page < rows.nr_pages; page++) {
		uint64_t base = rows.base + (uint64_t)page * MP_ROWS_PAGE;

		for (uint32_t i = rows.pages[page]; i < rows.pages[page + 1]; i++) {
			uint64_t at = base + rows.rows[i].low;
			uint64_t other;
			bool is_known = mp_rows_entry(&rows, at, &start);

			if (mp_rows_find(laid, at) != &laid->rules[rows.rows[i].number] ||
			    mp_rows_entry(laid, at, &other) != is_known ||
			    (is_known && start != other))
				abort();
		}
	}
	free(bytes);
}

static void lay(const struct mp_rows *rows, const void *bytes, size_t size)
{
	struct mp_rows laid;
	size_t laid_size, flat_size;
	void *table, *flat;

	if (mp_rows_lay(rows, &table, &laid_size))
		return;
	if (mp_rows_laid_open("laid", table, laid_size, &laid, NULL))
		abort();
	flat = mp_rows_flatten(&laid, &flat_size);
	if (!flat || flat_size != size || memcmp(flat, bytes, size))
		abort();
	use_laid(&laid);
	free(flat);
	free(table);
}

static void compile(const uint8_t *data, size_t size)
{
	struct mp_cursor frames = {.p = data, .end = data + size, .vaddr = 0x1000000};
	struct mp_rows rows;
	uint64_t start = 0;
	size_t table_size;
	void *bytes;

	/* Any address near the FDEs, or none. */
	if (size >= 4)
		start = 0x1000000 + (uint64_t)data[size - 1] * data[size - 2];
	if (mp_rows_compile(&frames, true, start, NULL, &bytes, &table_size, NULL))
		return;
	if (mp_rows_open("made", bytes, table_size, &rows, NULL))
		abort();
	use(&rows);
	lay(&rows, bytes, table_size);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mp_rows rows;
	void *copy;

	if (!size)
		return 0;
	if (data[0] % 2 == 0) {
		compile(data + 1, size - 1);
		return 0;
	}
	copy = malloc(size); /* aligned, unlike data + 1 */
	if (!copy)
		return 0;
	memcpy(copy, data + 1, size - 1);
	if (!mp_rows_open("any", copy, size - 1, &rows, NULL)) {
		use(&rows);
		lay(&rows, copy, size - 1);
	} else if (!mp_rows_laid_open("any", copy, size - 1, &rows, NULL)) {
		use_laid(&rows);
	}
	free(copy);
	return 0;
}
