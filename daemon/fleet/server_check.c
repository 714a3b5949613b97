// SPDX-License-Identifier: Apache-2.0
/* server_check - says what is wrong with a database: migrations, owners, rights, policies; see server.h. */
#include "daemon/fleet/server_private.h"

#include <stdio.h>

struct findings {
	void (*finding)(void *arg, const char *text);
	void *arg;
	int nr;
};

static void find(struct findings *findings, const char *text)
{
	findings->finding(findings->arg, text);
	findings->nr++;
}

static int check_migrations(PGconn *conn, struct findings *findings, struct mp_err *err)
{
	const struct md_fleet_sql *sql;
	int newest, last = 0, r = md_fleet_newest_migration(conn, &newest, err);
	char text[128];

	if (r)
		return r;
	if (!newest) {
		find(findings, "the schema is missing: say morph-fleet init");
		return 0;
	}
	for (int i = 0; (sql = md_fleet_migration(i)); i++) {
		bool there, same;

		r = md_fleet_migration_state(conn, sql, &there, &same, err);
		if (r)
			return r;
		last = md_fleet_migration_number(sql);
		snprintf(text, sizeof(text),
			 there ? "migration %s was applied in another form"
			       : "migration %s is missing: say morph-fleet upgrade",
			 sql->name);
		if (!same)
			find(findings, text);
	}
	if (newest > last) {
		snprintf(text, sizeof(text), "migration %d is newer than this program", newest);
		find(findings, text);
	}
	return 0;
}

/* Each row of the file's query is a finding. */
static int check_by(PGconn *conn, const char *file, struct findings *findings, struct mp_err *err)
{
	PGresult *result;
	int r = md_fleet_run(conn, md_fleet_sql_find(file)->text, 0, NULL, "check the database",
			     &result, err);

	for (int i = 0; !r && i < PQntuples(result); i++)
		find(findings, PQgetvalue(result, i, 0));
	PQclear(result);
	return r;
}

int md_fleet_check(PGconn *conn, void (*finding)(void *arg, const char *text), void *arg, int *nr,
		   struct mp_err *err)
{
	struct findings findings = {finding, arg, 0};
	bool reads_hba;
	int r = check_migrations(conn, &findings, err);

	if (!r && !findings.nr)
		r = check_by(conn, "check", &findings, err);
	if (!r)
		r = md_fleet_ask(conn, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user",
				 0, NULL, "check the database", &reads_hba, err);
	if (!r && reads_hba)
		r = check_by(conn, "check_hba", &findings, err);
	*nr = findings.nr;
	return r;
}
