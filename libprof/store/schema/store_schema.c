// SPDX-License-Identifier: Apache-2.0
/*
 * store_schema - the tables. Decides
 * whether a database is Morph's and whether it can be used; called by store.c on open. A
 * database is untrusted: its schema must be word for word the one below, so that no trigger
 * or view in it can run anything.
 */
#include "libprof/store/store_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
/*
 * All tables. Hashes have the bits of the unsigned values, days are those since 1970 in UTC, and a
 * checksum is the low half of XXH3-64 unless a comment says otherwise.
 */
static const char schema[] =
	"CREATE TABLE module(key INTEGER PRIMARY KEY, build_id BLOB NOT NULL,"
	" text_hash INTEGER NOT NULL, kind INTEGER NOT NULL, path TEXT NOT NULL,"
	" text_size INTEGER NOT NULL, first_s INTEGER NOT NULL, last_s INTEGER NOT NULL,"
	" UNIQUE(build_id, text_hash));"
	/*
	 * A bucket holds a module's counts of the days first_day..last_day. A chunk holds those of
	 * 64 KiB of text, encoded (store_codec); chunk.chunk is vaddr >> 16. exact: everything in
	 * the bucket was counted, not sampled.
	 */
	"CREATE TABLE bucket(key INTEGER PRIMARY KEY, module INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, nr_samples INTEGER NOT NULL,"
	" nr_bytes INTEGER NOT NULL, exact INTEGER NOT NULL DEFAULT 0, UNIQUE(module, first_day));"
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
	" WITHOUT ROWID;"
	/* Samples by process name, unit and user; uid is -1 if the user is not known. */
	"CREATE TABLE process(name TEXT NOT NULL, unit TEXT NOT NULL, uid INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, nr INTEGER NOT NULL,"
	" PRIMARY KEY(name, unit, uid, first_day)) WITHOUT ROWID;"
	/* Programs that a signal of a fault ended (store_crashes). */
	"CREATE TABLE crash(module INTEGER NOT NULL, when_s INTEGER NOT NULL,"
	" signal INTEGER NOT NULL, nr INTEGER NOT NULL,"
	" PRIMARY KEY(module, when_s, signal)) WITHOUT ROWID;"
	/* Edges in the same form; a chunk holds those that leave its 64 KiB of text. */
	"CREATE TABLE edge_bucket(key INTEGER PRIMARY KEY, module INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, nr_transfers INTEGER NOT NULL,"
	" nr_bytes INTEGER NOT NULL, exact INTEGER NOT NULL DEFAULT 0, UNIQUE(module, first_day));"
	"CREATE TABLE edge_chunk(key INTEGER PRIMARY KEY, bucket INTEGER NOT NULL,"
	" chunk INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL,"
	" UNIQUE(bucket, chunk));"
	/*
	 * Paths: one row each, in buckets of days. path.path is a key (path_key). checksum is the
	 * sum of XXH3-64 over the bucket's keys, each seeded with its count.
	 */
	"CREATE TABLE path_bucket(key INTEGER PRIMARY KEY, module INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, nr_samples INTEGER NOT NULL,"
	" nr_bytes INTEGER NOT NULL, checksum INTEGER NOT NULL, UNIQUE(module, first_day));"
	"CREATE TABLE path(bucket INTEGER NOT NULL, path BLOB NOT NULL, nr INTEGER NOT NULL,"
	" PRIMARY KEY(bucket, path)) WITHOUT ROWID;"
	/* Ways of branches that registers of samples showed (store_ways). */
	"CREATE TABLE way_bucket(key INTEGER PRIMARY KEY, module INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, nr_ways INTEGER NOT NULL,"
	" nr_bytes INTEGER NOT NULL, exact INTEGER NOT NULL DEFAULT 0, UNIQUE(module, first_day));"
	"CREATE TABLE way_chunk(key INTEGER PRIMARY KEY, bucket INTEGER NOT NULL,"
	" chunk INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL,"
	" UNIQUE(bucket, chunk));"
	/* Outputs that were verified (store_outputs). */
	"CREATE TABLE output(build_id BLOB NOT NULL, text_hash INTEGER NOT NULL,"
	" original_build_id BLOB NOT NULL, original_text_hash INTEGER NOT NULL,"
	" paths_hash INTEGER NOT NULL, PRIMARY KEY(build_id, text_hash)) WITHOUT ROWID;"
	/*
	 * Samples of outputs by the addresses of their own code (store_copies); copied says of which
	 * module an output was made.
	 */
	"CREATE TABLE copied(output INTEGER PRIMARY KEY, original INTEGER NOT NULL);"
	"CREATE TABLE copy_bucket(key INTEGER PRIMARY KEY, module INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, nr_samples INTEGER NOT NULL,"
	" nr_bytes INTEGER NOT NULL, exact INTEGER NOT NULL DEFAULT 0, UNIQUE(module, first_day));"
	"CREATE TABLE copy_chunk(key INTEGER PRIMARY KEY, bucket INTEGER NOT NULL,"
	" chunk INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL,"
	" UNIQUE(bucket, chunk));"
	/* Fingerprints of modules' files, to carry counts over to later builds. */
	"CREATE TABLE fingerprint(module INTEGER PRIMARY KEY, made_s INTEGER NOT NULL,"
	" checksum INTEGER NOT NULL, data BLOB NOT NULL);"
	/* Trees of calling contexts (store_contexts), and calls that a clock of calls sampled. */
	"CREATE TABLE context(key INTEGER PRIMARY KEY, module INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, nr_samples INTEGER NOT NULL,"
	" checksum INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE(module, first_day));"
	"CREATE TABLE call(key INTEGER PRIMARY KEY, module INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, nr_samples INTEGER NOT NULL,"
	" checksum INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE(module, first_day));"
	/*
	 * Versions that an audit compared (store_trials): ratio, lowest and highest are times as fast,
	 * 0 where they are not known.
	 */
	"CREATE TABLE trial(key INTEGER PRIMARY KEY, build_id BLOB NOT NULL,"
	" text_hash INTEGER NOT NULL, machine TEXT NOT NULL, functions TEXT NOT NULL,"
	" adjustments TEXT NOT NULL, verdict TEXT NOT NULL, runs INTEGER NOT NULL,"
	" ratio REAL NOT NULL, lowest REAL NOT NULL, highest REAL NOT NULL,"
	" when_s INTEGER NOT NULL);"
	/*
	 * Audits inside running programs (store_audits). Estimates and bounds are logarithms; a bound
	 * may be infinite. vaddr is 0 if it is not known.
	 */
	"CREATE TABLE program_audit(key INTEGER PRIMARY KEY, table_hash INTEGER NOT NULL,"
	" build_id BLOB NOT NULL, text_hash INTEGER NOT NULL, original_build_id BLOB NOT NULL,"
	" original_text_hash INTEGER NOT NULL, path TEXT NOT NULL, machine TEXT NOT NULL,"
	" alpha REAL NOT NULL, start_s INTEGER NOT NULL, last_s INTEGER NOT NULL,"
	" nr_functions INTEGER NOT NULL, nr_lost INTEGER NOT NULL, nr_torn INTEGER NOT NULL,"
	" nr_foreign INTEGER NOT NULL);"
	"CREATE TABLE program_audit_effect(audit INTEGER NOT NULL, function INTEGER NOT NULL,"
	" vaddr INTEGER NOT NULL, verdict INTEGER NOT NULL, earlier INTEGER NOT NULL,"
	" pairs INTEGER NOT NULL, decided_at INTEGER NOT NULL, preempted INTEGER NOT NULL,"
	" abandoned INTEGER NOT NULL, signalled INTEGER NOT NULL, empty INTEGER NOT NULL,"
	" alone INTEGER NOT NULL, wrong INTEGER NOT NULL, estimate REAL NOT NULL,"
	" lowest REAL NOT NULL, highest REAL NOT NULL, PRIMARY KEY(audit, function))"
	" WITHOUT ROWID;"
	"CREATE TABLE program_audit_point(audit INTEGER NOT NULL, function INTEGER NOT NULL,"
	" point INTEGER NOT NULL, pairs INTEGER NOT NULL, ticks_a INTEGER NOT NULL,"
	" rounds_a INTEGER NOT NULL, ticks_b INTEGER NOT NULL, rounds_b INTEGER NOT NULL,"
	" PRIMARY KEY(audit, function, point)) WITHOUT ROWID;"
	/*
	 * What morph-worker does: jobs, history, rejected layouts, and what work has cost a day.
	 * lowest, ratio and highest are times as fast, 0 where they are not known; predicted is taken
	 * branches after / before, 0 where it is not known. A round has each step once.
	 */
	"CREATE TABLE job(key INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE,"
	" build_id BLOB NOT NULL, text_hash INTEGER NOT NULL, file_hash TEXT NOT NULL,"
	" state TEXT NOT NULL, since_s INTEGER NOT NULL, asked TEXT NOT NULL,"
	" uid INTEGER NOT NULL, round INTEGER NOT NULL, not_before_s INTEGER NOT NULL,"
	" detail TEXT NOT NULL, output TEXT NOT NULL, layout TEXT NOT NULL,"
	" ratio REAL NOT NULL, lowest REAL NOT NULL, highest REAL NOT NULL,"
	" predicted REAL NOT NULL, adopted_s INTEGER NOT NULL, before_samples INTEGER NOT NULL,"
	" before_all INTEGER NOT NULL, before_crashes INTEGER NOT NULL);"
	"CREATE TABLE history(key INTEGER PRIMARY KEY, when_s INTEGER NOT NULL,"
	" path TEXT NOT NULL, build_id BLOB NOT NULL, text_hash INTEGER NOT NULL,"
	" round INTEGER NOT NULL, step TEXT NOT NULL, state TEXT NOT NULL,"
	" verdict TEXT NOT NULL, reason TEXT NOT NULL, ratio REAL NOT NULL, lowest REAL NOT NULL,"
	" highest REAL NOT NULL, predicted REAL NOT NULL, layout TEXT NOT NULL,"
	" UNIQUE(path, round, step));"
	"CREATE TABLE rejected_layout(build_id BLOB NOT NULL, text_hash INTEGER NOT NULL,"
	" layout TEXT NOT NULL, when_s INTEGER NOT NULL, reason TEXT NOT NULL,"
	" PRIMARY KEY(build_id, text_hash, layout)) WITHOUT ROWID;"
	"CREATE TABLE spent(day INTEGER PRIMARY KEY, cpu_ms INTEGER NOT NULL,"
	" disk_bytes INTEGER NOT NULL);"
	/*
	 * fleet/. fleet_epoch has at most one row: the history of this database of which the fleet's
	 * server knows. fleet_pending has the tokens of batches that were sent after token, and of
	 * which no fate is known. fleet_bucket and fleet_chunk say what the server has of it: the sum
	 * of the counts of some days, and XXH3-64 of the bytes that were sent for a chunk. seq is the
	 * batch that sent it. Losing rows of these two only means that counts are sent again.
	 * fleet_base holds counts in this database that are not its own: they are never sent. origin
	 * is enum mp_fleet_origin. A span of days in fleet_base lies within one bucket, since buckets
	 * are folded together and never divided.
	 */
	"CREATE TABLE fleet_epoch(key INTEGER PRIMARY KEY, epoch BLOB NOT NULL,"
	" machine BLOB NOT NULL, seq INTEGER NOT NULL, token INTEGER NOT NULL);"
	"CREATE TABLE fleet_pending(key INTEGER PRIMARY KEY, token INTEGER NOT NULL);"
	"CREATE TABLE fleet_bucket(kind INTEGER NOT NULL, module INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, last_day INTEGER NOT NULL, total INTEGER NOT NULL,"
	" seq INTEGER NOT NULL, PRIMARY KEY(module, kind, first_day)) WITHOUT ROWID;"
	"CREATE TABLE fleet_chunk(kind INTEGER NOT NULL, module INTEGER NOT NULL,"
	" first_day INTEGER NOT NULL, chunk INTEGER NOT NULL, hash INTEGER NOT NULL,"
	" seq INTEGER NOT NULL, PRIMARY KEY(module, kind, first_day, chunk)) WITHOUT ROWID;"
	"CREATE TABLE fleet_base(key INTEGER PRIMARY KEY, kind INTEGER NOT NULL,"
	" module INTEGER NOT NULL, origin INTEGER NOT NULL, first_day INTEGER NOT NULL,"
	" last_day INTEGER NOT NULL, chunk INTEGER NOT NULL, session INTEGER NOT NULL,"
	" total INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL,"
	" UNIQUE(module, kind, origin, first_day, chunk));";
