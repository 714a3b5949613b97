// SPDX-License-Identifier: Apache-2.0
/* schema - see schema.h. */
#include "daemon/fleet/schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One file of sql/. */
struct md_fleet_sql {
	const char *name; /* without ".sql" */
	const char *text; /* ends with a zero byte */
};

#include "fleet_sql.h"

#define NR_FILES (sizeof(sql_files) / sizeof(sql_files[0]))

/* The version to which a file leads; 0: it is none of these files. They are sorted. */
static int version_of(const struct md_fleet_sql *file)
{
	return file->name[0] == 'v' ? atoi(file->name + 1) : 0;
}

static int newest_version(void)
{
	int newest = 0;

	for (size_t i = 0; i < NR_FILES; i++)
		newest = version_of(&sql_files[i]) > newest ? version_of(&sql_files[i]) : newest;
	return newest;
}

static const char *text_of(const char *name)
{
	size_t i = 0;

	while (strcmp(sql_files[i].name, name) != 0)
		i++;
	return sql_files[i].text;
}

/* *@version: of the database; 0: there is no schema. */
static int read_version(PGconn *conn, int *version, struct mp_err *err)
{
	static const char what[] = "read the schema's version";
	PGresult *result;
	bool there;
	int r = md_pg_ask(conn, what, &there, err,
			  "SELECT to_regclass('fleet.migration') IS NOT NULL", "");

	*version = 0;
	if (r || !there)
		return r;
	r = md_pg_run(conn, what, &result, err,
		      "SELECT coalesce(max(number), 0) FROM fleet.migration", "");
	if (!r)
		*version = atoi(md_pg_text(result, 0));
	PQclear(result);
	return r;
}

/* ---- upgrade ------------------------------------------------------------------------------- */

struct upgrade {
	bool init, changed;
};

static int apply(PGconn *conn, int version, struct mp_err *err)
{
	int r = 0;

	for (size_t i = 0; i < NR_FILES && !r; i++)
		if (version_of(&sql_files[i]) > version)
			r = md_pg_run(conn, sql_files[i].name, NULL, err, sql_files[i].text, NULL);
	if (!r)
		r = md_pg_run(conn, "note the schema's version", NULL, err,
			      "INSERT INTO fleet.migration(number) VALUES ($1)", "i",
			      (int64_t)newest_version());
	return r;
}

/*
 * In a transaction. The lock keeps two upgrades apart. Anybody who is logged in could hold an advisory lock, but before
 * there is a schema, there are no hosts. Its number only has to be the same in all programs.
 */
static int upgrade(PGconn *conn, void *arg, struct mp_err *err)
{
	struct upgrade *u = arg;
	const int known = newest_version();
	int version, r = read_version(conn, &version, err);

	if (!r)
		r = md_pg_run(conn, "lock the schema", NULL, err,
			      version ? "LOCK TABLE fleet.migration IN SHARE ROW EXCLUSIVE MODE"
				      : "SELECT pg_advisory_xact_lock(1297240136, 1)",
			      NULL);
	if (!r)
		r = read_version(conn, &version, err);
	if (r)
		return r;
	if (version > known)
		return mp_err_set(
			err, EPROTO,
			"the fleet's schema has version %d, and this program knows %d only",
			version, known);
	if (!version && !u->init)
		return mp_err_set(err, ENOENT, "%s", "no schema is there: say morph-fleet init");
	u->changed = version < known;
	r = u->changed ? apply(conn, version, err) : 0;
	if (!r && u->init && !u->changed)
		r = mp_err_set(err, EEXIST, "%s", "the schema is there already");
	return r;
}

int md_fleet_upgrade(PGconn *conn, bool init, bool *changed, struct mp_err *err)
{
	struct upgrade u = {.init = init};
	int r = md_pg_transaction(conn, upgrade, &u, "upgrade the schema", err);

	*changed = u.changed;
	return r;
}

/* ---- check --------------------------------------------------------------------------------- */

/* Each row of the file's query is a finding. */
static int check_by(PGconn *conn, const char *file, void (*finding)(void *arg, const char *text),
		    void *arg, struct mp_err *err)
{
	PGresult *result;
	int r = md_pg_run(conn, "check the database", &result, err, text_of(file), "");

	for (int i = 0; !r && PQnfields(result) && i < PQntuples(result); i++)
		finding(arg, PQgetvalue(result, i, 0));
	PQclear(result);
	return r;
}

int md_fleet_check(PGconn *conn, void (*finding)(void *arg, const char *text), void *arg,
		   struct mp_err *err)
{
	const int known = newest_version();
	bool reads_hba;
	char text[128];
	int version, r = read_version(conn, &version, err);

	if (!r && version != known) {
		snprintf(text, sizeof(text),
			 "the schema has version %d, and this program knows %d%s", version, known,
			 version > known ? " only" : ": say morph-fleet upgrade");
		finding(arg, version ? text : "the schema is missing: say morph-fleet init");
	} else if (!r) {
		r = check_by(conn, "check", finding, arg, err);
	}
	if (!r)
		r = md_pg_ask(conn, "check the database", &reads_hba, err,
			      "SELECT rolsuper FROM pg_roles WHERE rolname = current_user", "");
	return r || !reads_hba ? r : check_by(conn, "check_hba", finding, arg, err);
}
