// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_path_table - any bytes as a table of path numbers: refused, or read and written back
 * identically. Some numbers at each block are decoded: the values of the path's edges must add
 * up to the number, or it is refused. The same bytes are also used as a path's key.
 */
#include "libprof/note/path_decode.h"
#include "libprof/note/path_key.h"
#include "libprof/note/path_table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const struct mp_path_table *a, const struct mp_path_table *b)
{
	bool same = a->nr_funcs == b->nr_funcs && a->nr_blocks == b->nr_blocks &&
		    a->nr_edges == b->nr_edges && a->registers == b->registers;

	for (uint32_t i = 0; same && i < a->nr_blocks; i++) {
		const struct mp_path_block *x = &a->blocks[i], *y = &b->blocks[i];

		same = x->vaddr == y->vaddr && x->size == y->size && x->term_off == y->term_off &&
		       x->reg == y->reg && x->starts == y->starts && x->shift == y->shift;
	}
	for (uint32_t i = 0; same && i < a->nr_edges; i++) {
		const struct mp_path_edge *x = &a->edges[i], *y = &b->edges[i];

		same = x->from == y->from && x->to == y->to && x->kind == y->kind &&
		       x->carries == y->carries && x->value == y->value;
	}
	return same;
}

static int read_bytes(uint8_t *bytes, size_t size, struct mp_path_table **table)
{
	struct mp_section sections[2] = {
		[1] = {.name = MP_PATH_TABLE_SECTION, .type = SHT_PROGBITS, .size = size}};
	struct mp_elf elf = {.path = (char *)"fuzz",
			     .data = bytes,
			     .size = size,
			     .sections = sections,
			     .nr_sections = 2};

	return mp_path_table_read(&elf, table, NULL);
}

/* Follows the path forward, adding up like the program does. */
static void check_path(const struct mp_path_table *table, const struct mp_path *path, uint64_t want)
{
	uint8_t key[MP_PATH_KEY_MAX];
	uint64_t number = 0;

	for (uint32_t i = 0; i < path->nr_edges; i++) {
		const struct mp_path_edge *edge = &table->edges[path->edges[i]];
		uint32_t next = i + 1 < path->nr_edges ? table->edges[path->edges[i + 1]].from
						       : path->block;

		if (edge->to != next || (i && !edge->carries) ||
		    (!i && edge->carries && !table->blocks[edge->from].starts))
			abort();
		number += edge->value;
	}
	if (number != want || mp_path_key_encode(table, path, false, key) > sizeof(key))
		abort();
}

static void decode(const struct mp_path_table *table)
{
	static const uint64_t numbers[] = {0, 1, 2, 3, 7, 100, 1ull << 32, UINT64_MAX};
	struct mp_path path = {0};

	for (uint32_t b = 0; b < table->nr_blocks; b++)
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			const struct mp_path_block *block = &table->blocks[b];

			if (!mp_path_decode(table, b, numbers[i] + block->shift, &path))
				check_path(table, &path,
					   block->reg == MP_NO_REGISTER ? 0 : numbers[i]);
			else if (!numbers[i] && block->starts)
				abort();
		}
	mp_path_fini(&path);
	for (uint32_t b = 0; b < table->nr_blocks; b++)
		if (table->blocks[b].size &&
		    mp_path_table_block_at(table, table->blocks[b].vaddr) == MP_NONE)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t sum = XXH3_64bits(data, size), vaddrs[MP_PATH_MAX_BLOCKS];
	struct mp_path_table *table, *again;
	uint8_t *bytes = malloc(size + 8);

	if (mp_path_key_decode(data, size, vaddrs, NULL) > MP_PATH_MAX_BLOCKS)
		abort();
	/* Append a valid checksum, else nothing behind the check would be reached. */
	if (size)
		memcpy(bytes, data, size);
	memcpy(bytes + size, &sum, sizeof(sum));
	if (!read_bytes(bytes, size + 8, &table)) {
		uint8_t *written;

		decode(table);
		if (mp_path_table_encode(table, &written, &size, NULL) ||
		    read_bytes(written, size, &again) || !same(table, again))
			abort();
		mp_path_table_free(again);
		mp_path_table_free(table);
		free(written);
	}
	free(bytes);
	return 0;
}
