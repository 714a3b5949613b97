// SPDX-License-Identifier: Apache-2.0
/*
 * audit_table - writes and reads the section that describes the audited functions. The reader
 * of the ring takes it out of files that may come from anybody. Called by the editor, verify
 * and the reader.
 */
#include "libprof/note/audit_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libprof/base/varint.h"
#include "libprof/note/note_frame.h"

#define TABLE_VERSION 2

static int compare_ranges(const void *a, const void *b)
{
	const struct mp_audited_range *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* Return: 0, -EINVAL if two ranges overlap, -ENOMEM. */
static int check_overlaps(const struct mp_audit_table *table)
{
	struct mp_audited_range *sorted = malloc(((size_t)table->nr_ranges + 1) * sizeof(*sorted));
	int ret = 0;

	if (!sorted)
		return -ENOMEM;
	if (table->nr_ranges) {
		memcpy(sorted, table->ranges, table->nr_ranges * sizeof(*sorted));
		qsort(sorted, table->nr_ranges, sizeof(*sorted), compare_ranges);
	}
	for (uint32_t i = 1; i < table->nr_ranges; i++)
		if (sorted[i].vaddr - sorted[i - 1].vaddr < sorted[i - 1].size)
			ret = -EINVAL;
	free(sorted);
	return ret;
}

static bool check_func(const struct mp_audit_table *table, const struct mp_audited_func *func)
{
	unsigned int versions = 0;
	uint64_t end = 0;

	for (uint32_t i = 0; i < func->nr_ranges; i++) {
		const struct mp_audited_range *range = &table->ranges[func->first_range + i];

		if (!range->size || range->vaddr < end || range->size > UINT64_MAX - range->vaddr ||
		    range->version >= MP_AUDIT_NR_CODES)
			return false;
		end = range->vaddr + range->size;
		versions |= 1u << range->version;
	}
	for (uint32_t i = 0; i < func->nr_points; i++)
		if (!table->points[func->first_point + i].rounds)
			return false;
	return versions == (1u << MP_AUDIT_NR_CODES) - 1;
}

static int check_table(const struct mp_audit_table *table)
{
	uint32_t range = 0, point = 0;

	if (!table->nr_funcs || table->nr_funcs > MP_AUDIT_MAX_FUNCTIONS ||
	    table->nr_ranges > MP_FRAME_NR_MAX || table->nr_points > MP_FRAME_NR_MAX)
		return -EINVAL;
	for (uint32_t f = 0; f < table->nr_funcs; f++) {
		const struct mp_audited_func *func = &table->funcs[f];

		if (func->first_range != range || func->first_point != point ||
		    func->nr_ranges > table->nr_ranges - range ||
		    func->nr_points > table->nr_points - point ||
		    (f && func->vaddr <= func[-1].vaddr) || !check_func(table, func))
			return -EINVAL;
		range += func->nr_ranges;
		point += func->nr_points;
	}
	if (range != table->nr_ranges || point != table->nr_points)
		return -EINVAL;
	return check_overlaps(table);
}

static void put_table(struct mp_varint_writer *w, const struct mp_audit_table *table)
{
	uint64_t last = 0, end = 0;

	mp_varint_put(w, TABLE_VERSION);
	mp_varint_put(w, table->nr_funcs);
	mp_varint_put(w, table->nr_ranges);
	mp_varint_put(w, table->nr_points);
	for (uint32_t f = 0; f < table->nr_funcs; f++) {
		const struct mp_audited_func *func = &table->funcs[f];

		mp_varint_put(w, func->vaddr - last);
		mp_varint_put(w, func->nr_ranges);
		mp_varint_put(w, func->nr_points);
		for (uint32_t i = 0; i < func->nr_ranges; i++) {
			const struct mp_audited_range *range =
				&table->ranges[func->first_range + i];

			mp_varint_put(w, range->version);
			mp_varint_put_signed(w, (int64_t)(range->vaddr - end));
			mp_varint_put(w, range->size);
			end = range->vaddr + range->size;
		}
		for (uint32_t i = 0; i < func->nr_points; i++) {
			const struct mp_audited_point *point =
				&table->points[func->first_point + i];

			mp_varint_put_signed(w, (int64_t)(point->vaddr - func->vaddr));
			mp_varint_put(w, point->rounds);
		}
		last = func->vaddr;
	}
}

int mp_audit_table_encode(const struct mp_audit_table *table, uint8_t **bytes, size_t *size,
			  struct mp_err *err)
{
	struct mp_varint_writer w = {0};
	int ret = check_table(table);

	*bytes = NULL;
	if (ret == -EINVAL)
		return mp_err_set(err, EINVAL, "audit table: does not fit together");
	if (!ret) {
		put_table(&w, table);
		mp_frame_put_checksum(&w, 0);
	}
	if (ret || w.failed) {
		free(w.bytes);
		return mp_err_set(err, ENOMEM, "audit table: out of memory");
	}
	*bytes = w.bytes;
	*size = w.size;
	return 0;
}

uint64_t mp_audit_table_hash(const void *bytes, size_t size)
{
	return XXH3_64bits(bytes, size);
}

/* The function's elements must fit into the rest of @table's. */
static bool get_numbers(struct mp_varint_reader *r, const struct mp_audit_table *table,
			struct mp_audited_func *func)
{
	uint64_t nr_ranges = mp_varint_get(r), nr_points = mp_varint_get(r);

	if (r->failed || nr_ranges > table->nr_ranges - func->first_range ||
	    nr_points > table->nr_points - func->first_point)
		return false;
	func->nr_ranges = (uint32_t)nr_ranges;
	func->nr_points = (uint32_t)nr_points;
	return true;
}

static void get_func(struct mp_varint_reader *r, struct mp_audit_table *table, uint32_t f,
		     uint64_t *end)
{
	struct mp_audited_func *func = &table->funcs[f];

	func->vaddr = mp_varint_get(r);
	if (f) {
		func->vaddr += func[-1].vaddr;
		func->first_range = func[-1].first_range + func[-1].nr_ranges;
		func->first_point = func[-1].first_point + func[-1].nr_points;
	}
	if (!get_numbers(r, table, func)) {
		r->failed = true;
		return;
	}
	for (uint32_t i = 0; i < func->nr_ranges; i++) {
		struct mp_audited_range *range = &table->ranges[func->first_range + i];
		uint64_t version = mp_varint_get(r);

		if (version >= MP_AUDIT_NR_CODES)
			r->failed = true;
		range->version = (uint8_t)version;
		range->vaddr = *end + (uint64_t)mp_varint_get_signed(r);
		range->size = mp_varint_get(r);
		*end = range->vaddr + range->size;
	}
	for (uint32_t i = 0; i < func->nr_points; i++) {
		struct mp_audited_point *point = &table->points[func->first_point + i];
		uint64_t rounds;

		point->vaddr = func->vaddr + (uint64_t)mp_varint_get_signed(r);
		rounds = mp_varint_get(r);
		if (rounds > UINT32_MAX)
			r->failed = true;
		point->rounds = (uint32_t)rounds;
	}
}

int mp_audit_table_decode(const char *path, const uint8_t *bytes, size_t size,
			  struct mp_audit_table **out, struct mp_err *err)
{
	struct mp_audit_table *table = NULL;
	struct mp_varint_reader r;
	uint64_t end = 0;
	int ret = mp_frame_open("audit table", path, bytes, size, TABLE_VERSION, &r, err);

	if (ret)
		return ret;
	table = calloc(1, sizeof(*table));
	if (!table)
		return mp_frame_error("audit table", path, -ENOMEM, err);
	table->nr_funcs = mp_frame_get_nr(&r, 3);
	table->nr_ranges = mp_frame_get_nr(&r, 3);
	table->nr_points = mp_frame_get_nr(&r, 2);
	if (r.failed)
		goto err_table;
	table->funcs = calloc((size_t)table->nr_funcs + 1, sizeof(*table->funcs));
	table->ranges = calloc((size_t)table->nr_ranges + 1, sizeof(*table->ranges));
	table->points = calloc((size_t)table->nr_points + 1, sizeof(*table->points));
	ret = -ENOMEM;
	if (!table->funcs || !table->ranges || !table->points)
		goto err_table;
	ret = -EBADMSG;
	for (uint32_t f = 0; f < table->nr_funcs && !r.failed; f++)
		get_func(&r, table, f, &end);
	if (r.failed || r.p != r.end)
		goto err_table;
	ret = check_table(table);
	if (ret)
		goto err_table;
	table->hash = mp_audit_table_hash(bytes, size);
	*out = table;
	return 0;
err_table:
	mp_audit_table_free(table);
	return mp_frame_error("audit table", path, ret, err);
}

int mp_audit_table_read(const struct mp_elf *elf, struct mp_audit_table **out, struct mp_err *err)
{
	const uint8_t *bytes;
	size_t size;
	int ret;

	*out = NULL;
	ret = mp_frame_find(elf, MP_AUDIT_TABLE_SECTION, "audit table", "not audited", &bytes,
			    &size, err);
	return ret ? ret : mp_audit_table_decode(elf->path, bytes, size, out, err);
}

void mp_audit_table_free(struct mp_audit_table *table)
{
	if (!table)
		return;
	free(table->funcs);
	free(table->ranges);
	free(table->points);
	free(table);
}
