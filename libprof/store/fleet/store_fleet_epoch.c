// SPDX-License-Identifier: Apache-2.0
/*
 * store_fleet_epoch - begins and continues the history of a database; see store_fleet.h. Decides
 * nothing about rows.
 */
#include <errno.h>
#include <string.h>

#include "libprof/store/fleet/fleet_private.h"

/* Changes the notes. @a: the statement's parameter, if it has one. */
static int run(struct mp_store *store, const char *sql, int64_t a, struct mp_err *err)
{
	return mp_fleet_run(store, MP_NR_STMT, sql, NULL, 0, err, a);
}

/* What is read, and compared with this machine. */
struct reading {
	const uint8_t *machine;
	bool *has;
	struct mp_fleet_epoch *out;
};

static int read_columns(struct mp_store *store, sqlite3_stmt *stmt, void *arg, struct mp_err *err)
{
	static const uint8_t none[MP_FLEET_MACHINE_BYTES];
	const struct reading *reading = arg;
	struct mp_fleet_epoch *out = reading->out;
	const void *name = sqlite3_column_blob(stmt, 0), *where = sqlite3_column_blob(stmt, 1);

	if (sqlite3_column_bytes(stmt, 0) != MP_FLEET_EPOCH_BYTES || !name ||
	    sqlite3_column_bytes(stmt, 1) != MP_FLEET_MACHINE_BYTES || !where)
		return mp_store_damaged(store, "an impossible epoch", err);
	memcpy(out->name, name, MP_FLEET_EPOCH_BYTES);
	out->is_same_machine = !memcmp(where, reading->machine, MP_FLEET_MACHINE_BYTES);
	out->is_machine_known = memcmp(where, none, MP_FLEET_MACHINE_BYTES) != 0;
	out->seq = sqlite3_column_int64(stmt, 2);
	out->token = sqlite3_column_int64(stmt, 3);
	if (out->seq < 0 || out->seq == INT64_MAX || out->token < 0)
		return mp_store_damaged(store, "an impossible epoch", err);
	*reading->has = true;
	return 0;
}

int mp_fleet_epoch_read(struct mp_store *store, const uint8_t *machine, bool *has,
			struct mp_fleet_epoch *out, struct mp_err *err)
{
	struct reading reading = {machine, has, out};

	*has = false;
	memset(out, 0, sizeof(*out));
	return mp_fleet_each(store, "SELECT epoch, machine, seq, token FROM fleet_epoch WHERE ?1",
			     read_columns, &reading, err, 1);
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
	int64_t one;
	int r = mp_fleet_run(store, MP_NR_STMT, "SELECT 1 FROM fleet_pending WHERE token = ?1",
			     &one, 1, err, token);

	*is = r > 0;
	return r < 0 ? r : 0;
}

int mp_fleet_epoch_begin(struct mp_store *store, const uint8_t *machine, bool fork,
			 struct mp_err *err)
{
	bool began;
	int r = mp_store_enter_durably(store, &began, err);

	if (r)
		return r;
	r = mp_store_put_epoch(store, machine, err);
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