/* clang-format on */

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

/* The definitions of the schema, as SQLite itself makes them in a database in memory. */
static int expected_definitions(char **out)
{
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, schema, NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = read_definitions(db, out);
	sqlite3_close(db);
	return rc;
}

static int check_definitions(struct mp_store *store, struct mp_err *err)
{
	char *have = NULL, *want = NULL;
	int rc, r = 0;

	rc = read_definitions(store->db, &have);
	if (rc == SQLITE_OK)
		rc = expected_definitions(&want);
	if (rc != SQLITE_OK)
		r = mp_store_fail(store, rc, "read the schema", err);
	else if (strcmp(have, want))
		r = mp_err_set(err, EBADMSG, "%s: damaged: the tables are not those of schema %d",
			       store->path, MP_STORE_SCHEMA);
	sqlite3_free(have);
	sqlite3_free(want);
	return r;
}

/* Sets *@unused: nothing was ever stored. */
static int check_owner(struct mp_store *store, bool *unused, struct mp_err *err)
{
	int id, version, nr_objects, r;

	r = read_pragma(store, "PRAGMA application_id", &id, err);
	if (!r)
		r = read_pragma(store, "PRAGMA user_version", &version, err);
	if (!r)
		r = read_pragma(store, "SELECT count(*) FROM sqlite_master", &nr_objects, err);
	if (r)
		return r;
	*unused = !id && !version && !nr_objects;
	if (*unused || (id == MP_STORE_APPLICATION_ID && version == MP_STORE_SCHEMA))
		return 0;
	if (id != MP_STORE_APPLICATION_ID)
		return mp_err_set(err, EBADMSG, "%s: a database, but not one of Morph's",
				  store->path);
	if (version > MP_STORE_SCHEMA)
		return mp_err_set(err, EPROTO,
				  "%s: has schema %d, this program knows %d: use a newer Morph",
				  store->path, version, MP_STORE_SCHEMA);
	if (version < 1)
		return mp_err_set(err, EBADMSG, "%s: damaged: schema %d", store->path, version);
	return mp_err_set(
		err, EPROTO,
		"%s: has schema %d, of a Morph before the first release: move it away, and "
		"a new one is begun",
		store->path, version);
}

int mp_store_check_schema(struct mp_store *store, struct mp_err *err)
{
	bool unused;
	int r = check_owner(store, &unused, err);

	if (r)
		return r;
	if (unused)
		return mp_err_set(err, ENOENT, "%s: empty, nothing was ever stored", store->path);
	return check_definitions(store, err);
}

int mp_store_create(struct mp_store *store, struct mp_err *err)
{
	char sql[96];
	bool unused;
	int r;

	/* Another process that creates the tables right now goes first, and we see its result. */
	r = exec(store, "BEGIN IMMEDIATE", "begin", err);
	if (r)
		return r;
	r = check_owner(store, &unused, err);
	if (!r && !unused) {
		r = check_definitions(store, err);
	} else if (!r) {
		snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d",
			 MP_STORE_APPLICATION_ID, MP_STORE_SCHEMA);
		r = exec(store, schema, "create the tables", err);
		if (!r)
			r = exec(store, sql, "create the tables", err);
		if (!r)
			r = mp_store_begin_epoch(store, err);
	}
	if (!r)
		r = exec(store, "COMMIT", "commit", err);
	if (r)
		mp_store_rollback(store);
	return r;
}
