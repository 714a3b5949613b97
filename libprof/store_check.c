// SPDX-License-Identifier: Apache-2.0
/*
 * store_check - whether the whole database is sound: the file, every chunk, and that the stored
 * counts are exactly the samples the ledgers call attributed. Called by tests and by status.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store_internal.h"

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
	uint64_t nr_samples, nr_bytes;
};

static int read_buckets(struct mp_store *store, struct bucket **out, size_t *nr, struct mp_err *err)
{
	struct bucket *buckets = NULL;
	size_t n = 0, max = 0;
	sqlite3_stmt *stmt = NULL;
	int r = 0, rc;

	/* The join is the check that no bucket is without a module. */
	rc = sqlite3_prepare_v2(
		store->db,
		"SELECT b.key, nr_samples, nr_bytes, m.key IS NOT NULL FROM bucket b"
		" LEFT JOIN module m ON m.key = b.module ORDER BY b.key",
		-1, &stmt, NULL);
	while (rc == SQLITE_OK && !r && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		rc = SQLITE_OK;
		if (n == max) {
			size_t more = max ? 2 * max : 64;
			void *bigger = realloc(buckets, more * sizeof(*buckets));

			if (!bigger) {
				r = mp_err_set(err, ENOMEM, "out of memory");
				break;
			}
			buckets = bigger;
			max = more;
		}
		buckets[n].key = sqlite3_column_int64(stmt, 0);
		buckets[n].nr_samples = (uint64_t)sqlite3_column_int64(stmt, 1);
		buckets[n].nr_bytes = (uint64_t)sqlite3_column_int64(stmt, 2);
		if (!sqlite3_column_int(stmt, 3))
			r = mp_store_damaged(store, "counts of no module", err);
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

static int sum_counts(struct mp_store *store, uint64_t *total, struct mp_err *err)
{
	struct bucket *buckets = NULL;
	uint64_t nr_samples, nr_bytes;
	size_t nr = 0;
	int r = read_buckets(store, &buckets, &nr, err);

	*total = 0;
	for (size_t i = 0; i < nr && !r; i++) {
		r = mp_store_sum_bucket(store, buckets[i].key, &nr_samples, &nr_bytes, err);
		if (!r && (nr_samples != buckets[i].nr_samples || nr_bytes != buckets[i].nr_bytes))
			r = mp_store_damaged(store, "counts that do not add up", err);
		*total += nr_samples;
	}
	free(buckets);
	return r;
}

static int sum_ledgers(struct mp_store *store, uint64_t *total, struct mp_err *err)
{
	struct mp_session *sessions = NULL;
	size_t nr = 0;
	int r = mp_store_list_sessions(store, &sessions, &nr, err);

	*total = 0;
	for (size_t i = 0; i < nr && !r; i++)
		*total += sessions[i].ledger.attributed;
	free(sessions);
	return r;
}

int mp_store_check(struct mp_store *store, struct mp_err *err)
{
	uint64_t counted = 0, attributed = 0;
	bool began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	r = check_file(store, err);
	if (!r)
		r = sum_counts(store, &counted, err);
	if (!r)
		r = sum_ledgers(store, &attributed, err);
	if (!r && counted != attributed)
		r = mp_err_set(err, EBADMSG,
			       "%s: damaged: %llu samples are stored, the ledgers say %llu",
			       store->path, (unsigned long long)counted,
			       (unsigned long long)attributed);
	return mp_store_leave(store, began, r, err);
}
