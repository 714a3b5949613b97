// SPDX-License-Identifier: Apache-2.0
/*
 * store_private - data and functions that the files of the store share. Included only by
 * them and their tests.
 */
#ifndef MP_STORE_PRIVATE_H
#define MP_STORE_PRIVATE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/grow.h"
#include "libprof/store/store.h"

#define MP_STORE_APPLICATION_ID 0x4d525048 /* "MRPH" */

#define MP_NR_SERIES_STMT 10

/* Statements that are prepared once per connection. */
enum mp_stmt {
	MP_STMT_MODULE_FIND,
	MP_STMT_MODULE_ADD,
	MP_STMT_MODULE_SEEN,
	MP_STMT_MODULE_LIST,
	MP_STMT_MODULE_TEXT_SIZE,
	MP_STMT_BUCKET_ALL,
	MP_STMT_EDGE_BUCKET_ALL,
	MP_STMT_COUNTS, /* store_series.h */
	MP_STMT_EDGES = MP_STMT_COUNTS + MP_NR_SERIES_STMT,
	MP_STMT_COPIES = MP_STMT_EDGES + MP_NR_SERIES_STMT,
	MP_STMT_WAYS = MP_STMT_COPIES + MP_NR_SERIES_STMT,
	MP_STMT_AFTER_SERIES = MP_STMT_WAYS + MP_NR_SERIES_STMT - 1,
	MP_STMT_WAY_SUM,
	MP_STMT_PATH_BUCKET_LIST,
	MP_STMT_PATH_BUCKET_ADD,
	MP_STMT_PATH_BUCKET_SET,
	MP_STMT_PATH_BUCKET_DELETE,
	MP_STMT_PATH_LIST,
	MP_STMT_PATH_FIND,
	MP_STMT_PATH_SET,
	MP_STMT_PATH_DELETE,
	MP_STMT_PATH_DELETE_ALL,
	MP_STMT_SESSION_ADD,
	MP_STMT_SESSION_SEEN,
	MP_STMT_SESSION_LIST,
	MP_STMT_LEDGER_ADD,
	MP_STMT_LEDGER_LIST,
	MP_STMT_ACTIVITY_FIND,
	MP_STMT_ACTIVITY_ADD,
	MP_STMT_ACTIVITY_ALL,
	MP_STMT_ACTIVITY_DELETE,
	MP_STMT_OUTPUT_PUT,
	MP_STMT_OUTPUT_FIND,
	MP_STMT_PROCESS_COUNT,
	MP_STMT_PROCESS_FIND,
	MP_STMT_PROCESS_ADD,
	MP_STMT_PROCESS_FOLD,
	MP_STMT_PROCESS_DROP,
	MP_STMT_PROCESS_LIST,
	MP_STMT_FINGERPRINT_READ,
	MP_STMT_FINGERPRINT_SET,
	MP_STMT_COPIED_PUT,
	MP_STMT_COPIED_LIST,
	MP_STMT_TRIAL_ADD,
	MP_STMT_TRIAL_LIST,
	MP_STMT_AUDIT_PUT,
	MP_STMT_AUDIT_DROP,
	MP_STMT_AUDIT_LIST,
	MP_STMT_AUDIT_STRAYS,
	MP_STMT_AUDIT_EFFECT_PUT,
	MP_STMT_AUDIT_EFFECT_DELETE,
	MP_STMT_AUDIT_EFFECT_DROP,
	MP_STMT_AUDIT_EFFECT_LIST,
	MP_STMT_AUDIT_POINT_PUT,
	MP_STMT_AUDIT_POINT_DELETE,
	MP_STMT_AUDIT_POINT_DROP,
	MP_STMT_AUDIT_POINT_LIST,
	MP_STMT_JOB_FIND,
	MP_STMT_JOB_LIST,
	MP_STMT_JOB_ADD,
	MP_STMT_JOB_SET,
	MP_STMT_CRASH_ADD,
	MP_STMT_CRASH_DROP,
	MP_STMT_CRASH_COUNT,
	MP_STMT_HISTORY_FIND,
	MP_STMT_HISTORY_ADD,
	MP_STMT_HISTORY_DROP,
	MP_STMT_HISTORY_ROUND,
	MP_STMT_HISTORY_LIST,
	MP_STMT_REJECTED_ADD,
	MP_STMT_REJECTED_FIND,
	MP_STMT_SPENT_ADD,
	MP_STMT_SPENT_DROP,
	MP_STMT_SPENT_READ,
	MP_STMT_CONTEXT_LIST,
	MP_STMT_CONTEXT_READ,
	MP_STMT_CONTEXT_DELETE,
	MP_STMT_CONTEXT_ADD,
	MP_STMT_CONTEXT_PROGRAMS,
	MP_STMT_CALL_LIST, /* and four more, as before */
	MP_STMT_CALL_LAST = MP_STMT_CALL_LIST + 4,
	MP_STMT_CONTEXT_MODULE,
	MP_STMT_FLEET_BUCKET_SUM,
	MP_STMT_FLEET_BUCKET_PUT,
	MP_STMT_FLEET_BUCKET_DROP,
	MP_STMT_FLEET_CHUNK_FIND,
	MP_STMT_FLEET_CHUNK_PUT,
	MP_STMT_FLEET_CHUNK_DROP,
	MP_STMT_FLEET_BASE_SUM,
	MP_STMT_FLEET_BASE_ADD,
	MP_STMT_FLEET_PATH_BUCKETS,
	MP_NR_STMT
};

