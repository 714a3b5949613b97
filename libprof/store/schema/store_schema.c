// SPDX-License-Identifier: Apache-2.0
/*
 * store_schema - the tables, and the steps from any older version to this one. Decides
 * whether a database is Morph's and whether it can be used; called by store.c on open. A
 * database is untrusted: its schema must be word for word the one below, so that no trigger
 * or view in it can run anything.
 */
#include "libprof/store/schema/store_audits_step.h"
#include "libprof/store/schema/store_fleet_step.h"
#include "libprof/store/schema/store_jobs_step.h"
#include "libprof/store/store_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
const char *const mp_store_steps[] = {
	/*
	 * 0 -> 1. A bucket holds a module's counts of the days first_day..last_day (since
	 * 1970, UTC). A chunk holds those of 64 KiB of text, encoded (store_codec).
	 * text_hash has the bits of the unsigned value. chunk.chunk is vaddr >> 16;
	 * checksum is the low half of XXH3-64.
	 */
	"CREATE TABLE module(key INTEGER PRIMARY KEY, build_id BLOB NOT NULL,"
	" text_hash INTEGER NOT NULL, kind INTEGER NOT NULL, path TEXT NOT NULL,"
	" text_size INTEGER NOT NULL, first_s INTEGER NOT NULL, last_s INTEGER NOT NULL,"
	" UNIQUE(build_id, text_hash));"
	"CREATE TABLE bucket(key INTEGER PRIMARY KEY, module INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, nr_samples INTEGER NOT NULL,"
	" nr_bytes INTEGER NOT NULL, UNIQUE(module, first_day));"
	"CREATE TABLE chunk(key INTEGER PRIMARY KEY, bucket INTEGER NOT NULL,"
	" chunk INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL,"
	" UNIQUE(bucket, chunk));"
	"CREATE TABLE session(key INTEGER PRIMARY KEY, start_s INTEGER NOT NULL,"
	" last_s INTEGER NOT NULL, collector TEXT NOT NULL, why TEXT NOT NULL,"
	" event TEXT NOT NULL, rate_hz INTEGER NOT NULL);"
	"CREATE TABLE ledger(session INTEGER NOT NULL, what TEXT NOT NULL, nr INTEGER NOT NULL,"
	" PRIMARY KEY(session, what)) WITHOUT ROWID;"
	"CREATE TABLE activity(module INTEGER NOT NULL, first_day INTEGER NOT NULL,"
	" last_day INTEGER NOT NULL, app INTEGER NOT NULL, lib INTEGER NOT NULL,"
	" kernel INTEGER NOT NULL, other INTEGER NOT NULL, PRIMARY KEY(module, first_day))"
	" WITHOUT ROWID;",
	/* 1 -> 2. Edges in the same form; a chunk holds those that leave its 64 KiB of text. */
	"CREATE TABLE edge_bucket(key INTEGER PRIMARY KEY, module INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, nr_transfers INTEGER NOT NULL,"
	" nr_bytes INTEGER NOT NULL, UNIQUE(module, first_day));"
	"CREATE TABLE edge_chunk(key INTEGER PRIMARY KEY, bucket INTEGER NOT NULL,"
	" chunk INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL,"
	" UNIQUE(bucket, chunk));",
	/*
	 * 2 -> 3. Paths: one row each, in buckets of days. path.path is a key (path_key).
	 * checksum is the sum of XXH3-64 over the bucket's keys, each seeded with its
	 * count.
	 */
	"CREATE TABLE path_bucket(key INTEGER PRIMARY KEY, module INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, nr_samples INTEGER NOT NULL,"
	" nr_bytes INTEGER NOT NULL, checksum INTEGER NOT NULL, UNIQUE(module, first_day));"
	"CREATE TABLE path(bucket INTEGER NOT NULL, path BLOB NOT NULL, nr INTEGER NOT NULL,"
	" PRIMARY KEY(bucket, path)) WITHOUT ROWID;",
	/*
	 * 3 -> 4. exact: everything in the bucket was counted, not sampled. It is not known
	 * for existing buckets, hence 0.
	 */
	("ALTER TABLE bucket ADD COLUMN exact INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE edge_bucket ADD COLUMN exact INTEGER NOT NULL DEFAULT 0;"),
	/*
	 * 4 -> 5. Outputs that were verified (store_outputs). text_hash and the other
	 * hashes have the bits of the unsigned values.
	 */
	("CREATE TABLE output(build_id BLOB NOT NULL, text_hash INTEGER NOT NULL,"
	 " original_build_id BLOB NOT NULL, original_text_hash INTEGER NOT NULL,"
	 " paths_hash INTEGER NOT NULL, PRIMARY KEY(build_id, text_hash)) WITHOUT ROWID;"),
	/*
	 * 5 -> 6. Samples by process name, unit and user, of the days first_day..last_day.
	 * uid is -1 if the user is not known.
	 */
	"CREATE TABLE process(name TEXT NOT NULL, unit TEXT NOT NULL, uid INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, nr INTEGER NOT NULL,"
	" PRIMARY KEY(name, unit, uid, first_day)) WITHOUT ROWID;",
	/*
	 * 6 -> 7. Fingerprints of modules' files, to carry counts over to later builds;
	 * checksum is the low half of XXH3-64.
	 */
	"CREATE TABLE fingerprint(module INTEGER PRIMARY KEY, made_s INTEGER NOT NULL,"
	" checksum INTEGER NOT NULL, data BLOB NOT NULL);",
	/*
	 * 7 -> 8. Samples of outputs by the addresses of their own code (store_copies); copied
	 * says of which module an output was made. Trials of versions (store_trials): ratio,
	 * lowest and highest are times as fast, 0 where they are not known.
	 */
	"CREATE TABLE copied(output INTEGER PRIMARY KEY, original INTEGER NOT NULL);"
	"CREATE TABLE copy_bucket(key INTEGER PRIMARY KEY, module INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, nr_samples INTEGER NOT NULL,"
	" nr_bytes INTEGER NOT NULL, exact INTEGER NOT NULL DEFAULT 0, UNIQUE(module, first_day));"
	"CREATE TABLE copy_chunk(key INTEGER PRIMARY KEY, bucket INTEGER NOT NULL,"
	" chunk INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL,"
	" UNIQUE(bucket, chunk));"
	"CREATE TABLE trial(key INTEGER PRIMARY KEY, build_id BLOB NOT NULL,"
	" text_hash INTEGER NOT NULL, machine TEXT NOT NULL, functions TEXT NOT NULL,"
	" adjustments TEXT NOT NULL, verdict TEXT NOT NULL, runs INTEGER NOT NULL, ratio REAL NOT NULL,"
	" lowest REAL NOT NULL, highest REAL NOT NULL, when_s INTEGER NOT NULL);",
	/* 8 -> 9. Audits inside running programs (store_audits). */
	MP_STORE_STEP_AUDITS,
	/* 9 -> 10. What morph-worker looks after and decided (store_jobs, store_history). */
	MP_STORE_STEP_JOBS,
	/* 10 -> 11. Programs that a signal of a fault ended (store_crashes). */
	"CREATE TABLE crash(module INTEGER NOT NULL, when_s INTEGER NOT NULL,"
	" signal INTEGER NOT NULL, nr INTEGER NOT NULL,"
	" PRIMARY KEY(module, when_s, signal)) WITHOUT ROWID;",
	/*
	 * 11 -> 12. Trees of calling contexts (store_contexts), by program and days; checksum is the
	 * low half of XXH3-64.
	 */
	"CREATE TABLE context(key INTEGER PRIMARY KEY, module INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, nr_samples INTEGER NOT NULL,"
	" checksum INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE(module, first_day));",
	/* 12 -> 13. The table of rejected layouts has the name that the code uses (store_spent). */
	"ALTER TABLE shunned RENAME TO rejected_layout;",
	/* 13 -> 14. Calls that a clock of calls sampled, in the form of trees of contexts. */
	"CREATE TABLE call(key INTEGER PRIMARY KEY, module INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, nr_samples INTEGER NOT NULL,"
	" checksum INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE(module, first_day));",
	/* 14 -> 15. What a fleet's server has of this database, and what came from it (fleet/). */
	MP_STORE_STEP_FLEET,
	/* 15 -> 16. New trees of contexts are packed, which older programs cannot read. */
	"",
	/* 16 -> 17. Ways of branches that registers of samples showed (store_ways). */
	"CREATE TABLE way_bucket(key INTEGER PRIMARY KEY, module INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, nr_ways INTEGER NOT NULL,"
	" nr_bytes INTEGER NOT NULL, exact INTEGER NOT NULL DEFAULT 0, UNIQUE(module, first_day));"
	"CREATE TABLE way_chunk(key INTEGER PRIMARY KEY, bucket INTEGER NOT NULL,"
	" chunk INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL,"
	" UNIQUE(bucket, chunk));",
};
/* clang-format on */
const int mp_store_nr_steps = sizeof(mp_store_steps) / sizeof(mp_store_steps[0]);

