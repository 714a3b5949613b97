// SPDX-License-Identifier: Apache-2.0
/*
 * edge_table - writes and reads the section that describes an instrumented file's counters.
 * Documentation/abi.md has the format; an edge takes three or four bytes. The editor writes
 * the table. The import of counts reads it, out of files that may come from anybody.
 */
#include "libprof/note/edge_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libprof/base/varint.h"
#include "libprof/note/note_frame.h"

#define TABLE_VERSION 1

/* Bits of an edge's first number. Most edges are inside and uncounted: that fits in one byte. */
enum edge_bits {
	EDGE_KIND = 3, /* enum mp_edge_kind */
	EDGE_FROM_OUTSIDE = 1 << 2,
	EDGE_TO_OUTSIDE = 1 << 3,
	EDGE_COUNTED = 1 << 4,
	EDGE_SPARE = 1 << 5,
	EDGE_COUNTER_JUMPS = 1 << 6, /* the counter is not the next one: the distance follows */
	EDGE_ALL = (1 << 7) - 1,
};

static bool check_block(const struct mp_counted_block *block)
{
	return block->term_off <= block->size && block->size <= UINT64_MAX - block->vaddr;
}

static bool check_edge(const struct mp_edge_table *table, const struct mp_counted_func *func,
		       const struct mp_counted_edge *edge)
{
	bool from_outside = edge->from == MP_NONE, to_outside = edge->to == MP_NONE;

	/* An index below first_block wraps to a large number. */
	if (!from_outside && edge->from - func->first_block >= func->nr_blocks)
		return false;
	if (!to_outside && edge->to - func->first_block >= func->nr_blocks)
		return false;
	if (from_outside || to_outside) {
		if (from_outside == to_outside || edge->kind != MP_EDGE_OUTSIDE)
			return false;
	} else if (edge->kind > MP_EDGE_TABLE) {
		return false;
	}
	return edge->counter == MP_NONE ? !edge->spare : edge->counter < table->nr_counters;
}

/* Return: 0, -EINVAL if two edges have the same counter, -ENOMEM. */
static int check_counters(const struct mp_edge_table *table)
{
	uint8_t *used = calloc(table->nr_counters / 8 + 1, 1);
	int ret = 0;

	if (!used)
		return -ENOMEM;
	for (uint32_t e = 0; e < table->nr_edges && !ret; e++) {
		uint32_t counter = table->edges[e].counter;

		if (counter == MP_NONE)
			continue;
		if (used[counter / 8] & 1 << counter % 8)
			ret = -EINVAL;
		used[counter / 8] |= 1 << counter % 8;
	}
	free(used);
	return ret;
}

static int check_table(const struct mp_edge_table *table)
{
	uint32_t block = 0, edge = 0;

	if (table->nr_funcs > MP_FRAME_NR_MAX || table->nr_blocks > MP_FRAME_NR_MAX ||
	    table->nr_edges > MP_FRAME_NR_MAX || table->nr_counters > table->nr_edges)
		return -EINVAL;
	for (uint32_t f = 0; f < table->nr_funcs; f++) {
		const struct mp_counted_func *func = &table->funcs[f];

		if (func->first_block != block || func->first_edge != edge ||
		    func->nr_blocks > table->nr_blocks - block ||
		    func->nr_edges > table->nr_edges - edge)
			return -EINVAL;
		block += func->nr_blocks;
		for (; edge < func->first_edge + func->nr_edges; edge++)
			if (!check_edge(table, func, &table->edges[edge]))
				return -EINVAL;
	}
	if (block != table->nr_blocks || edge != table->nr_edges)
		return -EINVAL;
	for (uint32_t b = 0; b < table->nr_blocks; b++)
		if (!check_block(&table->blocks[b]))
			return -EINVAL;
	return check_counters(table);
}

