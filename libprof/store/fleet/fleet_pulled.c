// SPDX-License-Identifier: Apache-2.0
/*
 * fleet_pulled - adds a profile of the fleet to a database, and takes the one before out again; see
 * fleet_base.h. fleet_base keeps a copy of what was added, so that it is known what to take out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/fleet/fleet_private.h"
#include "libprof/store/store_codec.h"
#include "libprof/store/store_drop.h"

/* Rare, so nothing is prepared in advance. *@value: the first column of the first row; 0: no row. */
static int run(struct mp_store *store, const char *sql, const int64_t *args, int nr, int64_t *value,
	       struct mp_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL);

	if (value)
		*value = 0;
	for (int i = 0; i < nr && rc == SQLITE_OK; i++)
		rc = sqlite3_bind_int64(stmt, i + 1, args[i]);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW && value)
		*value = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : mp_store_fail(store, rc, "write", err);
}

/* ---- taking out ---------------------------------------------------------------------------- */

static const struct {
	const char *find, *drop_chunk, *shrink, *drop_bucket;
} statements[MP_NR_FLEET_KINDS] = {
	[MP_FLEET_COUNTS] =
		{
			"SELECT key FROM bucket WHERE module = ?1 AND first_day <= ?2 AND"
			" last_day >= ?3",
			"DELETE FROM chunk WHERE key = ?1",
			"UPDATE bucket SET nr_samples = nr_samples - ?2, nr_bytes = nr_bytes - ?3"
			" WHERE key = ?1",
			"DELETE FROM bucket WHERE key = ?1 AND nr_samples = 0",
		},
	[MP_FLEET_EDGES] =
		{
			"SELECT key FROM edge_bucket WHERE module = ?1 AND first_day <= ?2 AND"
			" last_day >= ?3",
			"DELETE FROM edge_chunk WHERE key = ?1",
			"UPDATE edge_bucket SET nr_transfers = nr_transfers - ?2,"
			" nr_bytes = nr_bytes - ?3 WHERE key = ?1",
			"DELETE FROM edge_bucket WHERE key = ?1 AND nr_transfers = 0",
		},
};

/* Takes @what out of the chunk. *@shrunk: the bytes that the bucket loses. */
static int take_from_chunk(struct mp_store *store, enum mp_fleet_kind kind, int64_t bucket,
			   int64_t chunk, const void *what, size_t nr_what, int64_t *shrunk,
			   struct mp_err *err)
{
	const struct mp_series *series = mp_fleet_series(kind);
	struct mp_chunk_row row;
	size_t nr, size = 0;
	int r = mp_series_chunk_find(store, series, bucket, chunk, &row, &nr, err);

	if (!r)
		r = mp_fleet_subtract(store, kind, store->scratch.entries[0].data, &nr, what,
				      nr_what, err);
	if (r)
		return r;
	if (!nr) {
		*shrunk = (int64_t)row.size + MP_CHUNK_ROW_BYTES;
		return run(store, statements[kind].drop_chunk, &row.key, 1, NULL, err);
	}
	r = mp_series_chunk_write(store, series, bucket, chunk, &row,
				  store->scratch.entries[0].data, nr, &size, err);
	*shrunk = (int64_t)row.size - (int64_t)size;
	return r;
}

/* The row of @stmt: kind, first_day, last_day, chunk, session, total, checksum, data. */
static int take_row(struct mp_store *store, int64_t module, sqlite3_stmt *stmt,
		    struct mp_store_array *what, struct mp_err *err)
{
	int64_t kind = sqlite3_column_int64(stmt, 0), chunk = sqlite3_column_int64(stmt, 3);
	int64_t find[3] = {module, sqlite3_column_int64(stmt, 1), sqlite3_column_int64(stmt, 2)};
	int64_t change[3] = {0, sqlite3_column_int64(stmt, 5), 0};
	size_t nr = 0;
	int r;

	if (kind < 0 || kind >= MP_NR_FLEET_KINDS || change[1] < 0)
		return mp_store_damaged(store, "impossible counts of a fleet", err);
	r = mp_fleet_decode(store, (enum mp_fleet_kind)kind, chunk, stmt, 6, what, &nr, err);
	if (!r)
		r = run(store, statements[kind].find, find, 3, &change[0], err);
	if (!r && !change[0])
		r = mp_store_damaged(store, "counts of a fleet without a day", err);
	if (!r)
		r = take_from_chunk(store, (enum mp_fleet_kind)kind, change[0], chunk, what->data,
				    nr, &change[2], err);
	if (!r)
		r = run(store, statements[kind].shrink, change, 3, NULL, err);
	if (!r)
		r = run(store, statements[kind].drop_bucket, change, 1, NULL, err);
	return r;
}

/* Takes @nr samples out of the ledger of @session. It may have fewer, since another module was dropped. */
static int take_session(struct mp_store *store, int64_t session, int64_t nr, struct mp_err *err)
{
	int64_t has, args[2] = {session, 0};
	int r = run(store, "SELECT nr FROM ledger WHERE session = ?1 AND what = 'attributed'", args,
		    1, &has, err);

	args[1] = has < nr ? has : nr;
	if (!r)
		r = run(store,
			"UPDATE ledger SET nr = nr - ?2 WHERE session = ?1 AND what IN"
			" ('attributed', 'emitted')",
			args, 2, NULL, err);
	if (!r && nr > args[1])
		r = mp_store_take_samples(store, nr - args[1], err);
	if (!r && has <= nr)
		r = run(store, "DELETE FROM ledger WHERE session = ?1", args, 1, NULL, err);
	if (!r && has <= nr)
		r = run(store, "DELETE FROM session WHERE key = ?1", args, 1, NULL, err);
	return r;
}

