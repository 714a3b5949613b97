// SPDX-License-Identifier: Apache-2.0
/*
 * fleet_pulled - adds a profile of the fleet to a database, and takes the one before out again; see
 * fleet_base.h. fleet_base keeps a copy of what was added, so that it is known what to take out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/context/context_codec.h"
#include "libprof/store/fleet/fleet_private.h"
#include "libprof/store/fleet/fleet_whole.h"
#include "libprof/store/store_codec.h"
#include "libprof/store/store_drop.h"
#include "libprof/store/store_paths.h"

/* Rare, so nothing is prepared in advance. */
#define run(store, sql, err, ...) mp_fleet_run(store, MP_NR_STMT, sql, NULL, 0, err, __VA_ARGS__)
#define ask(store, sql, out, err, ...)                                                             \
	mp_fleet_run(store, MP_NR_STMT, sql, out, 1, err, __VA_ARGS__)

/* ---- taking out ---------------------------------------------------------------------------- */

static const struct {
	const char *find, *drop_chunk, *shrink, *drop_bucket;
} statements[MP_NR_FLEET_SERIES] = {
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
		return run(store, statements[kind].drop_chunk, err, row.key);
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
	int64_t total = sqlite3_column_int64(stmt, 5), bucket, shrunk = 0;
	size_t nr = 0;
	int r;

	if (kind < 0 || kind >= MP_NR_FLEET_SERIES || total < 0)
		return mp_store_damaged(store, "impossible counts of a fleet", err);
	r = mp_fleet_decode(store, (enum mp_fleet_kind)kind, chunk, stmt, 6, what, &nr, err);
	if (r)
		return r;
	r = ask(store, statements[kind].find, &bucket, err, module, sqlite3_column_int64(stmt, 1),
		sqlite3_column_int64(stmt, 2));
	if (!r)
		return mp_store_damaged(store, "counts of a fleet without a day", err);
	if (r > 0)
		r = take_from_chunk(store, (enum mp_fleet_kind)kind, bucket, chunk, what->data, nr,
				    &shrunk, err);
	if (!r)
		r = run(store, statements[kind].shrink, err, bucket, total, shrunk);
	return r ? r : run(store, statements[kind].drop_bucket, err, bucket);
}

/* Samples that were pulled, by the words of the ledger. */
struct pulled {
	int64_t module, session;
	struct mp_store_array what; /* entries of a row */
	int64_t nr[MP_NR_FLEET_KINDS];
};

static const char *const lines[MP_NR_FLEET_KINDS] = {[MP_FLEET_COUNTS] = "attributed",
						     [MP_FLEET_PATHS] = "paths:decoded",
						     [MP_FLEET_CONTEXTS] = "contexts",
						     [MP_FLEET_CALLS] = "calls"};

/*
 * Takes samples out of a line of the ledger. It may have fewer, since another module was dropped: then
 * other sessions have the rest.
 */
static int take_line(struct mp_store *store, const struct pulled *p, enum mp_fleet_kind kind,
		     struct mp_err *err)
{
	const char *line = lines[kind], *too = kind == MP_FLEET_COUNTS ? "emitted" : line;
	int64_t has, taken;
	char sql[160];
	int r;

	snprintf(sql, sizeof(sql), "SELECT nr FROM ledger WHERE session = ?1 AND what = '%s'",
		 line);
	r = ask(store, sql, &has, err, p->session);
	taken = has < p->nr[kind] ? has : p->nr[kind];
	snprintf(sql, sizeof(sql),
		 "UPDATE ledger SET nr = nr - ?2 WHERE session = ?1 AND what IN ('%s', '%s')", line,
		 too);
	if (r >= 0)
		r = run(store, sql, err, p->session, taken);
	if (!r && p->nr[kind] > taken)
		r = mp_store_take_line(store, p->nr[kind] - taken, line, err);
	return r;
}

static int take_session(struct mp_store *store, const struct pulled *p, struct mp_err *err)
{
	int64_t left = 0;
	int r = 0;

	for (int kind = 0; kind < MP_NR_FLEET_KINDS && !r; kind++)
		if (lines[kind] && p->nr[kind])
			r = take_line(store, p, (enum mp_fleet_kind)kind, err);
	if (!r)
		r = ask(store, "SELECT sum(nr) FROM ledger WHERE session = ?1", &left, err,
			p->session);
	if (r < 0 || left)
		return r < 0 ? r : 0;
	r = run(store, "DELETE FROM ledger WHERE session = ?1", err, p->session);
	return r ? r : run(store, "DELETE FROM session WHERE key = ?1", err, p->session);
}

/*
 * A row of the base that was pulled: kind, first_day, last_day, chunk, session, total, checksum, data. All
 * rows of one kind have the same days: paths and trees are taken out together, with the first one.
 */
static int take_base(struct mp_store *store, sqlite3_stmt *stmt, void *arg, struct mp_err *err)
{
	struct pulled *p = arg;
	int64_t kind = sqlite3_column_int64(stmt, 0), total = sqlite3_column_int64(stmt, 5);
	struct mp_span span = {sqlite3_column_int64(stmt, 1), sqlite3_column_int64(stmt, 2), false};
	bool is_first;

	if (kind < 0 || kind >= MP_NR_FLEET_KINDS || total <= 0)
		return mp_store_damaged(store, "impossible counts of a fleet", err);
	is_first = !p->nr[kind];
	p->session = sqlite3_column_int64(stmt, 4);
	if (__builtin_add_overflow(p->nr[kind], total, &p->nr[kind]))
		return mp_store_damaged(store, "an impossible sum of a fleet", err);
	if (kind < MP_NR_FLEET_SERIES)
		return take_row(store, p->module, stmt, &p->what, err);
	return is_first
		       ? mp_fleet_take_whole(store, (enum mp_fleet_kind)kind, p->module, &span, err)
		       : 0;
}

