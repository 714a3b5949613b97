// SPDX-License-Identifier: Apache-2.0
/*
 * store_check - checks the whole database: the file, every chunk of counts, edges and
 * ways, and every path. The stored counts must equal the samples that the ledgers call attributed,
 * and the paths those that they call decoded. Edges and ways are in no ledger. Called by tests and
 * by status.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/contexts/store_contexts.h"
#include "libprof/store/fleet/fleet_base.h"
#include "libprof/store/jobs/store_jobs.h"
#include "libprof/store/audits/store_audits.h"
#include "libprof/store/store_copies.h"
#include "libprof/store/store_fingerprint.h"
#include "libprof/store/store_paths.h"
#include "libprof/store/store_series.h"
#include "libprof/store/audits/store_trials.h"

static int check_file(struct mp_store *store, struct mp_err *err)
{
	sqlite3_stmt *stmt = NULL;
	char what[160] = "";
	int rc = sqlite3_prepare_v2(store->db, "PRAGMA integrity_check(1)", -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(stmt, 0);

		snprintf(what, sizeof(what), "%s", text ? text : "?");
	}
	sqlite3_finalize(stmt);
	if (rc != SQLITE_ROW)
		return mp_store_fail(store, rc, "check", err);
	what[strcspn(what, "\n")] = '\0';
	return strcmp(what, "ok") ? mp_store_damaged(store, what, err) : 0;
}

struct bucket {
	int64_t key;
	uint64_t total, nr_bytes;
};

/* The join finds buckets without a module. */
static const char counts_sql[] = "SELECT b.key, nr_samples, nr_bytes, m.key IS NOT NULL"
				 " FROM bucket b LEFT JOIN module m ON m.key = b.module"
				 " ORDER BY b.key";
static const char edges_sql[] = "SELECT b.key, nr_transfers, nr_bytes, m.key IS NOT NULL"
				" FROM edge_bucket b LEFT JOIN module m ON m.key = b.module"
				" ORDER BY b.key";
static const char copies_sql[] = "SELECT b.key, nr_samples, nr_bytes, m.key IS NOT NULL"
				 " FROM copy_bucket b LEFT JOIN module m ON m.key = b.module"
				 " ORDER BY b.key";
static const char ways_sql[] = "SELECT b.key, nr_ways, nr_bytes, m.key IS NOT NULL"
			       " FROM way_bucket b LEFT JOIN module m ON m.key = b.module"
			       " ORDER BY b.key";
/* Chunks without a bucket are in no sum. */
static const char strays_sql[] =
	"SELECT (SELECT count(*) FROM chunk WHERE bucket NOT IN (SELECT key FROM bucket)) +"
	" (SELECT count(*) FROM edge_chunk WHERE bucket NOT IN (SELECT key FROM edge_bucket)) +"
	" (SELECT count(*) FROM copy_chunk WHERE bucket NOT IN (SELECT key FROM copy_bucket)) +"
	" (SELECT count(*) FROM way_chunk WHERE bucket NOT IN (SELECT key FROM way_bucket))";

static int read_buckets(struct mp_store *store, const char *sql, struct bucket **out, size_t *nr,
			struct mp_err *err)
{
	struct bucket *buckets = NULL;
	size_t n = 0, max = 0;
	sqlite3_stmt *stmt = NULL;
	int r = 0, rc;

	rc = sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL);
	while (rc == SQLITE_OK && !r && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		rc = SQLITE_OK;
		r = mp_store_grow(buckets, max, n + 1, err);
		if (r)
			break;
		buckets[n].key = sqlite3_column_int64(stmt, 0);
		buckets[n].total = (uint64_t)sqlite3_column_int64(stmt, 1);
		buckets[n].nr_bytes = (uint64_t)sqlite3_column_int64(stmt, 2);
		if (!sqlite3_column_int(stmt, 3))
			r = mp_store_damaged(store, "counts without a module", err);
		n++;
	}
	sqlite3_finalize(stmt);
	if (!r && rc != SQLITE_DONE)
		r = mp_store_fail(store, rc, "check", err);
	if (r) {
		free(buckets);
		return r;
	}
	*out = buckets;
	*nr = n;
	return 0;
}

