// SPDX-License-Identifier: Apache-2.0
/*
 * server_command - the commands for operators of the server: "init", "upgrade" and "check" of the schema, "enrol", "ban"
 * and "unban" of hosts, and "forget".
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "daemon/fleet/command.h"
#include "daemon/fleet/schema.h"
#include "daemon/cli/cli.h"

#define MP_OPTIONS struct options

struct options {
	struct md_fleet_access access;
	bool reads, builds;
	int64_t before_s;
};

/* ---- the schema ---------------------------------------------------------------------------- */

static int upgrade(const char *doc, bool init, int argc, char **argv)
{
	const struct mp_usage usage = {.doc = doc};
	struct options o = {0};
	struct mp_err err = {""};
	PGconn *conn;
	bool changed;
	int r = md_fleet_start(&usage, argc, argv, &o, &conn);

	if (r)
		return r;
	r = md_fleet_upgrade(conn, init, &changed, &err);
	PQfinish(conn);
	if (r)
		return md_fleet_failed(r, &err);
	puts(changed ? "the schema was brought up to date" : "the schema is up to date");
	return md_cli_finish(MP_EXIT_DONE);
}

int md_fleet_command_init(int argc, char **argv)
{
	return upgrade(
		"Create the fleet's tables, functions and roles in a database. The caller must be a "
		"superuser, or own the database and be allowed to create roles.",
		true, argc, argv);
}

int md_fleet_command_upgrade(int argc, char **argv)
{
	return upgrade("Bring a database to this program's version of the schema.", false, argc,
		       argv);
}

static void print_finding(void *nr, const char *text)
{
	++*(int *)nr;
	puts(text);
}

int md_fleet_command_check(int argc, char **argv)
{
	static const struct mp_usage usage = {
		.doc = "Say what is wrong with a fleet's database: version of the schema, owners, rights, "
		       "row-level security. Exit status 1 if something is."};
	struct options o = {0};
	struct mp_err err = {""};
	PGconn *conn;
	int nr = 0, r = md_fleet_start(&usage, argc, argv, &o, &conn);

	if (r)
		return r;
	r = md_fleet_check(conn, print_finding, &nr, &err);
	PQfinish(conn);
	return r ? md_fleet_failed(r, &err) : md_cli_finish(nr ? MP_EXIT_FAILED : MP_EXIT_DONE);
}

/* ---- hosts --------------------------------------------------------------------------------- */

#define HOSTS                                                                                      \
	.arguments = "HOST...", .least = 1, .words = MP_AT(access.words), .most = INT_MAX,         \
	.lacking = "no host given"

int md_fleet_command_enrol(int argc, char **argv)
{
	static const struct mp_option list[] = {
		MP_FLAG("reader", reads, "the hosts may read the fleet's profiles, too"),
		MP_FLAG("builder", builds, "the hosts may read profiles and make builds, too"),
		MP_OPTIONS_END};
	static const struct mp_usage usage = {
		.options = list,
		HOSTS,
		.doc = "Give each host a role of its own, which can send counts. A host logs in with a "
		       "TLS certificate for its name."};
	struct options o = {0};
	struct mp_err err = {""};
	PGconn *conn;
	int r = md_fleet_start(&usage, argc, argv, &o, &conn);

	if (r)
		return r;
	for (int i = 0; i < o.access.words.nr && !r; i++)
		r = md_pg_run(conn, "enrol the host", NULL, &err, "SELECT fleet.enrol($1, $2, $3)",
			      "tyy", o.access.words.list[i], o.reads, o.builds);
	PQfinish(conn);
	return r ? md_fleet_failed(r, &err) : MP_EXIT_DONE;
}

static int ban(const char *doc, bool banned, int argc, char **argv)
{
	const struct mp_usage usage = {HOSTS, .doc = doc};
	struct options o = {0};
	PGconn *conn;
	int status = md_fleet_start(&usage, argc, argv, &o, &conn);

	if (status)
		return status;
	for (int i = 0; i < o.access.words.nr; i++) {
		const char *host = o.access.words.list[i];
		struct mp_err err = {""};
		bool found;
		int r = md_pg_ask(conn, "ban the host", &found, &err, "SELECT fleet.ban($1, $2)",
				  "ty", host, banned);

		if (!r && !found)
			r = mp_err_set(&err, ENOENT, "%s: no such host", host);
		if (r)
			status = md_fleet_failed(r, &err);
	}
	PQfinish(conn);
	return status;
}

int md_fleet_command_ban(int argc, char **argv)
{
	return ban("Leave hosts out of all sums, and refuse what they send.", true, argc, argv);
}

int md_fleet_command_unban(int argc, char **argv)
{
	return ban("Take a ban back: the hosts' counts count again.", false, argc, argv);
}

/* ---- old days ------------------------------------------------------------------------------ */

static void check_before(void *options, struct argp_state *state)
{
	if (!((struct options *)options)->before_s)
		argp_error(state, "say which days: --before=WHEN");
}

int md_fleet_command_forget(int argc, char **argv)
{
	static const struct mp_option list[] = {
		MP_VALUE(TIME, "before", 0, before_s, "WHEN",
			 "delete days before this one, for example 90d or 2026-11-20"),
		MP_OPTIONS_END};
	static const struct mp_usage usage = {
		.options = list, .doc = "Delete the counts of old days.", .check = check_before};
	struct options o = {0};
	struct mp_err err = {""};
	PGresult *result;
	PGconn *conn;
	int r = md_fleet_start(&usage, argc, argv, &o, &conn);

	if (r)
		return r;
	r = md_pg_run(conn, "forget old days", &result, &err, "SELECT fleet.forget($1)", "i",
		      o.before_s / MP_SECONDS_PER_DAY);
	if (!r)
		printf("%s rows deleted\n", md_pg_text(result, 0));
	PQclear(result);
	PQfinish(conn);
	return r ? md_fleet_failed(r, &err) : md_cli_finish(MP_EXIT_DONE);
}
