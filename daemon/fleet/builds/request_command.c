// SPDX-License-Identifier: Apache-2.0
/* request_command - the command "request": an operator asks builders for a build of a module. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fleet/builds/build_options.h"
#include "daemon/fleet/command.h"
#include "daemon/fleet/module_key.h"
#include "daemon/fleet/pg.h"
#include "daemon/cli/cli.h"
#include "libprof/cli/program.h"

#define MP_OPTIONS struct options

struct options {
	struct md_fleet_access access;
	const char *version;
	bool again;
};

static const struct mp_option option_table[] = {
	MP_FLAG("again", again,
		"Make a build that there is once more, by the profile of today. Hosts then get the new one"),
	MP_VALUE(TEXT, "for", 0, version, "VERSION",
		 "Which version of Morph is to make it (default: this program's)"),
	MP_OPTIONS_END};

static const struct mp_usage usage = {
	.options = option_table,
	.arguments = "BUILD-ID|FILE [OPTION-OF-MORPH-OPTIMIZE...]",
	.least = 1,
	.words = MP_AT(access.words),
	.most = INT_MAX,
	.lacking = "no module given: a build-id or a file",
	.in_order = true,
	.doc = "Ask builders for a build of a module. A build is known by its module, the options and the version "
	       "of Morph.\v"
	       "Options of morph-optimize that name files are not allowed. Exit status: 0 done, 1 failed, 2 "
	       "usage, 3 the fleet has no such module, 75 the server is gone."};

static void report(const json_t *row, bool again)
{
	const char *was = md_row_text(row, "was");

	md_cli_put_text(md_row_text(row, "build_id"));
	if (!was[0])
		puts(": queued");
	else if (!strcmp(was, "failed") ||
		 (again && (!strcmp(was, "done") || !strcmp(was, "withdrawn"))))
		printf(": queued again, it was %s\n", was);
	else
		printf(": is %s already\n", was);
}

/* All modules whose build-id begins so. */
static int request(PGconn *conn, const struct options *o, const char *options)
{
	struct mp_err err = {""};
	json_t *rows, *row;
	char *modules;
	size_t i;
	int r = md_modules_named(conn, o->access.words.list[0], &modules);

	if (r)
		return r;
	r = md_pg_rows(
		conn, "ask for a build", &rows, &err,
		"SELECT encode(substr(m, 9), 'hex') AS build_id, fleet.request_build(m, $2, $3, $4) AS was"
		" FROM unnest($1::bytea[]) m",
		"ttty", modules, options, o->version, o->again);
	free(modules);
	if (r)
		return md_fleet_failed(r, &err);
	json_array_foreach(rows, i, row) report(row, o->again);
	json_decref(rows);
	return md_cli_finish(MP_EXIT_DONE);
}

int md_fleet_command_request(int argc, char **argv)
{
	struct options o = {.version = mp_program_version()};
	struct md_build_options checked;
	char options[sizeof(checked.text)];
	struct mp_err err = {""};
	PGconn *conn;
	int r;

	md_fleet_options(&usage, argc, argv, &o);
	if (md_build_options_join(o.access.words.list + 1, (size_t)o.access.words.nr - 1, &checked,
				  options, &err)) {
		md_cli_fail("%s", err.msg);
		return MP_EXIT_USAGE;
	}
	r = md_fleet_access_connect(&o.access, &conn);
	if (r)
		return r;
	r = request(conn, &o, options);
	PQfinish(conn);
	return r;
}
