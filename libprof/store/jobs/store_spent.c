// SPDX-License-Identifier: Apache-2.0
/* store_spent - rejected layouts, and what work has cost; see store_jobs.h. */
#include <errno.h>
#include <string.h>

#include "libprof/store/jobs/store_jobs.h"
#include "libprof/store/store_private.h"

#define DAYS_KEPT 30

static void bind_layout(sqlite3_stmt *stmt, const struct mp_id *id, const char *layout)
{
	sqlite3_bind_blob(stmt, 1, id->build_id_len ? (const void *)id->build_id : "",
			  id->build_id_len, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, (int64_t)id->text_hash);
	sqlite3_bind_text(stmt, 3, layout, -1, SQLITE_STATIC);
}

int mp_store_reject_layout(struct mp_store *store, const struct mp_id *id, const char *layout,
			   const char *reason, int64_t now_s, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r;

	if (!layout[0] || strlen(layout) >= MP_JOB_HASH_MAX)
		return mp_err_set(err, EINVAL, "'%.60s' is not the hash of a layout", layout);
	r = mp_store_stmt(store, MP_STMT_REJECTED_ADD,
			  "INSERT OR REPLACE INTO rejected_layout(build_id, text_hash, layout,"
			  " when_s, reason) VALUES(?1, ?2, ?3, ?4, ?5)",
			  &stmt, err);
	if (r)
		return r;
	bind_layout(stmt, id, layout);
	sqlite3_bind_int64(stmt, 4, now_s);
	sqlite3_bind_text(stmt, 5, reason, (int)strnlen(reason, MP_JOB_TEXT_MAX), SQLITE_STATIC);
	return mp_store_run(store, stmt, "write", err);
}

int mp_store_is_rejected(struct mp_store *store, const struct mp_id *id, const char *layout,
			 bool *rejected, struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int r = mp_store_stmt(store, MP_STMT_REJECTED_FIND,
			      "SELECT 1 FROM rejected_layout WHERE build_id = ?1 AND text_hash = ?2"
			      " AND layout = ?3",
			      &stmt, err);

	*rejected = false;
	if (r)
		return r;
	bind_layout(stmt, id, layout);
	r = mp_store_step(store, stmt, "read", err);
	sqlite3_reset(stmt);
	*rejected = r == 1;
	return r < 0 ? r : 0;
}

int mp_store_add_spent(struct mp_store *store, int64_t when_s, const struct mp_spent *delta,
		       struct mp_err *err)
{
	int64_t day = mp_day_of(when_s);
	sqlite3_stmt *add, *drop;
	bool began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	r = mp_store_stmt(store, MP_STMT_SPENT_ADD,
			  "INSERT INTO spent(day, cpu_ms, disk_bytes) VALUES(?1, ?2, ?3)"
			  " ON CONFLICT(day) DO UPDATE SET cpu_ms = cpu_ms + ?2,"
			  " disk_bytes = disk_bytes + ?3",
			  &add, err);
	if (!r) {
		sqlite3_bind_int64(add, 1, day);
		sqlite3_bind_int64(add, 2, (int64_t)delta->cpu_ms);
		sqlite3_bind_int64(add, 3, (int64_t)delta->disk_bytes);
		r = mp_store_run(store, add, "write", err);
	}
	if (!r)
		r = mp_store_stmt(store, MP_STMT_SPENT_DROP, "DELETE FROM spent WHERE day < ?1",
				  &drop, err);
	if (!r) {
		sqlite3_bind_int64(drop, 1, day - DAYS_KEPT);
		r = mp_store_run(store, drop, "write", err);
	}
	return mp_store_leave(store, began, r, err);
}

int mp_store_read_spent(struct mp_store *store, int64_t when_s, struct mp_spent *out,
			struct mp_err *err)
{
	sqlite3_stmt *stmt;
	int64_t cpu_ms = 0, disk_bytes = 0;
	int r = mp_store_stmt(store, MP_STMT_SPENT_READ,
			      "SELECT cpu_ms, disk_bytes FROM spent WHERE day = ?1", &stmt, err);

	*out = (struct mp_spent){0};
	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, mp_day_of(when_s));
	r = mp_store_step(store, stmt, "read", err);
	if (r == 1) {
		cpu_ms = sqlite3_column_int64(stmt, 0);
		disk_bytes = sqlite3_column_int64(stmt, 1);
	}
	sqlite3_reset(stmt);
	if (r < 0)
		return r;
	if (cpu_ms < 0 || disk_bytes < 0)
		return mp_store_damaged(store, "impossible costs of a day", err);
	*out = (struct mp_spent){(uint64_t)cpu_ms, (uint64_t)disk_bytes};
	return 0;
}
