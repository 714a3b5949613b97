// SPDX-License-Identifier: Apache-2.0
/*
 * store_epoch - gives a database a random name, and notes the machine where it was made. Copies of the
 * database have both, so that a fleet's server and morph-fleet push can tell them apart. Called when a
 * database is made, and by fleet/.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "libprof/base/machine_id.h"
#include "libprof/store/store_private.h"

int mp_store_put_epoch(struct mp_store *store, const uint8_t *machine, struct mp_err *err)
{
	uint8_t name[MP_EPOCH_BYTES];
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
		rc = sqlite3_bind_blob(stmt, 2, machine, MP_MACHINE_BYTES, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? 0 : mp_store_fail(store, rc, "write", err);
}

int mp_store_begin_epoch(struct mp_store *store, struct mp_err *err)
{
	uint8_t machine[MP_MACHINE_BYTES];

	/* A machine without an id has zeros. */
	(void)mp_machine_id_read(NULL, machine);
	return mp_store_put_epoch(store, machine, err);
}
