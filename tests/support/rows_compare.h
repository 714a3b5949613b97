// SPDX-License-Identifier: Apache-2.0
/*
 * rows_compare - compares unwind rows with what libdw, a reader of its own, says of the same
 * file. Used by unit tests and by the tool rows.
 */
#ifndef TESTS_ROWS_COMPARE_H
#define TESTS_ROWS_COMPARE_H

#include <stdint.h>

#include "libprof/elf/elf.h"
#include "libprof/unwind/rows.h"

struct rows_comparison {
	uint64_t nr_ranges;  /* ranges of addresses for which libdw says one thing */
	uint64_t nr_bytes;   /* in them */
	uint64_t nr_differ;  /* ranges for which the rows say something else */
	uint64_t nr_gaps;    /* places without an FDE */
	uint64_t nr_stopped; /* ranges for which the rows say that they do not know */
	uint64_t stopped_bytes[MP_NR_ROW_STOP];
	char first[200]; /* the first difference */
};

/*
 * Compares every address of every FDE of @elf, which is open with MP_ELF_FDES, and the gaps
 * between them. Return: 0, -errno.
 */
int rows_compare(const struct mp_elf *elf, const struct mp_rows *rows, struct rows_comparison *out);

/* Compiles the rows of @elf. *@bytes: the caller frees it. Return: 0, -errno. */
int rows_of_elf(const struct mp_elf *elf, void **bytes, size_t *size, struct mp_rows *rows,
		struct mp_err *err);

#endif