static int sum_series(struct mp_store *store, const struct mp_series *series, const char *sql,
		      uint64_t *total, struct mp_err *err)
{
	struct bucket *buckets = NULL;
	uint64_t sum, nr_bytes;
	size_t nr = 0;
	int r = read_buckets(store, sql, &buckets, &nr, err);

	*total = 0;
	for (size_t i = 0; i < nr && !r; i++) {
		r = mp_series_sum_bucket(store, series, buckets[i].key, &sum, &nr_bytes, err);
		if (!r && (sum != buckets[i].total || nr_bytes != buckets[i].nr_bytes))
			r = mp_store_damaged(store, "counts that do not add up", err);
		*total += sum;
	}
	free(buckets);
	return r;
}

static int sum_ledgers(struct mp_store *store, uint64_t *total, uint64_t *decoded,
		       uint64_t *in_trees, uint64_t *calls, struct mp_err *err)
{
	struct mp_session *sessions = NULL;
	size_t nr = 0;
	int r = mp_store_list_sessions(store, &sessions, &nr, err);

	*total = *decoded = *in_trees = *calls = 0;
	for (size_t i = 0; i < nr && !r; i++) {
		*total += sessions[i].ledger.attributed;
		*decoded += sessions[i].ledger.paths[MP_PATH_DECODED];
		*in_trees += sessions[i].ledger.contexts;
		*calls += sessions[i].ledger.calls;
	}
	free(sessions);
	return r;
}

static int compare(struct mp_store *store, uint64_t stored, uint64_t said, const char *what,
		   struct mp_err *err)
{
	if (stored == said)
		return 0;
	return mp_err_set(err, EBADMSG, "%s: damaged: %llu %s, the ledgers say %llu", store->path,
			  (unsigned long long)stored, what, (unsigned long long)said);
}

/* Those that add nothing up. */
static int (*const checks[])(struct mp_store *, struct mp_err *) = {
	mp_store_check_copied, mp_store_check_fingerprints, mp_store_check_trials,
	mp_store_check_audits, mp_store_check_jobs,	    mp_fleet_check};

int mp_store_check(struct mp_store *store, struct mp_err *err)
{
	uint64_t counted = 0, attributed = 0, ignored = 0, paths = 0, decoded = 0;
	uint64_t contexts = 0, in_trees = 0, calls = 0, in_call_trees = 0;
	const struct {
		const struct mp_series *series;
		const char *sql;
		uint64_t *total;
	} sums[] = {{&mp_series_ip_counts, counts_sql, &counted},
		    {&mp_series_edges, edges_sql, &ignored},
		    {&mp_series_copies, copies_sql, &ignored},
		    {&mp_series_ways, ways_sql, &ignored}};
	bool began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	r = check_file(store, err);
	if (!r)
		r = mp_store_check_none(store, strays_sql, "counts without a day", err);
	for (size_t i = 0; !r && i < sizeof(sums) / sizeof(sums[0]); i++)
		r = sum_series(store, sums[i].series, sums[i].sql, sums[i].total, err);
	for (size_t i = 0; !r && i < sizeof(checks) / sizeof(checks[0]); i++)
		r = checks[i](store, err);
	if (!r)
		r = mp_store_check_paths(store, &paths, err);
	if (!r)
		r = mp_store_check_contexts(store, MP_CONTEXTS, &contexts, err);
	if (!r)
		r = mp_store_check_contexts(store, MP_CALLS, &calls, err);
	if (!r)
		r = sum_ledgers(store, &attributed, &decoded, &in_trees, &in_call_trees, err);
	if (!r)
		r = compare(store, counted, attributed, "samples are stored", err);
	if (!r)
		r = compare(store, paths, decoded, "samples have paths", err);
	if (!r)
		r = compare(store, contexts, in_trees, "samples have calling contexts", err);
	if (!r)
		r = compare(store, calls, in_call_trees, "calls were sampled", err);
	return mp_store_leave(store, began, r, err);
}