static int read_pragma(struct mp_store *store, const char *sql, int *value, struct mp_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		*value = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW ? 0 : mp_store_fail(store, rc, "read", err);
}

static int exec(struct mp_store *store, const char *sql, const char *what, struct mp_err *err)
{
	int rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : mp_store_fail(store, rc, what, err);
}

/* Names and definitions of all objects in @db, one per line, by name. */
static int read_definitions(sqlite3 *db, char **out)
{
	sqlite3_str *text = sqlite3_str_new(db);
	sqlite3_stmt *stmt = NULL;
	int rc;

	/* Objects of ANALYZE and of SQLite itself have names that no user object may take. */
	rc = sqlite3_prepare_v2(db,
				"SELECT type, name, sql FROM sqlite_master"
				" WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
				-1, &stmt, NULL);
	if (rc == SQLITE_OK) {
		while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
			const unsigned char *sql = sqlite3_column_text(stmt, 2);

			/* NULL: an index that SQLite made, or out of memory. */
			if (!sql && sqlite3_column_type(stmt, 2) != SQLITE_NULL)
				break;
			sqlite3_str_appendf(text, "%s %s %s\n", sqlite3_column_text(stmt, 0),
					    sqlite3_column_text(stmt, 1), sql);
		}
	}
	if (rc == SQLITE_ROW || sqlite3_str_errcode(text))
		rc = SQLITE_NOMEM;
	sqlite3_finalize(stmt);
	*out = sqlite3_str_finish(text);
	if (rc == SQLITE_DONE && !*out)
		*out = sqlite3_mprintf("");
	if (rc == SQLITE_DONE)
		return *out ? SQLITE_OK : SQLITE_NOMEM;
	sqlite3_free(*out);
	*out = NULL;
	return rc;
}