/* @next: one more than the last counter that was written. */
static void put_edge(struct mp_varint_writer *w, const struct mp_counted_func *func,
		     const struct mp_counted_edge *edge, uint32_t *last_from, uint32_t *next)
{
	uint64_t head = edge->kind & EDGE_KIND;

	if (edge->kind == MP_EDGE_OUTSIDE)
		head = edge->from == MP_NONE ? EDGE_FROM_OUTSIDE : EDGE_TO_OUTSIDE;
	if (edge->counter != MP_NONE)
		head |= EDGE_COUNTED;
	if (edge->spare)
		head |= EDGE_SPARE;
	if (edge->counter != MP_NONE && edge->counter != *next)
		head |= EDGE_COUNTER_JUMPS;
	mp_varint_put(w, head);
	if (edge->from != MP_NONE) {
		mp_varint_put_signed(w, (int64_t)edge->from - *last_from);
		*last_from = edge->from;
	}
	if (edge->to != MP_NONE)
		mp_varint_put_signed(w, (int64_t)edge->to - (edge->from != MP_NONE
								     ? edge->from
								     : func->first_block));
	if (head & EDGE_COUNTER_JUMPS)
		mp_varint_put_signed(w, (int64_t)edge->counter - *next);
	if (head & EDGE_COUNTED)
		*next = edge->counter + 1;
}

static void put_table(struct mp_varint_writer *w, const struct mp_edge_table *table)
{
	uint32_t next = 0;
	uint64_t end = 0;

	mp_varint_put(w, TABLE_VERSION);
	mp_varint_put(w, table->nr_funcs);
	mp_varint_put(w, table->nr_blocks);
	mp_varint_put(w, table->nr_edges);
	mp_varint_put(w, table->nr_counters);
	for (uint32_t f = 0; f < table->nr_funcs; f++) {
		const struct mp_counted_func *func = &table->funcs[f];
		uint32_t from = func->first_block;

		mp_varint_put(w, func->nr_blocks);
		mp_varint_put(w, func->nr_edges);
		for (uint32_t b = 0; b < func->nr_blocks; b++) {
			const struct mp_counted_block *block =
				&table->blocks[func->first_block + b];

			mp_frame_put_block(w, block->vaddr, block->size, block->term_off, &end);
		}
		for (uint32_t e = 0; e < func->nr_edges; e++)
			put_edge(w, func, &table->edges[func->first_edge + e], &from, &next);
	}
}

int mp_edge_table_encode(const struct mp_edge_table *table, uint8_t **bytes, size_t *size,
			 struct mp_err *err)
{
	struct mp_varint_writer w = {0};
	int ret = check_table(table);

	*bytes = NULL;
	if (ret == -EINVAL)
		return mp_err_set(err, EINVAL, "edge table: does not fit together");
	if (!ret) {
		put_table(&w, table);
		mp_frame_put_checksum(&w, 0);
	}
	if (ret || w.failed) {
		free(w.bytes);
		return mp_err_set(err, ENOMEM, "edge table: out of memory");
	}
	*bytes = w.bytes;
	*size = w.size;
	return 0;
}

uint64_t mp_edge_table_hash(const void *bytes, size_t size)
{
	return XXH3_64bits(bytes, size);
}

/* Reads a distance from @base. The sum must be below MP_FRAME_NR_MAX. */
static uint32_t get_near(struct mp_varint_reader *r, uint32_t base)
{
	int64_t diff = mp_varint_get_signed(r);

	if (diff < -(int64_t)base || diff >= (int64_t)MP_FRAME_NR_MAX - base) {
		r->failed = true;
		return 0;
	}
	return (uint32_t)(base + diff);
}

static void get_edge(struct mp_varint_reader *r, const struct mp_counted_func *func,
		     struct mp_counted_edge *edge, uint32_t *last_from, uint32_t *next)
{
	uint64_t head = mp_varint_get(r);

	if (head & ~(uint64_t)EDGE_ALL) {
		r->failed = true;
		return;
	}
	edge->kind = head & EDGE_KIND;
	if (head & (EDGE_FROM_OUTSIDE | EDGE_TO_OUTSIDE)) {
		/* Such an edge has one encoding only. */
		if (edge->kind)
			r->failed = true;
		edge->kind = MP_EDGE_OUTSIDE;
	}
	edge->spare = head & EDGE_SPARE;
	edge->from = edge->to = edge->counter = MP_NONE;
	if (!(head & EDGE_FROM_OUTSIDE))
		*last_from = edge->from = get_near(r, *last_from);
	if (!(head & EDGE_TO_OUTSIDE))
		edge->to = get_near(r, edge->from != MP_NONE ? edge->from : func->first_block);
	if (head & EDGE_COUNTER_JUMPS && !(head & EDGE_COUNTED))
		r->failed = true;
	if (head & EDGE_COUNTED) {
		edge->counter = head & EDGE_COUNTER_JUMPS ? get_near(r, *next) : *next;
		*next = edge->counter + 1;
	}
}

