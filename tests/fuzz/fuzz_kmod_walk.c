// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_kmod_walk - any bytes as rows for the kernel module, and as a program whose stack it walks.
 *
 * With an even first byte, the rest is a made-up program: each walk must be the reference's. With an
 * odd one, the rest is a table of rows: if libprof accepts it, so does the module, and both find
 * the same rules.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/unwind/rows.h"
#include "tests/support/kmod_walk.h"
#include "tests/support/stack_model.h"

#define PROBES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rows(const void *bytes, size_t size)
{
	const struct mp_row_rule *theirs;
	const void *ours;
	struct mp_rows rows;
	uint64_t vaddr;

	if (mp_rows_open("any", bytes, size, &rows, NULL))
		return;
	if (kmod_rows_check(bytes, size))
		abort();
	for (uint32_t i = 0; i < PROBES; i++) {
		const struct mp_row *row = &rows.rows[rows.nr_rows ? i % rows.nr_rows : 0];

		vaddr = rows.base + (uint64_t)(i % (rows.nr_pages + 1)) * MP_ROWS_PAGE;
		vaddr += rows.nr_rows ? (uint64_t)row->low - i % 2 : i;
		theirs = mp_rows_find(&rows, vaddr);
		ours = kmod_rows_find(bytes, size, vaddr);
		if (ours ? ours != theirs : theirs->stop != MP_ROW_STOP_NO_ROW)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stack_model_totals totals = {0};
	void *copy;

	if (!size)
		return 0;
	if (data[0] % 2 == 0) {
		stack_model_run(data + 1, size - 1, &totals);
		if (totals.wrong || totals.lied)
			abort();
		return 0;
	}
	copy = malloc(size); /* aligned, unlike data + 1 */
	if (!copy)
		return 0;
	memcpy(copy, data + 1, size - 1);
	kmod_rows_try(copy, size - 1);
	check_rows(copy, size - 1);
	free(copy);
	return 0;
}