struct mp_store_array {
	void *data;
	size_t size; /* bytes */
};

/* Growing arrays that live as long as the connection: a flush needs no allocation. */
struct mp_store_scratch {
	struct mp_store_array entries[2];
	struct mp_store_array bytes;
};

struct mp_store {
	sqlite3 *db;
	char *path;
	bool writable;
	bool durable;	  /* this transaction reaches the disk before mp_store_leave() returns */
	bool folded;	  /* buckets were merged in this transaction: pages may be free */
	int data_version; /* at the last call of mp_store_was_changed(); 0: none */
	sqlite3_stmt *stmts[MP_NR_STMT];
	struct mp_store_scratch scratch;
};

/* Return: the errno for SQLite's @rc. */
int mp_store_errno(struct mp_store *store, int rc);
/* Turns SQLite's result into -errno and a message "PATH: cannot WHAT: reason". */
int mp_store_fail(struct mp_store *store, int rc, const char *what, struct mp_err *err);
/* Reports that the file's content contradicts itself. Return: -EBADMSG. */
int mp_store_damaged(struct mp_store *store, const char *what, struct mp_err *err);
/*
 * mp_store_check_none - runs @sql, which counts rows that should not be there.
 * Return: 0: there is none; -EBADMSG with the message @what; -errno.
 */
int mp_store_check_none(struct mp_store *store, const char *sql, const char *what,
			struct mp_err *err);
/* mp_grow(), with a message. */
#define mp_store_grow(array, room, wanted, err)                                                    \
	(mp_grow(array, room, wanted) ? mp_err_set(err, ENOMEM, "out of memory") : 0)

/* Runs @sql, which has no parameters. Return: SQLite's result. */
int mp_store_exec(struct mp_store *store, const char *sql);
/* Gives the cached statement, reset and without bindings. */
int mp_store_stmt(struct mp_store *store, enum mp_stmt which, const char *sql, sqlite3_stmt **out,
		  struct mp_err *err);
/* Return: 1 a row, 0 done (the statement is reset), -errno (reset, too). */
int mp_store_step(struct mp_store *store, sqlite3_stmt *stmt, const char *what, struct mp_err *err);
/* Runs a statement that gives no rows. */
int mp_store_run(struct mp_store *store, sqlite3_stmt *stmt, const char *what, struct mp_err *err);

/*
 * Begins a transaction unless one is open. mp_store_leave() ends only a transaction that
 * enter began: it commits if @r is 0, and rolls back otherwise. Return: @r or the commit's
 * error.
 */
int mp_store_enter(struct mp_store *store, bool *began, struct mp_err *err);
/*
 * The same. A power cut after mp_store_leave() does not lose this transaction, nor any one before. Steps that
 * change files outside of the store need this: the store must not forget what was done.
 */
int mp_store_enter_durably(struct mp_store *store, bool *began, struct mp_err *err);
int mp_store_leave(struct mp_store *store, bool began, int r, struct mp_err *err);

/*
 * store_files.c: SQLite's way to files. Of databases in directories of other users, root
 * - follows no symbolic link of another user, in any part of a name, also of -wal, -shm and -journal;
 * - opens no file that has a second name, and no pipe or device.
 * For all users, the journal of a database cannot name a file to be removed.
 * mp_store_connect - as sqlite3_open_v2().
 */
#define MP_STORE_VFS "morph"
int mp_store_connect(const char *name, int flags, sqlite3 **db);

/*
 * schema/store_schema.c: makes the tables of an unused database; refuses one that is not Morph's, or
 * of another schema. Numbers below this one are of the time before the first release.
 */
#define MP_STORE_SCHEMA 18
int mp_store_create(struct mp_store *store, struct mp_err *err);
/* For a read-only store: refuses what mp_store_create() would refuse, and an unused database. */
int mp_store_check_schema(struct mp_store *store, struct mp_err *err);
/*
 * store_epoch.c: names the database anew. @machine: MP_MACHINE_BYTES bytes; the second one notes this
 * machine.
 */
#define MP_EPOCH_BYTES 16
int mp_store_put_epoch(struct mp_store *store, const uint8_t *machine, struct mp_err *err);
int mp_store_begin_epoch(struct mp_store *store, struct mp_err *err);

static inline int64_t mp_day_of(int64_t when_s)
{
	return when_s / MP_SECONDS_PER_DAY;
}

/* True if any day of a span up to @last_day counts for @since_s. */
static inline bool mp_day_wanted(int64_t last_day, int64_t since_s)
{
	return !since_s || last_day >= mp_day_of(since_s);
}

#endif
