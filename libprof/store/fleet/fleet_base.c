// SPDX-License-Identifier: Apache-2.0
/*
 * fleet_base - keeps apart what is not this database's own; see fleet_base.h. Decides how it is
 * subtracted. fleet_pulled.c adds and removes what was pulled.
 */
#include "libprof/store/fleet/fleet_base.h"

#include <stdlib.h>
#include <xxhash.h>

#include "libprof/store/fleet/fleet_private.h"
#include "libprof/store/fleet/fleet_whole.h"
#include "libprof/store/store_codec.h"

const struct mp_series *mp_fleet_series(enum mp_fleet_kind kind)
{
	return kind == MP_FLEET_EDGES ? &mp_series_edges : &mp_series_ip_counts;
}

/* The module's buckets of paths, in order of days. Ownership: free(*@out). */
static int list_path_buckets(struct mp_store *store, int64_t module, struct mp_bucket **out,
			     size_t *nr, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_FLEET_PATH_BUCKETS,
			      "SELECT key, first_day, last_day, nr_samples, nr_bytes, checksum"
			      " FROM path_bucket WHERE module = ?1 ORDER BY first_day",
			      &stmt, err);

	*out = NULL;
	*nr = 0;
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, module);
	return mp_buckets_read(store, stmt, out, nr, err);
}

int mp_fleet_buckets(struct mp_store *store, enum mp_fleet_kind kind, int64_t module,
		     struct mp_bucket **out, size_t *nr, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r;

	if (mp_fleet_is_tree(kind))
		return mp_contexts_list_rows(store, mp_fleet_table(kind), module, out, nr, err);
	if (kind == MP_FLEET_PATHS)
		return list_path_buckets(store, module, out, nr, err);
	r = mp_series_prepare(store, mp_fleet_series(kind), MP_SERIES_BUCKET_LIST, &stmt, err);
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, module);
	return mp_buckets_read(store, stmt, out, nr, err);
}

/* ---- statements ---------------------------------------------------------------------------- */

int mp_fleet_run_with(struct mp_store *store, enum mp_stmt which, const char *sql, int64_t *out,
		      int nr_out, struct mp_err *err, const int64_t *numbers, int nr)
{
	sqlite3_stmt *stmt = NULL;
	int rc, r = 0;

	for (int i = 0; i < nr_out; i++)
		out[i] = 0;
	if (which < MP_NR_STMT)
		r = mp_store_stmt(store, which, sql, &stmt, err);
	if (r)
		return r;
	rc = stmt ? SQLITE_OK : sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL);
	for (int i = 0; i < nr && i < sqlite3_bind_parameter_count(stmt) && rc == SQLITE_OK; i++)
		rc = sqlite3_bind_int64(stmt, i + 1, numbers[i]);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	for (int i = 0; i < nr_out && rc == SQLITE_ROW; i++)
		out[i] = sqlite3_column_int64(stmt, i);
	r = rc == SQLITE_ROW	? 1
	    : rc == SQLITE_DONE ? 0
				: mp_store_fail(store, rc, nr_out ? "read" : "write", err);
	if (which < MP_NR_STMT)
		sqlite3_reset(stmt);
	else
		sqlite3_finalize(stmt);
	return r;
}

int mp_fleet_each_with(struct mp_store *store, const char *sql,
		       int (*row)(struct mp_store *store, sqlite3_stmt *stmt, void *arg,
				  struct mp_err *err),
		       void *arg, struct mp_err *err, const int64_t *numbers, int nr)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL), r = 0;

	for (int i = 0; i < nr && i < sqlite3_bind_parameter_count(stmt) && rc == SQLITE_OK; i++)
		rc = sqlite3_bind_int64(stmt, i + 1, numbers[i]);
	while (rc == SQLITE_OK && !r && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		rc = SQLITE_OK;
		r = row(store, stmt, arg, err);
	}
	sqlite3_finalize(stmt);
	return r || rc == SQLITE_DONE ? r : mp_store_fail(store, rc, "read", err);
}

/* ---- subtraction --------------------------------------------------------------------------- */

static bool take_counts(struct mp_ip_count *from, size_t *nr, const struct mp_ip_count *what,
			size_t nr_what)
{
	size_t k = 0, n = 0;

	for (size_t i = 0; i < *nr; i++) {
		struct mp_ip_count entry = from[i];

		if (k < nr_what && what[k].vaddr == entry.vaddr) {
			if (what[k].count > entry.count)
				return false;
			entry.count -= what[k++].count;
		}
		if (entry.count)
			from[n++] = entry;
	}
	*nr = n;
	return k == nr_what;
}

static bool take_edges(struct mp_edge_count *from, size_t *nr, const struct mp_edge_count *what,
		       size_t nr_what)
{
	size_t k = 0, n = 0;

	for (size_t i = 0; i < *nr; i++) {
		struct mp_edge_count entry = from[i];

		if (k < nr_what && what[k].from == entry.from && what[k].to == entry.to) {
			if (what[k].count > entry.count ||
			    what[k].mispredicted > entry.mispredicted)
				return false;
			entry.count -= what[k].count;
			entry.mispredicted -= what[k++].mispredicted;
			if (entry.mispredicted > entry.count)
				return false;
		}
		if (entry.count)
			from[n++] = entry;
	}
	*nr = n;
	return k == nr_what;
}

int mp_fleet_subtract(struct mp_store *store, enum mp_fleet_kind kind, void *from, size_t *nr,
		      const void *what, size_t nr_what, struct mp_err *err)
{
	if (kind == MP_FLEET_EDGES ? take_edges(from, nr, what, nr_what)
				   : take_counts(from, nr, what, nr_what))
		return 0;
	return mp_store_damaged(store, "counts of a fleet that its chunks do not have", err);
}

