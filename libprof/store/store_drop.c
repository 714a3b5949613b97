// SPDX-License-Identifier: Apache-2.0
/* store_drop - removes rows, and balances the ledgers; see store_drop.h. */
#include "libprof/store/store_drop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libprof/store/store_private.h"

/* Rare, so nothing is prepared in advance. *@value: the first column of the first row; 0: no row. */
static int run(struct mp_store *store, const char *sql, int64_t a, int64_t b, int64_t *value,
	       struct mp_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL);

	if (value)
		*value = 0;
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(stmt, 1, a);
		if (sqlite3_bind_parameter_count(stmt) > 1)
			sqlite3_bind_int64(stmt, 2, b);
		rc = sqlite3_step(stmt);
		if (rc == SQLITE_ROW && value)
			*value = sqlite3_column_int64(stmt, 0);
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : mp_store_fail(store, rc, "write", err);
}

/* Takes @nr samples out of the ledgers, the oldest session first. */
static int take(struct mp_store *store, int64_t nr, const char *find, const char *count,
		const char *less, struct mp_err *err)
{
	int64_t session, has, part;
	int r = 0;

	while (!r && nr > 0) {
		r = run(store, find, 0, 0, &session, err);
		if (!r && !session)
			r = mp_store_damaged(store, "samples that are in no ledger", err);
		if (!r)
			r = run(store, count, session, 0, &has, err);
		if (r)
			break;
		part = has < nr ? has : nr;
		r = run(store, less, session, part, NULL, err);
		nr -= part;
	}
	return r;
}

/* Takes @nr samples out of the ledgers, the oldest session first. Return: 0, -EBADMSG, -errno. */
static int take_samples(struct mp_store *store, int64_t nr, struct mp_err *err)
{
	return take(store, nr,
		    "SELECT min(session) FROM ledger WHERE what = 'attributed' AND nr > ?1",
		    "SELECT nr FROM ledger WHERE what = 'attributed' AND session = ?1",
		    "UPDATE ledger SET nr = nr - ?2 WHERE session = ?1 AND what IN"
		    " ('attributed', 'emitted')",
		    err);
}

int mp_store_take_line(struct mp_store *store, int64_t nr, const char *line, struct mp_err *err)
{
	char find[120], count[120], less[120];

	if (!strcmp(line, "attributed"))
		return take_samples(store, nr, err);
	snprintf(find, sizeof(find),
		 "SELECT min(session) FROM ledger WHERE what = '%s' AND nr > ?1", line);
	snprintf(count, sizeof(count), "SELECT nr FROM ledger WHERE what = '%s' AND session = ?1",
		 line);
	snprintf(less, sizeof(less),
		 "UPDATE ledger SET nr = nr - ?2 WHERE session = ?1 AND what = '%s'", line);
	return take(store, nr, find, count, less, err);
}

static int balance(struct mp_store *store, int64_t module, struct mp_err *err)
{
	int64_t samples, paths, contexts, calls;
	int r = run(store, "SELECT sum(nr_samples) FROM bucket WHERE module = ?1", module, 0,
		    &samples, err);

	if (!r)
		r = run(store, "SELECT sum(nr_samples) FROM path_bucket WHERE module = ?1", module,
			0, &paths, err);
	if (!r)
		r = run(store, "SELECT sum(nr_samples) FROM context WHERE module = ?1", module, 0,
			&contexts, err);
	if (!r)
		r = run(store, "SELECT sum(nr_samples) FROM call WHERE module = ?1", module, 0,
			&calls, err);
	if (!r)
		r = take_samples(store, samples, err);
	if (!r)
		r = mp_store_take_line(store, paths, "paths:decoded", err);
	if (!r)
		r = mp_store_take_line(store, contexts, "contexts", err);
	if (!r)
		r = mp_store_take_line(store, calls, "calls", err);
	return r;
}

static int drop(struct mp_store *store, int64_t module, struct mp_err *err)
{
	static const char *const sql[] = {
		"DELETE FROM chunk WHERE bucket IN (SELECT key FROM bucket WHERE module = ?1)",
		"DELETE FROM bucket WHERE module = ?1",
		"DELETE FROM edge_chunk WHERE bucket IN"
		" (SELECT key FROM edge_bucket WHERE module = ?1)",
		"DELETE FROM edge_bucket WHERE module = ?1",
		"DELETE FROM path WHERE bucket IN (SELECT key FROM path_bucket WHERE module = ?1)",
		"DELETE FROM path_bucket WHERE module = ?1",
		"DELETE FROM copy_chunk WHERE bucket IN"
		" (SELECT key FROM copy_bucket WHERE module = ?1)",
		"DELETE FROM copy_bucket WHERE module = ?1",
		"DELETE FROM copied WHERE output = ?1",
		"DELETE FROM way_chunk WHERE bucket IN"
		" (SELECT key FROM way_bucket WHERE module = ?1)",
		"DELETE FROM way_bucket WHERE module = ?1",
		"DELETE FROM activity WHERE module = ?1",
		"DELETE FROM context WHERE module = ?1",
		"DELETE FROM call WHERE module = ?1",
		"DELETE FROM crash WHERE module = ?1",
		"DELETE FROM fingerprint WHERE module = ?1",
		"DELETE FROM fleet_bucket WHERE module = ?1",
		"DELETE FROM fleet_chunk WHERE module = ?1",
		"DELETE FROM fleet_base WHERE module = ?1",
		"DELETE FROM module WHERE key = ?1",
	};
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(sql) / sizeof(sql[0]); i++)
		r = run(store, sql[i], module, 0, NULL, err);
	return r;
}

int mp_store_drop_module(struct mp_store *store, int64_t module, struct mp_err *err)
{
	int64_t found = 0, outputs = 0;
	bool began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	r = run(store, "SELECT count(*) FROM module WHERE key = ?1", module, 0, &found, err);
	if (!r && !found)
		r = mp_err_set(err, ENOENT, "%s: no such module", store->path);
	if (!r)
		r = run(store, "SELECT count(*) FROM copied WHERE original = ?1 AND output != ?1",
			module, 0, &outputs, err);
	if (!r && outputs)
		r = mp_err_set(err, EBUSY, "%s: an output was made of the module", store->path);
	if (!r)
		r = balance(store, module, err);
	if (!r)
		r = drop(store, module, err);
	return mp_store_leave(store, began, r, err);
}
