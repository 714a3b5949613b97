// SPDX-License-Identifier: Apache-2.0
/* request_command - the command "request": an operator asks builders for a build of a module. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/code/originals.h"
#include "daemon/fleet/client_command.h"
#include "daemon/fleet/builds/build_options.h"
#include "daemon/fleet/module_key.h"
#include "daemon/fleet/pg_params.h"
#include "daemon/stats/stats.h"
#include "libprof/cli/args.h"
#include "libprof/cli/stdio.h"

struct options {
	struct md_fleet_access access;
	const char *module, *version;
	char **words; /* of morph-optimize */
	size_t nr_words;
	bool again;
};

enum {
	KEY_AGAIN = 256,
	KEY_FOR
};

static const struct argp_option option_table[] = {
	{"again", KEY_AGAIN, NULL, 0,
	 "Make a build that there is once more, by the profile of today. Hosts then get the new one",
	 0},
	{"for", KEY_FOR, "VERSION", 0,
	 "Which version of Morph is to make it (default: this program's)", 0},
	{0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &o->access; return 0;
	case KEY_AGAIN: o->again = true; return 0;
	case KEY_FOR: o->version = arg; return 0;
	case ARGP_KEY_ARG:
		/* All that follows is for morph-optimize. */
		o->module = arg;
		o->words = state->argv + state->next;
		o->nr_words = (size_t)(state->argc - state->next);
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (!o->module)
			argp_error(state, "no module given: a build-id or a file");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&md_fleet_access_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
	option_table,
	parse,
	"BUILD-ID|FILE [OPTION-OF-MORPH-OPTIMIZE...]",
	"Ask builders for a build of a module. A build is known by its module, the options and the version "
	"of Morph.\v"
	"Options of morph-optimize that name files are not allowed. Exit status: 0 done, 1 failed, 2 "
	"usage, 3 the fleet has no such module, 75 the server is gone.",
	children,
	NULL,
	NULL};

static int fail(int r, const struct mp_err *err)
{
	md_stats_fail("%s", err->msg);
	return r == -ENOTCONN || r == -EAGAIN ? MD_FLEET_LATER : MD_FLEET_FAILED;
}

static void report(const char *hex, const char *was, bool again)
{
	md_stats_put_text(hex);
	if (!was)
		puts(": queued");
	else if (!strcmp(was, "failed") ||
		 (again && (!strcmp(was, "done") || !strcmp(was, "withdrawn"))))
		printf(": queued again, it was %s\n", was);
	else
		printf(": is %s already\n", was);
}

static int request(PGconn *conn, const struct options *o, const char *options, const uint8_t *key,
		   size_t size)
{
	struct md_pg_params p = {0};
	char hex[2 * MP_BUILD_ID_MAX + 1], was[32], again = o->again;
	struct mp_err err = {""};
	struct mp_id id;
	PGresult *result;
	int r;

	if (md_module_of_key(key, size, &id))
		return md_stats_fail("the server gives a damaged module");
	md_pg_add_bytes(&p, MD_PG_BYTEA, key, size);
	md_pg_add_bytes(&p, MD_PG_TEXT, options, strlen(options));
	md_pg_add_bytes(&p, MD_PG_TEXT, o->version, strlen(o->version));
	md_pg_add_bytes(&p, MD_PG_BOOL, &again, 1);
	r = md_pg_run(conn, "SELECT fleet.request_build($1, $2, $3, $4)", &p, "ask for a build",
		      &result, &err);
	if (r)
		return fail(r, &err);
	mp_id_format_build_id(&id, hex);
	snprintf(was, sizeof(was), "%.*s", PQgetlength(result, 0, 0), PQgetvalue(result, 0, 0));
	report(hex, PQgetisnull(result, 0, 0) ? NULL : was, o->again);
	PQclear(result);
	return MD_FLEET_DONE;
}

/* All modules whose build-id begins so. */
static int request_build_id(PGconn *conn, const struct options *o, const char *options,
			    const uint8_t *build_id, size_t size)
{
	struct md_pg_params p = {0};
	struct mp_err err = {""};
	PGresult *result;
	int r;

	md_pg_add_bytes(&p, MD_PG_BYTEA, build_id, size);
	r = md_pg_run(conn, "SELECT fleet.modules_of($1)", &p, "find the module", &result, &err);
	if (r)
		return fail(r, &err);
	if (!PQntuples(result)) {
		md_stats_fail("%s: the fleet has no such module", o->module);
		r = MD_FLEET_NO_PROFILE;
	}
	for (int i = 0; i < PQntuples(result) && !r; i++)
		r = request(conn, o, options, (const uint8_t *)PQgetvalue(result, i, 0),
			    (size_t)PQgetlength(result, i, 0));
	PQclear(result);
	return r;
}

static int request_file(PGconn *conn, const struct options *o, const char *options)
{
	uint8_t key[MD_MODULE_KEY_MAX];
	struct mp_err err = {""};
	struct mp_id id;

	if (md_original_id(o->module, &id, &err))
		return md_stats_fail("%s", err.msg);
	return request(conn, o, options, key, md_module_key(&id, key));
}

int md_fleet_command_request(int argc, char **argv)
{
	struct options o = {.version = md_fleet_version()};
	struct md_build_options checked;
	uint8_t build_id[MP_BUILD_ID_MAX];
	char options[sizeof(checked.text)];
	struct mp_err err = {""};
	PGconn *conn;
	size_t size;
	int r;

	md_stats_set_program(argv[0]);
	mp_args_parse(&argp, argc, argv, ARGP_IN_ORDER, &o);
	mp_stdio_parsed();
	if (md_build_options_join(o.words, o.nr_words, &checked, options, &err)) {
		md_stats_fail("%s", err.msg);
		return MD_FLEET_USAGE;
	}
	size = access(o.module, F_OK) ? md_build_id_parse(o.module, build_id) : 0;
	r = md_fleet_access_connect(&o.access, &conn);
	if (r)
		return r;
	r = size ? request_build_id(conn, &o, options, build_id, size)
		 : request_file(conn, &o, options);
	PQfinish(conn);
	return md_stats_finish(r);
}