int mp_fleet_bytes(struct mp_store *store, sqlite3_stmt *stmt, int column, const uint8_t **data,
		   size_t *size, struct mp_err *err)
{
	*data = sqlite3_column_blob(stmt, column + 1);
	*size = (size_t)sqlite3_column_bytes(stmt, column + 1);
	if (*data && *size &&
	    (uint32_t)XXH3_64bits(*data, *size) == (uint32_t)sqlite3_column_int64(stmt, column))
		return 0;
	return mp_store_damaged(store, "counts of a fleet that do not match their checksum", err);
}

int mp_fleet_decode(struct mp_store *store, enum mp_fleet_kind kind, int64_t chunk,
		    sqlite3_stmt *stmt, int column, struct mp_store_array *out, size_t *nr,
		    struct mp_err *err)
{
	const struct mp_series *series = mp_fleet_series(kind);
	const uint8_t *data;
	size_t size;
	int r = mp_fleet_bytes(store, stmt, column, &data, &size, err);

	if (!r && (chunk < 0 || (uint64_t)chunk > UINT64_MAX >> MP_CHUNK_SHIFT))
		r = mp_store_damaged(store, "counts of a fleet without a place", err);
	if (!r)
		r = mp_store_array_reserve(out, series->nr_max(size) * series->entry_size, err);
	if (!r && series->decode((uint64_t)chunk << MP_CHUNK_SHIFT, data, size, out->data, nr))
		r = mp_store_damaged(store, "malformed counts of a fleet", err);
	return r;
}

int mp_fleet_base_total(struct mp_store *store, enum mp_fleet_kind kind, int64_t module,
			const struct mp_span *span, uint64_t *total, struct mp_err *err)
{
	int64_t sum;
	int r = mp_fleet_run(store, MP_STMT_FLEET_BASE_SUM,
			     "SELECT sum(total) FROM fleet_base WHERE module = ?1 AND kind = ?2"
			     " AND first_day >= ?3 AND last_day <= ?4",
			     &sum, 1, err, module, kind, span->first_day, span->last_day);

	*total = (uint64_t)sum;
	if (r >= 0 && sum < 0)
		return mp_store_damaged(store, "an impossible sum of a fleet", err);
	return r < 0 ? r : 0;
}

struct taking {
	enum mp_fleet_kind kind;
	int64_t chunk;
	void *entries;
	size_t *nr;
	struct mp_store_array base;
};

static int take_base(struct mp_store *store, sqlite3_stmt *stmt, void *arg, struct mp_err *err)
{
	struct taking *t = arg;
	size_t nr;
	int r = mp_fleet_decode(store, t->kind, t->chunk, stmt, 0, &t->base, &nr, err);

	return r ? r : mp_fleet_subtract(store, t->kind, t->entries, t->nr, t->base.data, nr, err);
}

int mp_fleet_base_take(struct mp_store *store, enum mp_fleet_kind kind, int64_t module,
		       const struct mp_span *span, int64_t chunk, void *entries, size_t *nr,
		       struct mp_err *err)
{
	struct taking t = {.kind = kind, .chunk = chunk, .entries = entries, .nr = nr};
	int r = mp_fleet_each(store,
			      "SELECT checksum, data FROM fleet_base WHERE module = ?1 AND"
			      " kind = ?2 AND first_day >= ?3 AND last_day <= ?4 AND chunk = ?5",
			      take_base, &t, err, module, kind, span->first_day, span->last_day,
			      chunk);

	free(t.base.data);
	return r;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static int put_row(struct mp_store *store, const struct mp_fleet_base_row *row, uint64_t total,
		   const uint8_t *data, size_t size, struct mp_err *err)
{
	const int64_t numbers[] = {
		row->kind,	     row->module,	 row->origin,
		row->span.first_day, row->span.last_day, row->chunk,
		row->session,	     (int64_t)total,	 (uint32_t)XXH3_64bits(data, size)};
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_FLEET_BASE_ADD,
			      "INSERT INTO fleet_base(kind, module, origin, first_day,"
			      " last_day, chunk, session, total, checksum, data)"
			      " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
			      &stmt, err);

	if (r)
		return r;
	for (int i = 0; i < 9; i++)
		sqlite3_bind_int64(stmt, i + 1, numbers[i]);
	sqlite3_bind_blob(stmt, 10, data, (int)size, SQLITE_STATIC);
	r = mp_store_run(store, stmt, "write", err);
	sqlite3_clear_bindings(stmt);
	return r;
}

int mp_fleet_base_add(struct mp_store *store, const struct mp_fleet_base_row *row,
		      const void *entries, size_t nr, struct mp_err *err)
{
	const struct mp_series *series = mp_fleet_series(row->kind);
	struct mp_store_array bytes = {0};
	int r = mp_store_array_reserve(&bytes, nr * series->entry_bytes_max + 1, err);

	if (!r)
		r = put_row(store, row, series->sum(entries, nr), bytes.data,
			    series->encode((uint64_t)row->chunk << MP_CHUNK_SHIFT, entries, nr,
					   bytes.data),
			    err);
	free(bytes.data);
	return r;
}

int mp_fleet_base_write(void *writer, int64_t chunk, uint64_t total, const uint8_t *data,
			size_t size, struct mp_err *err)
{
	struct mp_fleet_base_writer *w = writer;

	w->row.chunk = chunk;
	return put_row(w->store, &w->row, total, data, size, err);
}