static int take_pulled(struct mp_store *store, int64_t module, struct mp_err *err)
{
	struct pulled pulled = {.module = module};
	int r = mp_fleet_each(store,
			      "SELECT kind, first_day, last_day, chunk, session, total,"
			      " checksum, data FROM fleet_base WHERE module = ?1 AND origin = ?2",
			      take_base, &pulled, err, module, MP_FLEET_PULLED);

	free(pulled.what.data);
	if (!r && pulled.session)
		r = take_session(store, &pulled, err);
	return r ? r
		 : run(store, "DELETE FROM fleet_base WHERE module = ?1 AND origin = ?2", err,
		       module, MP_FLEET_PULLED);
}

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

/* Adds a tree, folded to what the store keeps of one. @note: where it goes. */
static int add_tree(struct mp_fleet_base_writer *note, struct mp_context_tree *tree,
		    struct mp_err *err)
{
	enum mp_context_table table = mp_fleet_table(note->row.kind);
	uint8_t *data;
	size_t size;
	int r = mp_context_pack_within(tree, mp_contexts_bytes_max(table),
				       mp_contexts_nodes_max(table), &data, &size);

	if (r)
		return mp_err_code(err, -r);
	r = mp_store_add_contexts(note->store, table, note->row.module,
				  note->row.span.last_day * MP_SECONDS_PER_DAY, tree, err);
	if (!r)
		r = mp_fleet_base_write(note, 0, tree->nodes[0].total, data, size, err);
	free(data);
	return r;
}

/* What was pulled before is taken out already. */
static int has_own(struct mp_store *store, int64_t module, enum mp_fleet_kind kind, bool *has,
		   struct mp_err *err)
{
	struct mp_bucket *buckets = NULL;
	size_t nr = 0;
	int r = mp_fleet_buckets(store, kind, module, &buckets, &nr, err);

	free(buckets);
	*has = nr > 0;
	return r;
}

/*
 * Trees are added only where there are no others: the fleet's would push the machine's own out of the room
 * that the store has for a tree.
 */
static int choose_trees(struct mp_store *store, struct mp_fleet_profile *p, int64_t module,
			struct mp_err *err)
{
	int r = has_own(store, module, MP_FLEET_CONTEXTS, &p->left_out_contexts, err);

	if (!r)
		r = has_own(store, module, MP_FLEET_CALLS, &p->left_out_calls, err);
	p->left_out_contexts &= p->contexts.nr_nodes > 1;
	p->left_out_calls &= p->calls.nr_nodes > 1;
	return r;
}

static int add_paths_and_trees(struct mp_store *store, struct mp_fleet_profile *p, int64_t module,
			       int64_t session, struct mp_err *err)
{
	struct mp_fleet_base_writer note = {store,
					    {.kind = MP_FLEET_PATHS,
					     .origin = MP_FLEET_PULLED,
					     .module = module,
					     .session = session,
					     .span = {p->day, p->day, false}}};
	int r = mp_store_add_path_span(store, module, &note.row.span, p->paths, p->nr_paths, err);

	if (!r)
		r = mp_fleet_each_path_chunk(p->paths, p->nr_paths, mp_fleet_base_write, &note,
					     err);
	note.row.kind = MP_FLEET_CONTEXTS;
	if (!r && p->contexts.nr_nodes > 1 && !p->left_out_contexts)
		r = add_tree(&note, &p->contexts, err);
	note.row.kind = MP_FLEET_CALLS;
	if (!r && p->calls.nr_nodes > 1 && !p->left_out_calls)
		r = add_tree(&note, &p->calls, err);
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
	ledger.paths[MP_PATH_DECODED] = mp_fleet_paths_sum(profile->paths, profile->nr_paths);
	if (profile->contexts.nr_nodes && !profile->left_out_contexts)
		ledger.contexts = profile->contexts.nodes[0].total;
	if (profile->calls.nr_nodes && !profile->left_out_calls)
		ledger.calls = profile->calls.nodes[0].total;
	r = mp_store_start_session(store, &s, err);
	if (!r)
		r = mp_store_add_ledger(store, s.key, now_s, &ledger, err);
	*session = s.key;
	return r;
}

static int add_profile(struct mp_store *store, struct mp_fleet_profile *p, int64_t module,
		       int64_t now_s, struct mp_err *err)
{
	struct mp_span counts = {p->day, p->day, p->exact_counts};
	struct mp_span edges = {p->day, p->day, p->exact_edges};
	struct mp_fleet_base_row row = {
		.kind = MP_FLEET_COUNTS, .origin = MP_FLEET_PULLED, .module = module};
	int r = choose_trees(store, p, module, err);

	if (!r)
		r = start_session(store, p, now_s, &row.session, err);
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
	return r ? r : add_paths_and_trees(store, p, module, row.session, err);
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

static bool is_empty(const struct mp_fleet_profile *p)
{
	return !p->nr_counts && !p->nr_edges && !p->nr_paths && p->contexts.nr_nodes < 2 &&
	       p->calls.nr_nodes < 2;
}

int mp_fleet_put_pulled(struct mp_store *store, struct mp_fleet_profile *profile, int64_t now_s,
			struct mp_err *err)
{
	int64_t module;
	bool began;
	bool empty = is_empty(profile);
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