/* The definitions after @version steps, as SQLite itself makes them in a database in memory. */
static int expected_definitions(const char *const *steps, int version, char **out)
{
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE, NULL);

	for (int i = 0; i < version && rc == SQLITE_OK; i++)
		rc = sqlite3_exec(db, steps[i], NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = read_definitions(db, out);
	sqlite3_close(db);
	return rc;
}

static int check_definitions(struct mp_store *store, const char *const *steps, int version,
			     struct mp_err *err)
{
	char *have = NULL, *want = NULL;
	int rc, r = 0;

	rc = read_definitions(store->db, &have);
	if (rc == SQLITE_OK)
		rc = expected_definitions(steps, version, &want);
	if (rc != SQLITE_OK)
		r = mp_store_fail(store, rc, "read the schema", err);
	else if (strcmp(have, want))
		r = mp_err_set(err, EBADMSG, "%s: damaged: the tables are not those of schema %d",
			       store->path, version);
	sqlite3_free(have);
	sqlite3_free(want);
	return r;
}

/* Sets *@version; 0: an unused database. */
static int check_owner(struct mp_store *store, int nr_steps, int *version, struct mp_err *err)
{
	int id, nr_objects, r;

	r = read_pragma(store, "PRAGMA application_id", &id, err);
	if (!r)
		r = read_pragma(store, "PRAGMA user_version", version, err);
	if (!r)
		r = read_pragma(store, "SELECT count(*) FROM sqlite_master", &nr_objects, err);
	if (r)
		return r;
	if (!id && !*version && !nr_objects)
		return 0;
	if (id != MP_STORE_APPLICATION_ID)
		return mp_err_set(err, EBADMSG, "%s: a database, but not one of Morph's",
				  store->path);
	if (*version > nr_steps)
		return mp_err_set(
			err, EPROTO,
			"%s: has schema %d, this program knows up to %d: use a newer Morph",
			store->path, *version, nr_steps);
	if (*version < 1)
		return mp_err_set(err, EBADMSG, "%s: damaged: schema %d", store->path, *version);
	return 0;
}

int mp_store_check_schema(struct mp_store *store, int nr_steps, struct mp_err *err)
{
	int version, r = check_owner(store, nr_steps, &version, err);

	if (r)
		return r;
	if (!version)
		return mp_err_set(err, ENOENT, "%s: empty, nothing was ever stored", store->path);
	if (version < nr_steps)
		return mp_err_set(err, EPROTO,
				  "%s: has the older schema %d: run morphd once to bring it to %d",
				  store->path, version, nr_steps);
	return check_definitions(store, mp_store_steps, version, err);
}

int mp_store_migrate(struct mp_store *store, const char *const *steps, int nr_steps,
		     struct mp_err *err)
{
	char sql[96];
	int version, r;

	/* Another process that migrates right now goes first, and we see its result. */
	r = exec(store, "BEGIN IMMEDIATE", "begin", err);
	if (r)
		return r;
	r = check_owner(store, nr_steps, &version, err);
	if (!r)
		r = check_definitions(store, steps, version, err);
	if (!r && version && version < nr_steps)
		r = mp_store_save(store, version, err);
	for (int i = version; !r && i < nr_steps; i++)
		r = exec(store, steps[i], "migrate", err);
	if (!r && version < nr_steps) {
		snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d",
			 MP_STORE_APPLICATION_ID, nr_steps);
		r = exec(store, sql, "migrate", err);
	}
	/* A new database. Of an older one nobody knows where it was made. */
	if (!r && !version && nr_steps >= mp_store_nr_steps)
		r = mp_store_begin_epoch(store, err);
	if (!r)
		r = exec(store, "COMMIT", "commit", err);
	if (r)
		mp_store_rollback(store);
	return r;
}
