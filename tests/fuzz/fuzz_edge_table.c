// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_edge_table - any bytes as a table of counted edges: refused, or read and written back
 * identically. The same bytes are also used as its counters: solved or refused.
 */
#include "libprof/note/edge_solve.h"
#include "libprof/note/edge_table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const struct mp_edge_table *a, const struct mp_edge_table *b)
{
	bool same = a->nr_funcs == b->nr_funcs && a->nr_blocks == b->nr_blocks &&
		    a->nr_edges == b->nr_edges && a->nr_counters == b->nr_counters;

	for (uint32_t i = 0; same && i < a->nr_blocks; i++)
		same = a->blocks[i].vaddr == b->blocks[i].vaddr &&
		       a->blocks[i].size == b->blocks[i].size &&
		       a->blocks[i].term_off == b->blocks[i].term_off;
	for (uint32_t i = 0; same && i < a->nr_edges; i++)
		same = a->edges[i].from == b->edges[i].from && a->edges[i].to == b->edges[i].to &&
		       a->edges[i].counter == b->edges[i].counter &&
		       a->edges[i].kind == b->edges[i].kind &&
		       a->edges[i].spare == b->edges[i].spare;
	return same;
}

static int read_bytes(uint8_t *bytes, size_t size, struct mp_edge_table **table)
{
	struct mp_section sections[2] = {
		[1] = {.name = MP_EDGE_TABLE_SECTION, .type = SHT_PROGBITS, .size = size}};
	struct mp_elf elf = {.path = (char *)"fuzz",
			     .data = bytes,
			     .size = size,
			     .sections = sections,
			     .nr_sections = 2};

	return mp_edge_table_read(&elf, table, NULL);
}

static void solve(const struct mp_edge_table *table, const uint8_t *data, size_t size)
{
	uint64_t *counters = calloc((size_t)table->nr_counters + 1, sizeof(*counters));
	struct mp_edge_counts counts;

	for (size_t i = 0; size && i < table->nr_counters * sizeof(*counters); i++)
		((uint8_t *)counters)[i] = data[i % size];
	/* Missing counts must show as unequal flow somewhere. */
	if (!mp_edge_solve(table, counters, &counts, NULL) && counts.discrepancy.missed &&
	    !counts.discrepancy.nr_unequal)
		abort();
	mp_edge_counts_fini(&counts);
	free(counters);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mp_edge_table *table, *again;
	uint8_t *bytes = malloc(size + 8);
	uint64_t sum = XXH3_64bits(data, size);

	/* Append a valid checksum, else nothing behind the check would be reached. */
	if (size)
		memcpy(bytes, data, size);
	memcpy(bytes + size, &sum, sizeof(sum));
	if (!read_bytes(bytes, size + 8, &table)) {
		uint8_t *written;

		solve(table, data, size);
		if (mp_edge_table_encode(table, &written, &size, NULL) ||
		    read_bytes(written, size, &again) || !same(table, again))
			abort();
		mp_edge_table_free(again);
		mp_edge_table_free(table);
		free(written);
	}
	free(bytes);
	return 0;
}
