// SPDX-License-Identifier: Apache-2.0
/*
 * list_command - the commands that show what the fleet has: "modules", all "hosts", or those of a module with
 * their shares, the "versions" of a file that hosts use, and "builds".
 */
#include <stdlib.h>

#include "daemon/fleet/module_key.h"
#include "daemon/fleet/table.h"
#include "daemon/cli/cli.h"

#define MP_OPTIONS struct options

struct options {
	struct md_fleet_access access;
	const char *salt_file;
	int64_t since_s;
	long limit;
	bool json;
};

#define SINCE                                                                                      \
	MP_VALUE(TIME, "since", 's', since_s, "WHEN", "Leave out older days: 3d, 2026-11-20, ...")
#define LIMIT MP_VALUE(LIMIT, "limit", 'n', limit, "N", "At most N rows")
#define EXIT_DOC                                                                                   \
	"Exit status: 0 done, 1 failed, 2 usage, 3 the fleet has nothing, 75 the server is gone."

/* A list that a command shows. @sql gives its rows; its parameters are an argument, a day, and the number of rows. */
struct list {
	const char *command, *none, *sql;
	const struct md_column *columns;
};

#define DAY(column)	 "to_char(date '1970-01-01' + " column ", 'YYYY-MM-DD') AS " column
#define TIME(column, as) "floor(extract(epoch FROM " column "))::bigint AS " as
#define LIMITED		 " LIMIT $3::bigint"

/* Shows the list, and ends the connection. Return: exit status. */
static int show(const struct options *o, PGconn *conn, const struct list *list,
		const char *argument)
{
	struct mp_err err = {""};
	json_t *rows;
	int r = md_pg_rows(conn, "read the fleet", &rows, &err, list->sql, "tii", argument,
			   o->since_s / MP_SECONDS_PER_DAY,
			   (int64_t)(o->limit ? o->limit : 1000000));

	PQfinish(conn);
	if (r)
		return md_fleet_failed(r, &err);
	if (json_array_size(rows)) {
		r = md_table_print(rows, o->json, list->command, list->columns);
	} else {
		md_cli_fail("the fleet has no %s", list->none);
		r = MP_EXIT_NO_PROFILE;
	}
	json_decref(rows);
	return r;
}

static const struct mp_option module_options[] = {SINCE, LIMIT, MD_JSON, MP_OPTIONS_END};

int md_fleet_command_modules(int argc, char **argv)
{
	static const struct mp_usage usage = {
		.options = module_options,
		.doc = "Say which modules the fleet has counts of, those with the most samples first.\v" EXIT_DOC};
	static const struct md_column columns[] = {
		{"samples", "samples", 14, 0},	 {"transfers", "transfers", 14, 0},
		{"hosts", "nr_hosts", 7, 0},	 {"last day", "last_day", 10, 0},
		{"build-id", "build_id", 40, 0}, {"name", "name", 0, 0}};
	static const struct list list = {
		"modules", "counts of it",
		"SELECT total AS samples, transfers, nr_hosts, " DAY(
			"last_day") ", "
				    "encode(build_id, 'hex') AS build_id, name FROM fleet.list_modules($2, 2147483647) "
				    "WHERE $1::text IS NULL" LIMITED,
		columns};
	struct options o = {0};
	PGconn *conn;
	int r = md_fleet_start(&usage, argc, argv, &o, &conn);

	return r ? r : show(&o, conn, &list, NULL);
}

int md_fleet_command_hosts(int argc, char **argv)
{
	static const struct mp_usage usage = {
		.options = module_options,
		.arguments = "[BUILD-ID|FILE]",
		.words = MP_AT(access.words),
		.most = 1,
		.doc = "Say which hosts have samples of a module, and how much each counts in the fleet's profile. "
		       "Without a module: all hosts, when each was last heard of, and whether it is banned.\v" EXIT_DOC};
	static const struct md_column all[] = {{"host", "name", 24, 0},
					       {"last sent", "sent_at", 19, MD_FORM_TIME},
					       {"asked for builds", "asked_at", 19, MD_FORM_TIME},
					       {"files", "nr_files", 6, 0},
					       {"old ones", "nr_old", 8, 0},
					       {"banned", "banned", 0, 0}};
	static const struct md_column columns[] = {{"host", "name", 24, 0},
						   {"samples", "samples", 14, 0},
						   {"counted", "counted", 14, 0},
						   {"weight", "weight", 0, MD_FORM_SHARE}};
	static const struct list lists[] = {
		{"fleet-hosts", "hosts",
		 "SELECT name, " TIME("last_at", "sent_at") ", " TIME(
			 "asked_at",
			 "asked_at") ", nr_files, nr_old, banned FROM fleet.list_hosts($2) WHERE $1::text IS NULL" LIMITED,
		 all},
		{"hosts", "counts of it",
		 "SELECT s.name, s.total AS samples, s.weighted AS counted, s.weight / 65536.0 AS weight "
		 "FROM unnest($1::bytea[]) m, "
		 "LATERAL fleet.host_shares(m, 0::smallint, $2, 2147483647, 0.9) s" LIMITED,
		 columns}};
	struct options o = {0};
	char *modules = NULL;
	PGconn *conn;
	int r = md_fleet_start(&usage, argc, argv, &o, &conn);

	if (r)
		return r;
	if (o.access.words.nr)
		r = md_modules_named(conn, o.access.words.list[0], &modules);
	if (r)
		PQfinish(conn);
	else
		r = show(&o, conn, &lists[o.access.words.nr], modules);
	free(modules);
	return r;
}

