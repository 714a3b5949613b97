// SPDX-License-Identifier: Apache-2.0
/*
 * server_upgrade - applies the migrations of sql/, each in one transaction with the row that says so. A
 * lock keeps two upgrades apart.
 */
#include "daemon/fleet/server_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet_sql.h"

#define NR_SQL_FILES ((int)(sizeof(sql_files) / sizeof(sql_files[0])))

const struct md_fleet_sql *md_fleet_migration(int i)
{
	/* The files are sorted, so that those with numbers come first. */
	return i < NR_SQL_FILES && sql_files[i].name[0] <= '9' ? &sql_files[i] : NULL;
}

int md_fleet_migration_number(const struct md_fleet_sql *sql)
{
	return (int)strtol(sql->name, NULL, 10);
}

const struct md_fleet_sql *md_fleet_sql_find(const char *name)
{
	for (int i = 0; i < NR_SQL_FILES; i++)
		if (!strcmp(sql_files[i].name, name))
			return &sql_files[i];
	return NULL;
}

int md_fleet_run(PGconn *conn, const char *sql, int nr_params, const char *const *params,
		 const char *what, PGresult **out, struct mp_err *err)
{
	PGresult *result = nr_params
				   ? PQexecParams(conn, sql, nr_params, NULL, params, NULL, NULL, 0)
				   : PQexec(conn, sql);
	ExecStatusType status = PQresultStatus(result);

	if (out)
		*out = NULL;
	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
		int r = md_fleet_fail(conn, result, what, err);

		PQclear(result);
		return r;
	}
	if (out)
		*out = result;
	else
		PQclear(result);
	return 0;
}

int md_fleet_ask(PGconn *conn, const char *sql, int nr_params, const char *const *params,
		 const char *what, bool *yes, struct mp_err *err)
{
	PGresult *result;
	int r = md_fleet_run(conn, sql, nr_params, params, what, &result, err);

	if (r)
		return r;
	*yes = PQntuples(result) && !strcmp(PQgetvalue(result, 0, 0), "t");
	PQclear(result);
	return 0;
}

int md_fleet_newest_migration(PGconn *conn, int *newest, struct mp_err *err)
{
	PGresult *result;
	bool there;
	int r = md_fleet_ask(conn, "SELECT to_regclass('fleet.migration') IS NOT NULL", 0, NULL,
			     "look for the schema", &there, err);

	*newest = 0;
	if (r || !there)
		return r;
	r = md_fleet_run(conn, "SELECT coalesce(max(number), 0) FROM fleet.migration", 0, NULL,
			 "read the migrations", &result, err);
	if (r)
		return r;
	*newest = atoi(PQgetvalue(result, 0, 0));
	PQclear(result);
	return 0;
}

int md_fleet_migration_state(PGconn *conn, const struct md_fleet_sql *sql, bool *there, bool *same,
			     struct mp_err *err)
{
	char number[16];
	const char *const params[] = {number, sql->text};
	PGresult *result;
	int r;

	snprintf(number, sizeof(number), "%d", md_fleet_migration_number(sql));
	r = md_fleet_run(
		conn,
		"SELECT hash = sha256(convert_to($2, 'UTF8')) FROM fleet.migration WHERE number = $1::int",
		2, params, "read the migrations", &result, err);
	if (r)
		return r;
	*there = PQntuples(result) > 0;
	*same = *there && !strcmp(PQgetvalue(result, 0, 0), "t");
	PQclear(result);
	return 0;
}

/* In a transaction, with the lock. */
static int apply_locked(PGconn *conn, const struct md_fleet_sql *sql, bool *applied,
			struct mp_err *err)
{
	char number[16], what[96];
	const char *const params[] = {number, sql->name, sql->text};
	int newest, r = md_fleet_newest_migration(conn, &newest, err);
	bool there = false, same;