static void get_func(struct mp_varint_reader *r, struct mp_edge_table *table, uint32_t f,
		     uint64_t *end, uint32_t *next)
{
	struct mp_counted_func *func = &table->funcs[f];
	uint64_t nr_blocks = mp_varint_get(r), nr_edges = mp_varint_get(r);
	uint32_t from;

	if (f) {
		func->first_block = func[-1].first_block + func[-1].nr_blocks;
		func->first_edge = func[-1].first_edge + func[-1].nr_edges;
	}
	if (nr_blocks > table->nr_blocks - func->first_block ||
	    nr_edges > table->nr_edges - func->first_edge)
		r->failed = true;
	if (r->failed)
		return;
	func->nr_blocks = (uint32_t)nr_blocks;
	func->nr_edges = (uint32_t)nr_edges;
	for (uint32_t b = 0; b < func->nr_blocks && !r->failed; b++) {
		struct mp_counted_block *block = &table->blocks[func->first_block + b];

		mp_frame_get_block(r, &block->vaddr, &block->size, &block->term_off, end);
	}
	from = func->first_block;
	for (uint32_t e = 0; e < func->nr_edges && !r->failed; e++)
		get_edge(r, func, &table->edges[func->first_edge + e], &from, next);
}

static int decode(const char *path, const uint8_t *bytes, size_t size, struct mp_edge_table **out,
		  struct mp_err *err)
{
	struct mp_varint_reader r;
	struct mp_edge_table *table = NULL;
	uint64_t end = 0;
	uint32_t next = 0;
	int ret;

	ret = mp_frame_open("edge table", path, bytes, size, TABLE_VERSION, &r, err);
	if (ret)
		return ret;
	table = calloc(1, sizeof(*table));
	if (!table)
		return mp_frame_error("edge table", path, -ENOMEM, err);
	table->nr_funcs = mp_frame_get_nr(&r, 2);
	table->nr_blocks = mp_frame_get_nr(&r, 3);
	table->nr_edges = mp_frame_get_nr(&r, 2);
	table->nr_counters = mp_frame_get_nr(&r, 1);
	if (r.failed)
		goto err_table;
	table->funcs = calloc((size_t)table->nr_funcs + 1, sizeof(*table->funcs));
	table->blocks = calloc((size_t)table->nr_blocks + 1, sizeof(*table->blocks));
	table->edges = calloc((size_t)table->nr_edges + 1, sizeof(*table->edges));
	ret = -ENOMEM;
	if (!table->funcs || !table->blocks || !table->edges)
		goto err_table;
	ret = -EBADMSG;
	for (uint32_t f = 0; f < table->nr_funcs && !r.failed; f++)
		get_func(&r, table, f, &end, &next);
	if (r.failed || r.p != r.end)
		goto err_table;
	ret = check_table(table);
	if (ret)
		goto err_table;
	table->hash = mp_edge_table_hash(bytes, size);
	*out = table;
	return 0;
err_table:
	mp_edge_table_free(table);
	return mp_frame_error("edge table", path, ret, err);
}

static int read_section(const struct mp_elf *elf, const char *name, const char *none,
			struct mp_edge_table **out, struct mp_err *err)
{
	const uint8_t *bytes;
	size_t size;
	int ret;

	*out = NULL;
	ret = mp_frame_find(elf, name, "edge table", none, &bytes, &size, err);
	return ret ? ret : decode(elf->path, bytes, size, out, err);
}

int mp_edge_table_read(const struct mp_elf *elf, struct mp_edge_table **out, struct mp_err *err)
{
	return read_section(elf, MP_EDGE_TABLE_SECTION, "not instrumented", out, err);
}

int mp_meter_table_read(const struct mp_elf *elf, struct mp_edge_table **out, struct mp_err *err)
{
	return read_section(elf, MP_METER_TABLE_SECTION, "has no meter", out, err);
}

void mp_edge_table_free(struct mp_edge_table *table)
{
	if (!table)
		return;
	free(table->funcs);
	free(table->blocks);
	free(table->edges);
	free(table);
}
