// SPDX-License-Identifier: Apache-2.0
/* store_transaction - transactions of the store, nested by enter and leave. */
#include <errno.h>
#include <sqlite3.h>

#include "libprof/store/store_private.h"

/* What is written to a file without a name is lost. SQLite looks at that only where it has no WAL. */
static bool was_removed(struct mp_store *store)
{
	int moved = 0;

	return sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) ==
		       SQLITE_OK &&
	       moved;
}

int mp_store_begin(struct mp_store *store, struct mp_err *err)
{
	int rc;

	if (store->writable && was_removed(store))
		return mp_err_set(
			err, ESTALE,
			"%s: was removed or replaced while it was in use: what is not yet "
			"stored is lost",
			store->path);
	rc = mp_store_exec(store, store->writable ? "BEGIN IMMEDIATE" : "BEGIN");
	store->folded = false;
	return rc == SQLITE_OK ? 0 : mp_store_fail(store, rc, "begin", err);
}

/* Merging buckets leaves free pages. Most are reused, so give them back only if there are many. */
static int give_back_pages(struct mp_store *store)
{
	sqlite3_stmt *stmt = NULL;
	sqlite3_int64 nr[2] = {0};
	const char *sql[] = {"PRAGMA freelist_count", "PRAGMA page_count"};

	for (int i = 0; i < 2; i++) {
		if (sqlite3_prepare_v2(store->db, sql[i], -1, &stmt, NULL) == SQLITE_OK &&
		    sqlite3_step(stmt) == SQLITE_ROW)
			nr[i] = sqlite3_column_int64(stmt, 0);
		sqlite3_finalize(stmt);
	}
	return nr[0] > nr[1] / 8 ? mp_store_exec(store, "PRAGMA incremental_vacuum") : SQLITE_OK;
}

int mp_store_commit(struct mp_store *store, struct mp_err *err)
{
	int rc = SQLITE_OK, r;

	if (store->folded)
		rc = give_back_pages(store);
	store->folded = false;
	if (rc == SQLITE_OK)
		rc = mp_store_exec(store, "COMMIT");
	if (rc == SQLITE_OK)
		return 0;
	r = mp_store_fail(store, rc, "commit", err);
	mp_store_rollback(store);
	return r;
}

void mp_store_rollback(struct mp_store *store)
{
	/* After a full disk SQLite may have rolled back by itself. */
	if (!sqlite3_get_autocommit(store->db))
		mp_store_exec(store, "ROLLBACK");
	store->folded = false;
}

int mp_store_enter(struct mp_store *store, bool *began, struct mp_err *err)
{
	*began = false;
	if (!sqlite3_get_autocommit(store->db))
		return 0;
	int r = mp_store_begin(store, err);

	*began = !r;
	return r;
}

int mp_store_enter_durably(struct mp_store *store, bool *began, struct mp_err *err)
{
	/* Within a transaction SQLite ignores the pragma. */
	if (sqlite3_get_autocommit(store->db))
		store->durable = mp_store_exec(store, "PRAGMA synchronous=FULL") == SQLITE_OK;
	return mp_store_enter(store, began, err);
}

int mp_store_leave(struct mp_store *store, bool began, int r, struct mp_err *err)
{
	if (!began)
		return r;
	if (!r)
		r = mp_store_commit(store, err);
	else
		mp_store_rollback(store);
	if (store->durable)
		mp_store_exec(store, "PRAGMA synchronous=NORMAL");
	store->durable = false;
	return r;
}