	if (!r && newest)
		r = md_fleet_migration_state(conn, sql, &there, &same, err);
	if (r || there)
		return r;
	snprintf(number, sizeof(number), "%d", md_fleet_migration_number(sql));
	snprintf(what, sizeof(what), "apply %s.sql", sql->name);
	r = md_fleet_run(conn, sql->text, 0, NULL, what, NULL, err);
	if (!r)
		r = md_fleet_run(conn,
				 "INSERT INTO fleet.migration(number, name, hash) "
				 "VALUES ($1::int, $2, sha256(convert_to($3, 'UTF8')))",
				 3, params, what, NULL, err);
	*applied = !r;
	return r;
}

/*
 * Keeps two upgrades apart, until the end of the transaction. Anybody who is logged in could hold an advisory
 * lock, but before there is a schema, there are no hosts. Its number only has to be the same in all programs.
 */
static int lock_schema(PGconn *conn, struct mp_err *err)
{
	int newest, r = md_fleet_newest_migration(conn, &newest, err);

	if (r)
		return r;
	return md_fleet_run(conn,
			    newest ? "LOCK TABLE fleet.migration IN SHARE ROW EXCLUSIVE MODE"
				   : "SELECT pg_advisory_xact_lock(1297240136, 1)",
			    0, NULL, "lock the schema", NULL, err);
}

static int apply(PGconn *conn, const struct md_fleet_sql *sql, bool *applied, struct mp_err *err)
{
	int r = md_fleet_run(conn, "BEGIN", 0, NULL, "begin a transaction", NULL, err);

	*applied = false;
	if (r)
		return r;
	r = lock_schema(conn, err);
	if (!r)
		r = apply_locked(conn, sql, applied, err);
	if (!r)
		return md_fleet_run(conn, "COMMIT", 0, NULL, "commit a migration", NULL, err);
	PQclear(PQexec(conn, "ROLLBACK"));
	return r;
}

/* Distributes the tables where Citus is there and they are not distributed yet. */
static int distribute(PGconn *conn, struct mp_err *err)
{
	const struct md_fleet_sql *citus = md_fleet_sql_find("citus");
	bool wanted;
	int r = md_fleet_ask(conn,
			     "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')", 0,
			     NULL, "look for Citus", &wanted, err);

	if (r || !wanted)
		return r;
	r = md_fleet_ask(conn,
			 "SELECT NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = "
			 "'fleet.evidence'::regclass)",
			 0, NULL, "look for distributed tables", &wanted, err);
	if (r || !wanted)
		return r;
	r = md_fleet_run(conn, "BEGIN", 0, NULL, "begin a transaction", NULL, err);
	if (!r)
		r = md_fleet_run(conn, citus->text, 0, NULL, "distribute the tables", NULL, err);
	if (!r)
		return md_fleet_run(conn, "COMMIT", 0, NULL, "distribute the tables", NULL, err);
	PQclear(PQexec(conn, "ROLLBACK"));
	return r;
}

int md_fleet_upgrade(PGconn *conn, bool init, int *nr_applied, struct mp_err *err)
{
	const struct md_fleet_sql *sql;
	int newest, last = 0, r = md_fleet_newest_migration(conn, &newest, err);

	for (int i = 0; (sql = md_fleet_migration(i)); i++)
		last = md_fleet_migration_number(sql);
	*nr_applied = 0;
	if (r)
		return r;
	if (newest > last)
		return mp_err_set(
			err, EPROTO,
			"the fleet's schema has version %d, and this program knows %d only", newest,
			last);
	if (!newest && !init)
		return mp_err_set(err, ENOENT, "%s", "no schema is there: say morph-fleet init");
	for (int i = 0; (sql = md_fleet_migration(i)); i++) {
		bool applied;

		r = apply(conn, sql, &applied, err);
		if (r)
			return r;
		*nr_applied += applied;
	}
	r = distribute(conn, err);
	if (!r && init && !*nr_applied)
		return mp_err_set(err, EEXIST, "%s", "the schema is there already");
	return r;
}
