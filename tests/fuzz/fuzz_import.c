// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_import - any text as a callgrind file and as the output of perf script: an error or counts
 * that balance.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_balance(const struct mp_ledger *l)
{
	uint64_t sum = l->attributed;

	for (int i = 0; i < MP_NR_UNATTR; i++)
		sum += l->unattributed[i];
	for (int i = 0; i < MP_NR_LOST; i++)
		sum += l->lost[i];
	if (sum != l->emitted)
		abort();
}

static void run(const uint8_t *data, size_t size, bool perf)
{
	struct md_import *import = md_import_new();
	struct md_lines lines = {.name = "input"};
	struct mp_err err = {0};
	int r;

	lines.file = fmemopen((void *)(uintptr_t)data, size, "r");
	if (!import || !lines.file)
		abort();
	r = perf ? md_import_perf(import, &lines, NULL, &err)
		 : md_import_callgrind(import, &lines, &err);
	if (r > 0 || (r && !err.msg[0]))
		abort();
	if (!r)
		check_balance(&import->ledger);
	fclose(lines.file);
	free(lines.line);
	md_import_free(import);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* The first byte chooses, the rest is the text. */
	if (size > 1)
		run(data + 1, size - 1, data[0] & 1);
	return 0;
}
