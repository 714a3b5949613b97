// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_audit_table - any bytes as a table of audited functions: refused, or read and written
 * back identically.
 */
#include "libprof/note/audit_table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_bytes(uint8_t *bytes, size_t size, struct mp_audit_table **table)
{
	struct mp_section sections[2] = {
		[1] = {.name = MP_AUDIT_TABLE_SECTION, .type = SHT_PROGBITS, .size = size}};
	struct mp_elf elf = {.path = (char *)"fuzz",
			     .data = bytes,
			     .size = size,
			     .sections = sections,
			     .nr_sections = 2};

	return mp_audit_table_read(&elf, table, NULL);
}

static bool same(const struct mp_audit_table *a, const struct mp_audit_table *b)
{
	bool same = a->nr_funcs == b->nr_funcs && a->nr_ranges == b->nr_ranges &&
		    a->nr_points == b->nr_points &&
		    !memcmp(a->funcs, b->funcs, a->nr_funcs * sizeof(*a->funcs));

	for (uint32_t i = 0; same && i < a->nr_ranges; i++)
		same = a->ranges[i].vaddr == b->ranges[i].vaddr &&
		       a->ranges[i].size == b->ranges[i].size &&
		       a->ranges[i].version == b->ranges[i].version;
	for (uint32_t i = 0; same && i < a->nr_points; i++)
		same = a->points[i].vaddr == b->points[i].vaddr &&
		       a->points[i].rounds == b->points[i].rounds;
	return same;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mp_audit_table *table, *again;
	uint8_t *bytes = malloc(size + 8);
	uint64_t sum = XXH3_64bits(data, size);

	/* Append a valid checksum, else nothing behind the check would be reached. */
	if (size)
		memcpy(bytes, data, size);
	memcpy(bytes + size, &sum, sizeof(sum));
	if (!read_bytes(bytes, size + 8, &table)) {
		uint8_t *written;

		if (mp_audit_table_encode(table, &written, &size, NULL) ||
		    read_bytes(written, size, &again) || !same(table, again))
			abort();
		mp_audit_table_free(again);
		mp_audit_table_free(table);
		free(written);
	}
	free(bytes);
	return 0;
}