static int take_pulled(struct mp_store *store, int64_t module, struct mp_err *err)
{
	struct mp_store_array what = {0};
	int64_t session = 0, nr_samples = 0;
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(store->db,
				    "SELECT kind, first_day, last_day, chunk, session, total,"
				    " checksum, data FROM fleet_base WHERE module = ?1 AND"
				    " origin = 1",
				    -1, &stmt, NULL);
	int r = 0;

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(stmt, 1, module);
	while (rc == SQLITE_OK && !r && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		rc = SQLITE_OK;
		session = sqlite3_column_int64(stmt, 4);
		if (sqlite3_column_int64(stmt, 0) == MP_FLEET_COUNTS &&
		    __builtin_add_overflow(nr_samples, sqlite3_column_int64(stmt, 5), &nr_samples))
			r = mp_store_damaged(store, "an impossible sum of a fleet", err);
		if (!r)
			r = take_row(store, module, stmt, &what, err);
	}
	sqlite3_finalize(stmt);
	free(what.data);
	if (!r && rc != SQLITE_DONE)
		r = mp_store_fail(store, rc, "read", err);
	if (!r && session)
		r = take_session(store, session, nr_samples, err);
	if (!r)
		r = run(store, "DELETE FROM fleet_base WHERE module = ?1 AND origin = 1", &module,
			1, NULL, err);
	return r;
}
_Static_assert(MP_FLEET_PULLED == 1, "the statements above name it");

/* ---- adding -------------------------------------------------------------------------------- */

static uint64_t first_address(const void *entry)
{
	uint64_t vaddr;

	memcpy(&vaddr, entry, sizeof(vaddr));
	return vaddr;
}

static int note_entries(struct mp_store *store, struct mp_fleet_base_row *row, const void *entries,
			size_t nr, struct mp_err *err)
{
	const struct mp_series *series = mp_fleet_series(row->kind);
	int r = 0;

	for (size_t i = 0, end; i < nr && !r; i = end) {
		uint64_t chunk = first_address(mp_series_entry_at(series, entries, i)) >>
				 MP_CHUNK_SHIFT;

		for (end = i + 1; end < nr; end++)
			if (first_address(mp_series_entry_at(series, entries, end)) >>
				    MP_CHUNK_SHIFT !=
			    chunk)
				break;
		row->chunk = (int64_t)chunk;
		r = mp_fleet_base_add(store, row, mp_series_entry_at(series, entries, i), end - i,
				      err);
	}
	return r;
}

static int start_session(struct mp_store *store, const struct mp_fleet_profile *profile,
			 int64_t now_s, int64_t *session, struct mp_err *err)
{
	struct mp_session s = {.start_s = now_s, .last_s = now_s, .collector = "fleet"};
	struct mp_ledger ledger = {0};
	int r;

	snprintf(s.why, sizeof(s.why), "%s", profile->why);
	for (size_t i = 0; i < profile->nr_counts; i++)
		if (__builtin_add_overflow(ledger.attributed, profile->counts[i].count,
					   &ledger.attributed))
			return mp_err_set(err, EOVERFLOW, "%s: more than 2^63 samples",
					  store->path);
	ledger.emitted = ledger.attributed;
	r = mp_store_start_session(store, &s, err);
	if (!r)
		r = mp_store_add_ledger(store, s.key, now_s, &ledger, err);
	*session = s.key;
	return r;
}

static int add_profile(struct mp_store *store, const struct mp_fleet_profile *p, int64_t module,
		       int64_t now_s, struct mp_err *err)
{
	struct mp_span counts = {p->day, p->day, p->exact_counts};
	struct mp_span edges = {p->day, p->day, p->exact_edges};
	struct mp_fleet_base_row row = {
		.kind = MP_FLEET_COUNTS, .origin = MP_FLEET_PULLED, .module = module};
	int r = start_session(store, p, now_s, &row.session, err);

	row.span = counts;
	if (!r)
		r = mp_store_add_ip_count_span(store, module, &counts, p->counts, p->nr_counts,
					       err);
	if (!r)
		r = note_entries(store, &row, p->counts, p->nr_counts, err);
	row.kind = MP_FLEET_EDGES;
	if (!r)
		r = mp_store_add_edge_span(store, module, &edges, p->edges, p->nr_edges, err);
	if (!r)
		r = note_entries(store, &row, p->edges, p->nr_edges, err);
	return r;
}

/* Keeps the path and the text size that this machine knows. @add: a module that is not there. */
static int put_module(struct mp_store *store, const struct mp_fleet_profile *p, bool add,
		      int64_t now_s, int64_t *key, struct mp_err *err)
{
	struct mp_module have = {0};
	int r = mp_store_find_module(store, &p->id, &have, err);

	if (!r)
		*key = have.key;
	else if (r == -ENOENT && add)
		r = mp_store_put_module(store, &p->id, p->kind, p->path, p->text_size, now_s, key,
					err);
	free(have.path);
	return r;
}

int mp_fleet_put_pulled(struct mp_store *store, const struct mp_fleet_profile *profile,
			int64_t now_s, struct mp_err *err)
{
	int64_t module;
	bool began;
	bool empty = !profile->nr_counts && !profile->nr_edges;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	r = put_module(store, profile, !empty, now_s, &module, err);
	if (r == -ENOENT && empty)
		return mp_store_leave(store, began, 0, err);
	if (!r)
		r = take_pulled(store, module, err);
	if (!r && !empty)
		r = add_profile(store, profile, module, now_s, err);
	return mp_store_leave(store, began, r, err);
}
