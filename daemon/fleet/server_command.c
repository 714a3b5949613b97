// SPDX-License-Identifier: Apache-2.0
/* server_command - options, messages and exit statuses of the operator's commands; see the header. */
#include "daemon/fleet/server_command.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/fleet/server.h"
#include "libprof/cli/args.h"
#include "libprof/cli/since.h"
#include "libprof/cli/stdio.h"

#define SECONDS_PER_DAY 86400

enum {
	EXIT_DONE,
	EXIT_FAILED,
	EXIT_USAGE
};

enum {
	OPT_READS = 256,
	OPT_BUILDS,
	OPT_BEFORE
};

struct options {
	const char *database; /* libpq's conninfo */
	bool reads, builds;
	bool takes_hosts, takes_before; /* what this command takes */
	int64_t before_s;
	int first_host; /* index in argv; 0: none */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'd': options->database = arg; return 0;
	case OPT_READS: options->reads = true; return 0;
	case OPT_BUILDS: options->builds = true; return 0;
	case OPT_BEFORE:
		if (mp_since_parse(arg, time(NULL), &options->before_s))
			argp_error(state, "--before=%s: %s", arg, MP_SINCE_FORMATS);
		return 0;
	case ARGP_KEY_ARG:
		if (!options->takes_hosts)
			argp_error(state, "%s: no argument is expected", arg);
		options->first_host = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (options->takes_hosts && !options->first_host)
			argp_error(state, "no host given");
		if (options->takes_before && !options->before_s)
			argp_error(state, "say which days: --before=WHEN");
		if (!options->database)
			options->database = getenv("MORPH_FLEET");
		if (!options->database)
			argp_error(state,
				   "no database given: --database=CONNECTION or $MORPH_FLEET");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option database_option[] = {
	{"database", 'd', "CONNECTION", 0,
	 "the fleet's database, as libpq takes it: 'host=NAME dbname=NAME ...' or postgresql://... "
	 "(default: $MORPH_FLEET)",
	 0},
	{0}};
static const struct argp database_argp = {.options = database_option, .parser = parse};
static const struct argp_child children[] = {{&database_argp, 0, NULL, 0}, {0}};

/* The parser is the child's, so that it runs once. */
static error_t pass_on(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key == ARGP_KEY_INIT) {
		state->child_inputs[0] = state->input;
		return 0;
	}
	return key == OPT_READS || key == OPT_BUILDS || key == OPT_BEFORE ? parse(key, arg, state)
									  : ARGP_ERR_UNKNOWN;
}

static int fail(const char *program, const struct mp_err *err)
{
	fprintf(stderr, "%s: %s\n", program, err->msg);
	return EXIT_FAILED;
}

/* Parses the options and connects. Return: 0; otherwise the exit status, after a message. */
static int open_database(const struct argp_option *own, const char *args_doc, const char *doc,
			 int argc, char **argv, struct options *options, PGconn **conn)
{
	const struct argp argp = {.options = own,
				  .parser = pass_on,
				  .args_doc = args_doc,
				  .doc = doc,
				  .children = children};
	struct mp_err err;

	mp_args_parse(&argp, argc, argv, 0, options);
	mp_stdio_parsed();
	return md_fleet_connect(options->database, conn, &err) ? fail(argv[0], &err) : 0;
}

static int upgrade(const char *doc, bool init, int argc, char **argv)
{
	struct options options = {0};
	struct mp_err err;
	PGconn *conn;
	int nr, r = open_database(NULL, NULL, doc, argc, argv, &options, &conn);

	if (r)
		return r;
	r = md_fleet_upgrade(conn, init, &nr, &err) ? fail(argv[0], &err) : EXIT_DONE;
	if (!r)
		printf(nr == 1 ? "%d migration applied\n" : "%d migrations applied\n", nr);
	PQfinish(conn);
	return r;
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
	return upgrade("Apply the migrations that a database lacks.", false, argc, argv);
}

static void print_finding(void *arg, const char *text)
{
	(void)arg;
	printf("%s\n", text);
}

int md_fleet_command_check(int argc, char **argv)
{
	struct options options = {0};
	struct mp_err err;
	PGconn *conn;
	int nr = 0,
	    r = open_database(
		    NULL, NULL,
		    "Say what is wrong with a fleet's database: missing migrations, owners, "
		    "rights, row-level security. Exit status 1 if something is.",
		    argc, argv, &options, &conn);

	if (r)
		return r;
	r = md_fleet_check(conn, print_finding, NULL, &nr, &err) ? fail(argv[0], &err) : EXIT_DONE;
	PQfinish(conn);
	return r ? r : nr ? EXIT_FAILED : EXIT_DONE;
}

int md_fleet_command_enrol(int argc, char **argv)
{
	static const struct argp_option own[] = {
		{"reader", OPT_READS, NULL, 0, "the hosts may read the fleet's profiles, too", 0},
		{"builder", OPT_BUILDS, NULL, 0, "the hosts may read profiles and make builds, too",
		 0},
		{0}};
	struct options options = {.takes_hosts = true};
	struct mp_err err;
	PGconn *conn;
	int r = open_database(
		own, "HOST...",
		"Give each host a role of its own, which can send counts. A host logs in with a "
		"TLS certificate for its name.",
		argc, argv, &options, &conn);

	if (r)
		return r;
	for (int i = options.first_host; i < argc && !r; i++)
		r = (options.builds ? md_fleet_enrol_builder(conn, argv[i], &err)
				    : md_fleet_enrol(conn, argv[i], options.reads, &err))
			    ? fail(argv[0], &err)
			    : EXIT_DONE;
	PQfinish(conn);
	return r;
}

static int ban(const char *doc, bool banned, int argc, char **argv)
{
	struct options options = {.takes_hosts = true};
	struct mp_err err;
	PGconn *conn;
	int r = open_database(NULL, "HOST...", doc, argc, argv, &options, &conn);

	if (r)
		return r;
	for (int i = options.first_host; i < argc; i++)
		if (md_fleet_ban(conn, argv[i], banned, &err))
			r = fail(argv[0], &err);
	PQfinish(conn);
	return r;
}

int md_fleet_command_ban(int argc, char **argv)
{
	return ban("Leave hosts out of all sums, and refuse what they send.", true, argc, argv);
}

int md_fleet_command_unban(int argc, char **argv)
{
	return ban("Take a ban back: the hosts' counts count again.", false, argc, argv);
}

int md_fleet_command_forget(int argc, char **argv)
{
	static const struct argp_option own[] = {
		{"before", OPT_BEFORE, "WHEN", 0,
		 "delete days before this one, for example 90d or 2026-11-20", 0},
		{0}};
	struct options options = {.takes_before = true};
	struct mp_err err;
	PGconn *conn;
	int64_t nr = 0;
	int r = open_database(own, NULL, "Delete the counts of old days.", argc, argv, &options,
			      &conn);

	if (r)
		return r;
	r = md_fleet_forget(conn, (int)(options.before_s / SECONDS_PER_DAY), &nr, &err)
		    ? fail(argv[0], &err)
		    : EXIT_DONE;
	if (!r)
		printf("%" PRId64 " rows deleted\n", nr);
	PQfinish(conn);
	return r;
}
