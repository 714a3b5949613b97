// SPDX-License-Identifier: Apache-2.0
/* store_chunk - reads and writes the chunks of a series; see store_chunk.h. */
#include "libprof/store/store_chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libprof/store/store_codec.h"

/* Far below SQLite's limit, and twice the largest size for the edges of a real chunk. */
#define CHUNK_BYTES_MAX (8 << 20)

int mp_series_prepare(struct mp_store *store, const struct mp_series *series,
		      enum mp_series_stmt which, sqlite3_stmt **stmt, struct mp_err *err)
{
	return mp_store_stmt(store, series->first_stmt + (enum mp_stmt)which, series->sql[which],
			     stmt, err);
}

int mp_store_array_reserve(struct mp_store_array *array, size_t size, struct mp_err *err)
{
	void *bigger;

	if (size <= array->size)
		return 0;
	if (size < 2 * array->size)
		size = 2 * array->size;
	bigger = realloc(array->data, size);
	if (!bigger)
		return mp_err_set(err, ENOMEM, "out of memory");
	array->data = bigger;
	array->size = size;
	return 0;
}

/*
 * Decodes the row of @stmt, with (checksum, data) at @column, behind the @nr_before entries
 * of @out.
 */
static int decode_columns(struct mp_store *store, const struct mp_series *series,
			  sqlite3_stmt *stmt, int column, int64_t chunk, struct mp_store_array *out,
			  size_t nr_before, size_t *nr, size_t *size, struct mp_err *err)
{
	const uint8_t *data = sqlite3_column_blob(stmt, column + 1);
	int len = sqlite3_column_bytes(stmt, column + 1), r;
	uint32_t checksum = (uint32_t)sqlite3_column_int64(stmt, column);

	if (len <= 0 || !data || (uint32_t)XXH3_64bits(data, (size_t)len) != checksum)
		return mp_store_damaged(store, "counts that do not match their checksum", err);
	r = mp_store_array_reserve(
		out, (nr_before + series->nr_max((size_t)len)) * series->entry_size, err);
	if (r)
		return r;
	if (series->decode((uint64_t)chunk << MP_CHUNK_SHIFT, data, (size_t)len,
			   mp_series_entry_at(series, out->data, nr_before), nr))
		return mp_store_damaged(store, "malformed counts", err);
	*size = (size_t)len;
	return 0;
}

int mp_series_chunk_find(struct mp_store *store, const struct mp_series *series, int64_t bucket,
			 int64_t chunk, struct mp_chunk_row *row, size_t *nr, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_series_prepare(store, series, MP_SERIES_CHUNK_FIND, &stmt, err);

	*nr = 0;
	memset(row, 0, sizeof(*row));
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, bucket);
	sqlite3_bind_int64(stmt, 2, chunk);
	r = mp_store_step(store, stmt, "read", err);
	if (r <= 0)
		return r;
	row->key = sqlite3_column_int64(stmt, 0);
	r = decode_columns(store, series, stmt, 1, chunk, &store->scratch.entries[0], 0, nr,
			   &row->size, err);
	sqlite3_reset(stmt);
	return r;
}

int mp_series_chunk_write(struct mp_store *store, const struct mp_series *series, int64_t bucket,
			  int64_t chunk, const struct mp_chunk_row *row, const void *entries,
			  size_t nr, size_t *size, struct mp_err *err)
{
	struct mp_store_array *bytes = &store->scratch.bytes;
	sqlite3_stmt *stmt;
	int r = mp_store_array_reserve(bytes, nr * series->entry_bytes_max, err);

	if (r)
		return r;
	*size = series->encode((uint64_t)chunk << MP_CHUNK_SHIFT, entries, nr, bytes->data);
	if (*size > CHUNK_BYTES_MAX)
		return mp_err_set(err, EFBIG, "%s: too many %s for 64 KiB of text", store->path,
				  series->what);
	r = mp_series_prepare(store, series, row->key ? MP_SERIES_CHUNK_SET : MP_SERIES_CHUNK_ADD,
			      &stmt, err);
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, row->key ? row->key : bucket);
	if (!row->key)
		sqlite3_bind_int64(stmt, 2, chunk);
	sqlite3_bind_int64(stmt, 3, (uint32_t)XXH3_64bits(bytes->data, *size));
	sqlite3_bind_blob(stmt, 4, bytes->data, (int)*size, SQLITE_STATIC);
	return mp_store_run(store, stmt, "write", err);
}

int mp_series_chunk_add(struct mp_store *store, const struct mp_series *series, int64_t bucket,
			int64_t chunk, const void *entries, size_t nr, int64_t *grown,
			struct mp_err *err)
{
	struct mp_store_array *scratch = store->scratch.entries;
	size_t nr_old, nr_new, size = 0;
	struct mp_chunk_row row;
	int r = mp_series_chunk_find(store, series, bucket, chunk, &row, &nr_old, err);

	if (!r)
		r = mp_store_array_reserve(&scratch[1], (nr_old + nr) * series->entry_size, err);
	if (r)
		return r;
	if (series->merge(scratch[0].data, nr_old, entries, nr, scratch[1].data, &nr_new))
		return mp_err_set(err, EOVERFLOW, "%s: a count beyond 64 bits", store->path);
	if (!nr_new)
		return 0;
	r = mp_series_chunk_write(store, series, bucket, chunk, &row, scratch[1].data, nr_new,
				  &size, err);
	*grown += (int64_t)size - (int64_t)row.size + (row.key ? 0 : MP_CHUNK_ROW_BYTES);
	return r;
}

int mp_series_chunk_list(struct mp_store *store, const struct mp_series *series, int64_t bucket,
			 sqlite3_stmt **stmt, struct mp_err *err)
{
	int r = mp_series_prepare(store, series, MP_SERIES_CHUNK_LIST, stmt, err);

	if (!r)
		sqlite3_bind_int64(*stmt, 1, bucket);
	return r;
}

int mp_series_chunk_next(struct mp_store *store, const struct mp_series *series, sqlite3_stmt *stmt,
			 int64_t *chunk, struct mp_store_array *out, size_t nr_before, size_t *nr,
			 size_t *size, struct mp_err *err)
{
	int64_t last = *chunk;
	int r = mp_store_step(store, stmt, "read", err);

	if (r <= 0)
		return r;
	*chunk = sqlite3_column_int64(stmt, 0);
	if (*chunk <= last || (uint64_t)*chunk > UINT64_MAX >> MP_CHUNK_SHIFT)
		r = mp_store_damaged(store, "chunks out of order", err);
	else
		r = decode_columns(store, series, stmt, 1, *chunk, out, nr_before, nr, size, err);
	if (r < 0)
		sqlite3_reset(stmt);
	return r < 0 ? r : 1;
}
