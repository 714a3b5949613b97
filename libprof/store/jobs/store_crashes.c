// SPDX-License-Identifier: Apache-2.0
/* store_crashes - the table of crashes; see store_crashes.h. */
#include "libprof/store/jobs/store_crashes.h"

#include <errno.h>

#include "libprof/store/store_private.h"

static int forget_old(struct mp_store *store, int64_t before_s, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_CRASH_DROP, "DELETE FROM crash WHERE when_s < ?1",
			      &stmt, err);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, before_s);
	return mp_store_run(store, stmt, "write", err);
}

int mp_store_add_crash(struct mp_store *store, int64_t module, int64_t when_s, int signal,
		       struct mp_err *err)
{
	sqlite3_stmt *stmt;
	bool began;
	int r;

	if (when_s < 0 || signal <= 0)
		return mp_err_set(err, EINVAL, "an impossible crash");
	r = mp_store_enter(store, &began, err);
	if (r)
		return r;
	r = mp_store_stmt(store, MP_STMT_CRASH_ADD,
			  "INSERT INTO crash(module, when_s, signal, nr) VALUES(?1, ?2, ?3, 1)"
			  " ON CONFLICT(module, when_s, signal) DO UPDATE SET nr = nr + 1",
			  &stmt, err);
	if (!r) {
		sqlite3_bind_int64(stmt, 1, module);
		sqlite3_bind_int64(stmt, 2, when_s);
		sqlite3_bind_int64(stmt, 3, signal);
		r = mp_store_run(store, stmt, "write", err);
	}
	if (!r)
		r = forget_old(store, when_s - MP_CRASHES_KEPT_S, err);
	return mp_store_leave(store, began, r, err);
}

int mp_store_count_crashes(struct mp_store *store, int64_t module, int64_t since_s, uint64_t *nr,
			   struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_CRASH_COUNT,
			      "SELECT total(nr) FROM crash WHERE module = ?1 AND when_s >= ?2",
			      &stmt, err);
	double sum = 0;

	*nr = 0;
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, module);
	sqlite3_bind_int64(stmt, 2, since_s);
	r = mp_store_step(store, stmt, "read", err);
	if (r == 1)
		sum = sqlite3_column_double(stmt, 0);
	sqlite3_reset(stmt);
	if (sum > 0 && sum < 1e15)
		*nr = (uint64_t)sum;
	return r < 0 ? r : 0;
}