/* The name that the fleet has for the file; with a salt that is its hash. Return: exit status. */
static int name_of(struct options *o, char name[MD_NAME_SIZE])
{
	struct md_file_names names = {.how = o->access.config.names};
	const char *file = o->salt_file ? o->salt_file : o->access.config.salt_file;
	char *real = realpath(o->access.words.list[0], NULL);
	struct mp_err err = {""};
	const char *found;

	if (file[0] && md_file_names_read_salt(&names, file, &err)) {
		free(real);
		return md_cli_fail("%s", err.msg);
	}
	if (!names.salt_size)
		names.how = MD_NAMES_PLAIN;
	found = md_file_name(&names, real ? real : o->access.words.list[0], name);
	free(real);
	return found ? 0 : md_cli_fail("no names are sent (names = no)");
}

int md_fleet_command_versions(int argc, char **argv)
{
	static const struct mp_option options[] = {
		MP_VALUE(TEXT, "salt-file", 0, salt_file, "FILE",
			 "The salt of hashed names, the same on all hosts"),
		LIMIT, MD_JSON, MP_OPTIONS_END};
	static const struct mp_usage usage = {
		.options = options,
		.arguments = "PATH",
		.least = 1,
		.words = MP_AT(access.words),
		.most = 1,
		.lacking = "no module given",
		.doc = "Say which versions of the file at PATH the hosts of the fleet use.\v" EXIT_DOC};
	static const struct md_column columns[] = {{"build-id", "build_id", 40, 0},
						   {"hosts", "nr_hosts", 7, 0},
						   {"samples", "samples", 14, 0},
						   {"first day", "first_day", 10, 0},
						   {"last day", "last_day", 0, 0}};
	static const struct list list = {
		"versions", "counts of it",
		"SELECT encode(build_id, 'hex') AS build_id, nr_hosts, total AS samples, " DAY(
			"first_day") ", " DAY("last_day") " FROM fleet.versions($1) WHERE $2::int IS NOT NULL" LIMITED,
		columns};
	struct options o = {0};
	char name[MD_NAME_SIZE];
	PGconn *conn;
	int r = md_fleet_start(&usage, argc, argv, &o, &conn);

	if (r)
		return r;
	r = name_of(&o, name);
	if (!r)
		return show(&o, conn, &list, name);
	PQfinish(conn);
	return r;
}

int md_fleet_command_builds(int argc, char **argv)
{
	static const struct mp_option options[] = {LIMIT, MD_JSON, MP_OPTIONS_END};
	static const struct mp_usage usage = {
		.options = options,
		.doc = "Say which builds were asked for, what became of them, and on how many hosts they are.\v" EXIT_DOC};
	static const struct md_column columns[] = {
		{"state", "state", 9, 0},	 {"since", "since", 19, MD_FORM_TIME},
		{"build-id", "build_id", 40, 0}, {"plan", "plan_bytes", 9, 0},
		{"release", "release", 7, 0},	 {"in place", "nr_installed", 8, 0},
		{"other", "nr_other", 6, 0},	 {"waiting", "nr_waiting", 7, 0},
		{"refused", "nr_refused", 7, 0}, {"version", "version", 16, 0},
		{"options", "options", 16, 0},	 {"detail", "detail", 0, 0}};
	static const struct list list = {
		"builds", "builds",
		"SELECT state, " TIME(
			"changed_at",
			"since") ", encode(substr(module, 9), 'hex') AS build_id, "
				 "plan_size AS plan_bytes, release, nr_installed, nr_other, nr_waiting, nr_refused, version, "
				 "options, detail FROM fleet.list_builds() WHERE $1::text IS NULL AND $2::int IS NOT NULL" LIMITED,
		columns};
	struct options o = {0};
	PGconn *conn;
	int r = md_fleet_start(&usage, argc, argv, &o, &conn);

	return r ? r : show(&o, conn, &list, NULL);
}
