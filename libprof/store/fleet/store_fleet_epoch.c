// SPDX-License-Identifier: Apache-2.0
/*
 * store_fleet_epoch - begins and continues the history of a database; see store_fleet.h. Decides
 * nothing about rows.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "libprof/store/fleet/fleet_base.h"
#include "libprof/store/fleet/store_fleet.h"
#include "libprof/store/store_private.h"

/* Rare, so nothing is prepared in advance. @a is bound if the statement has a parameter. */
static int run(struct mp_store *store, const char *sql, int64_t a, struct mp_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL);

	if (rc == SQLITE_OK && sqlite3_bind_parameter_count(stmt))
		rc = sqlite3_bind_int64(stmt, 1, a);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? 0 : mp_store_fail(store, rc, "write", err);
}

static int read_columns(struct mp_store *store, sqlite3_stmt *stmt, const uint8_t *machine,
			struct mp_fleet_epoch *out, struct mp_err *err)
{
	const void *name = sqlite3_column_blob(stmt, 0), *where = sqlite3_column_blob(stmt, 1);

	if (sqlite3_column_bytes(stmt, 0) != MP_FLEET_EPOCH_BYTES || !name ||
	    sqlite3_column_bytes(stmt, 1) != MP_FLEET_MACHINE_BYTES || !where)
		return mp_store_damaged(store, "an impossible epoch", err);
	memcpy(out->name, name, MP_FLEET_EPOCH_BYTES);
	out->is_same_machine = !memcmp(where, machine, MP_FLEET_MACHINE_BYTES);
	out->seq = sqlite3_column_int64(stmt, 2);
	out->token = sqlite3_column_int64(stmt, 3);
	if (out->seq < 0 || out->seq == INT64_MAX || out->token < 0)
		return mp_store_damaged(store, "an impossible epoch", err);
	return 0;
}

int mp_fleet_epoch_read(struct mp_store *store, const uint8_t *machine, bool *has,
			struct mp_fleet_epoch *out, struct mp_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(store->db, "SELECT epoch, machine, seq, token FROM fleet_epoch",
				    -1, &stmt, NULL);
	int r = 0;

	*has = false;
	memset(out, 0, sizeof(*out));
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW) {
		r = read_columns(store, stmt, machine, out, err);
		*has = !r;
	} else if (rc != SQLITE_DONE) {
		r = mp_store_fail(store, rc, "read", err);
	}
	sqlite3_finalize(stmt);
	return r;
}

/* Forgets what the server has. */
static int forget_sent(struct mp_store *store, struct mp_err *err)
{
	int r = run(store, "DELETE FROM fleet_bucket", 0, err);

	if (!r)
		r = run(store, "DELETE FROM fleet_chunk", 0, err);
	return r ? r : run(store, "DELETE FROM fleet_pending", 0, err);
}

int mp_fleet_is_pending(struct mp_store *store, int64_t token, bool *is, struct mp_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(store->db, "SELECT 1 FROM fleet_pending WHERE token = ?1", -1,
				    &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(stmt, 1, token);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	*is = rc == SQLITE_ROW;
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : mp_store_fail(store, rc, "read", err);
}

static int put_epoch(struct mp_store *store, const uint8_t *machine, struct mp_err *err)
{
	uint8_t name[MP_FLEET_EPOCH_BYTES];
	sqlite3_stmt *stmt = NULL;
	int rc;

	if (getrandom(name, sizeof(name), 0) != (ssize_t)sizeof(name))
		return mp_err_set(err, EIO, "no random numbers: %s", strerror(errno));
	rc = sqlite3_prepare_v2(store->db,
				"REPLACE INTO fleet_epoch(key, epoch, machine, seq, token)"
				" VALUES(1, ?1, ?2, 0, 0)",
				-1, &stmt, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_blob(stmt, 1, name, sizeof(name), SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_blob(stmt, 2, machine, MP_FLEET_MACHINE_BYTES, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? 0 : mp_store_fail(store, rc, "write", err);
}

int mp_fleet_epoch_begin(struct mp_store *store, const uint8_t *machine, bool fork,
			 struct mp_err *err)
{
	bool began;
	int r = mp_store_enter_durably(store, &began, err);

	if (r)
		return r;
	r = put_epoch(store, machine, err);
	if (!r)
		r = forget_sent(store, err);
	if (!r && fork)
		r = mp_fleet_base_fork(store, err);
	return mp_store_leave(store, began, r, err);
}

int mp_fleet_epoch_send_again(struct mp_store *store, int64_t seq, int64_t token,
			      struct mp_err *err)
{
	bool began;
	int r = mp_store_enter_durably(store, &began, err);

	if (r)
		return r;
	r = forget_sent(store, err);
	if (!r)
		r = run(store, "UPDATE fleet_epoch SET seq = ?1", seq, err);
	if (!r)
		r = run(store, "UPDATE fleet_epoch SET token = ?1", token, err);
	return mp_store_leave(store, began, r, err);
}

int mp_fleet_confirm(struct mp_store *store, int64_t token, struct mp_err *err)
{
	bool began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	r = run(store, "UPDATE fleet_epoch SET seq = seq + 1, token = ?1", token, err);
	if (!r)
		r = run(store, "DELETE FROM fleet_pending", 0, err);
	return mp_store_leave(store, began, r, err);
}

int mp_fleet_revert(struct mp_store *store, struct mp_err *err)
{
	bool began;
	int r = mp_store_enter(store, &began, err);

	if (r)
		return r;
	r = run(store, "DELETE FROM fleet_bucket WHERE seq = (SELECT seq + 1 FROM fleet_epoch)", 0,
		err);
	if (!r)
		r = run(store,
			"DELETE FROM fleet_chunk WHERE seq = (SELECT seq + 1 FROM fleet_epoch)", 0,
			err);
	return mp_store_leave(store, began, r, err);
}
