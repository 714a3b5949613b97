// SPDX-License-Identifier: Apache-2.0
/*
 * rows - unwind rows of one module, checked once and then looked up. Their bytes may come from
 * anybody. Called by walk and by the daemon.
 */
#ifndef MP_ROWS_H
#define MP_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"
#include "libprof/unwind/row_format.h"

/*
 * Points into the bytes that were checked. With @laid, they are in the form of rows_laid: @pages are
 * positions from @laid on, and @rows is NULL.
 */
struct mp_rows {
	uint64_t base;
	const struct mp_row_rule *rules;
	const uint32_t *pages;
	const struct mp_row *rows;
	const uint8_t *laid; /* NULL: the rows are one array, as row_format says */
	uint32_t nr_rules, nr_rows, nr_pages;
};

/*
 * mp_rows_open - checks the @size bytes at @bytes (8-aligned), which must outlive *@out. @path:
 * the module's file, for messages. Return: 0, -EBADMSG.
 */
int mp_rows_open(const char *path, const void *bytes, size_t size, struct mp_rows *out,
		 struct mp_err *err);
/*
 * Return: the rule for the link-time address @vaddr, with reason MP_ROW_STOP_NO_ROW outside of
 * all rows.
 */
const struct mp_row_rule *mp_rows_find(const struct mp_rows *rows, uint64_t vaddr);
/*
 * mp_rows_entry - finds the start of the FDE that covers @vaddr: of a function, or of a part of one.
 * Return: false if no FDE is known to cover it.
 */
bool mp_rows_entry(const struct mp_rows *rows, uint64_t vaddr, uint64_t *start);
/* Return: bytes of the whole table. */
size_t mp_rows_size(uint32_t nr_rules, uint32_t nr_rows, uint32_t nr_pages);

/* Return: words for a report, such as "no FDE". */
const char *mp_row_stop_name(enum mp_row_stop stop);

#endif
