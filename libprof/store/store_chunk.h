// SPDX-License-Identifier: Apache-2.0
/*
 * store_chunk - the rows of a series: one row holds the encoded entries of one bucket and one
 * chunk of text, with a checksum. Called by store_series.
 */
#ifndef MP_STORE_CHUNK_H
#define MP_STORE_CHUNK_H

#include "libprof/store/store_series.h"

/* Bytes of a chunk beside its data: the row's header and its entry in the index. */
#define MP_CHUNK_ROW_BYTES 34

static inline void *mp_series_entry_at(const struct mp_series *series, const void *entries,
				       size_t i)
{
	return (char *)entries + i * series->entry_size;
}

/* Gives @array at least @size bytes. Return: 0, -ENOMEM. */
int mp_store_array_reserve(struct mp_store_array *array, size_t size, struct mp_err *err);

/* The statement @which of the series, ready for binding. */
int mp_series_prepare(struct mp_store *store, const struct mp_series *series,
		      enum mp_series_stmt which, sqlite3_stmt **stmt, struct mp_err *err);

struct mp_chunk_row {
	int64_t key; /* 0: there is no row yet */
	size_t size; /* bytes of data */
};

/* Reads the chunk's entries into scratch.entries[0]; having none is no error. */
int mp_series_chunk_find(struct mp_store *store, const struct mp_series *series, int64_t bucket,
			 int64_t chunk, struct mp_chunk_row *row, size_t *nr, struct mp_err *err);
/* Replaces the entries of @row, or adds a row. *@size: the bytes of data. */
int mp_series_chunk_write(struct mp_store *store, const struct mp_series *series, int64_t bucket,
			  int64_t chunk, const struct mp_chunk_row *row, const void *entries,
			  size_t nr, size_t *size, struct mp_err *err);
/*
 * Merges @entries, all of one chunk, into the bucket. *@grown: adds the bytes that the rows
 * gained.
 */
int mp_series_chunk_add(struct mp_store *store, const struct mp_series *series, int64_t bucket,
			int64_t chunk, const void *entries, size_t nr, int64_t *grown,
			struct mp_err *err);
/* Begins a listing of the bucket's chunks, in order. */
int mp_series_chunk_list(struct mp_store *store, const struct mp_series *series, int64_t bucket,
			 sqlite3_stmt **stmt, struct mp_err *err);
/*
 * Reads the next chunk of a listing and checks it. The order is checked, too, since a
 * damaged tree could loop for ever. Return: 1 and *@nr entries behind the @nr_before of
 * @out, 0 at the end, -errno.
 */
int mp_series_chunk_next(struct mp_store *store, const struct mp_series *series, sqlite3_stmt *stmt,
			 int64_t *chunk, struct mp_store_array *out, size_t nr_before, size_t *nr,
			 size_t *size, struct mp_err *err);

#endif
