// SPDX-License-Identifier: Apache-2.0
/*
 * list_command - the commands that show what the fleet has: "modules", all "hosts", or those of a module with
 * their shares, the "versions" of a file that hosts use, and "builds".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/code/originals.h"
#include "daemon/fleet/client_command.h"
#include "daemon/fleet/module_key.h"
#include "daemon/fleet/pg_params.h"
#include "daemon/stats/stats.h"
#include "libprof/cli/args.h"
#include "libprof/cli/stdio.h"

struct options {
	struct md_fleet_access access;
	const char *salt_file, *argument;
	int64_t since_s;
	long limit;
	bool json, takes_argument, may_lack_argument, lists_builds, lists_hosts;
};

enum {
	KEY_JSON = 256,
	KEY_SALT
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &o->access; return 0;
	case KEY_JSON: o->json = true; return 0;
	case KEY_SALT: o->salt_file = arg; return 0;
	case 's': md_stats_since(state, arg, &o->since_s); return 0;
	case 'n': md_stats_limit(state, arg, &o->limit); return 0;
	case ARGP_KEY_ARG:
		if (!o->takes_argument || o->argument)
			argp_error(state, "%s: too many arguments", arg);
		o->argument = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->takes_argument && !o->argument && !o->may_lack_argument)
			argp_error(state, "no module given");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&md_fleet_access_argp, 0, NULL, 0}, {0}};
#define SINCE                                                                                      \
	{                                                                                          \
		"since", 's', "WHEN", 0, "Leave out older days: 3d, 2026-11-20, ...", 0            \
	}
#define LIMIT                                                                                      \
	{                                                                                          \
		"limit", 'n', "N", 0, "At most N rows", 0                                          \
	}
#define JSON                                                                                       \
	{                                                                                          \
		"json", KEY_JSON, NULL, 0, "Print JSON", 0                                         \
	}
#define EXIT_DOC                                                                                   \
	"Exit status: 0 done, 1 failed, 2 usage, 3 the fleet has nothing, 75 the server is gone."

static const struct argp_option module_options[] = {SINCE, LIMIT, JSON, {0}};
static const struct argp modules_argp = {
	module_options,
	parse,
	NULL,
	"Say which modules the fleet has counts of, those with the most samples first.\v" EXIT_DOC,
	children,
	NULL,
	NULL};
static const struct argp hosts_argp = {
	module_options,
	parse,
	"[BUILD-ID|FILE]",
	"Say which hosts have samples of a module, and how much each counts in the fleet's profile. "
	"Without a module: all hosts, when each was last heard of, and whether it is banned.\v" EXIT_DOC,
	children,
	NULL,
	NULL};
static const struct argp_option version_options[] = {
	{"salt-file", KEY_SALT, "FILE", 0, "The salt of hashed names, the same on all hosts", 0},
	LIMIT,
	JSON,
	{0}};
static const struct argp versions_argp = {
	version_options,
	parse,
	"PATH",
	"Say which versions of the file at PATH the hosts of the fleet use.\v" EXIT_DOC,
	children,
	NULL,
	NULL};

static const struct argp_option build_options[] = {LIMIT, JSON, {0}};
static const struct argp builds_argp = {
	build_options,
	parse,
	NULL,
	"Say which builds were asked for, what became of them, and on how many hosts they are.\v" EXIT_DOC,
	children,
	NULL,
	NULL};

/* ---- tables -------------------------------------------------------------------------------- */

enum form {
	FORM_NUMBER,
	FORM_HEX,
	FORM_TEXT,
	FORM_DAY,
	FORM_TIME,
	FORM_WEIGHT,
	FORM_BOOL
};

struct column {
	const char *title, *key;
	enum form form;
	int size;  /* bytes of a number */
	int width; /* on paper */
};

static void hex(const char *data, int size, char *out)
{
	for (int i = 0; i < size && i < MP_BUILD_ID_MAX; i++)
		out += sprintf(out, "%02x", (uint8_t)data[i]);
	*out = '\0';
}

static void format(const PGresult *result, int row, int i, const struct column *c, char *out,
		   size_t room)
{
	const char *data = PQgetvalue(result, row, i);
	int size = PQgetlength(result, row, i);
	int64_t number = c->size && size == c->size ? md_pg_get(data, (size_t)size) : 0;
	time_t when = (time_t)number * MP_SECONDS_PER_DAY;
	struct tm tm;

	out[0] = '\0';
	if (PQgetisnull(result, row, i))
		snprintf(out, room, "-");
	else if (c->form == FORM_HEX)
		hex(data, size, out);
	else if (c->form == FORM_TEXT)
		snprintf(out, room, "%.*s", size, data);
	else if (c->form == FORM_BOOL)
		snprintf(out, room, "%s", number ? "yes" : "no");
	else if (c->form == FORM_TIME)
		md_stats_format_time(number, out);
	else if (c->form == FORM_WEIGHT)
		snprintf(out, room, "%.1f %%", (double)number / 655.36);
	else if (c->form == FORM_NUMBER || !gmtime_r(&when, &tm) ||
		 !strftime(out, room, "%Y-%m-%d", &tm))
		snprintf(out, room, "%" PRId64, number);
}

static json_t *json_of(const PGresult *result, int row, int i, const struct column *c)
{
	char text[4200];

	if (PQgetisnull(result, row, i))
		return json_null();
	if (c->form == FORM_NUMBER || c->form == FORM_TIME)
		return json_integer(PQgetlength(result, row, i) == c->size
					    ? md_pg_get(PQgetvalue(result, row, i), (size_t)c->size)
					    : 0);
	if (c->form == FORM_BOOL)
		return json_boolean(*PQgetvalue(result, row, i));
	if (c->form == FORM_WEIGHT)
		return json_real((double)md_pg_get(PQgetvalue(result, row, i), 4) / 65536);
	format(result, row, i, c, text, sizeof(text));
	return md_stats_json_string(text);
}

static int print_json(const PGresult *result, const char *command, const struct column *columns,
		      int nr)
{
	json_t *root = md_stats_json_new(command), *rows = json_array();

	for (int row = 0; row < PQntuples(result); row++) {
		json_t *object = json_object();

		for (int i = 0; i < nr; i++)
			json_object_set_new(object, columns[i].key,
					    json_of(result, row, i, &columns[i]));
		json_array_append_new(rows, object);
	}
	json_object_set_new(root, "rows", rows);
	return md_stats_json_print(root);
}

static int print_table(const PGresult *result, const struct column *columns, int nr)
{
	char text[4200];

	for (int i = 0; i < nr; i++)
		printf(i + 1 < nr ? "%-*s " : "%.*s", i + 1 < nr ? columns[i].width : 100,
		       columns[i].title);
	putchar('\n');
	for (int row = 0; row < PQntuples(result); row++) {
		for (int i = 0; i < nr; i++) {
			int used;

			format(result, row, i, &columns[i], text, sizeof(text));
			used = (int)strlen(text);
			md_stats_put_text(text);
			printf("%*s",
			       i + 1 < nr && used < columns[i].width ? columns[i].width - used + 1
								     : (i + 1 < nr),
			       "");
		}
		putchar('\n');
	}
	return md_stats_finish(MD_FLEET_DONE);
}

/* Runs @sql and prints what it gives. Return: exit status. */
static int show(struct options *o, PGconn *conn, const char *command, const char *sql,
		const struct md_pg_params *params, const struct column *columns, int nr)
{
	struct mp_err err = {""};
	PGresult *result;
	int r = md_pg_run(conn, sql, params, "read the fleet", &result, &err);

	if (r) {
		md_stats_fail("%s", err.msg);
		return r == -ENOTCONN || r == -EAGAIN ? MD_FLEET_LATER : MD_FLEET_FAILED;
	}
	if (PQnfields(result) != nr) {
		r = md_stats_fail(
			"the server answers in another form: upgrade Morph or its tables");
	} else if (!PQntuples(result)) {
		md_stats_fail("the fleet has no %s", o->lists_builds  ? "builds"
						     : o->lists_hosts ? "hosts"
								      : "counts of it");
		r = MD_FLEET_NO_PROFILE;
	} else {
		r = o->json ? print_json(result, command, columns, nr)
			    : print_table(result, columns, nr);
	}
	PQclear(result);
	return r;
}

/* ---- commands ------------------------------------------------------------------------------ */

/* Parses the options and connects. Return: exit status. */
static int start(struct options *o, const struct argp *argp, int argc, char **argv, PGconn **conn)
{
	md_stats_set_program(argv[0]);
	mp_args_parse(argp, argc, argv, 0, o);
	mp_stdio_parsed();
	return md_fleet_access_connect(&o->access, conn);
}

static void add_limit(struct md_pg_params *p, const struct options *o)
{
	md_pg_add_number(p, MD_PG_INT8, o->limit ? o->limit : 1000000);
}

int md_fleet_command_modules(int argc, char **argv)
{
	static const struct column columns[] = {{"samples", "samples", FORM_NUMBER, 8, 14},
						{"transfers", "transfers", FORM_NUMBER, 8, 14},
						{"hosts", "nr_hosts", FORM_NUMBER, 8, 7},
						{"last day", "last_day", FORM_DAY, 4, 10},
						{"build-id", "build_id", FORM_HEX, 0, 40},
						{"name", "name", FORM_TEXT, 0, 0}};
	struct options o = {0};
	struct md_pg_params p = {0};
	PGconn *conn;
	int r = start(&o, &modules_argp, argc, argv, &conn);

	if (r)
		return r;
	md_pg_add_number(&p, MD_PG_INT4, o.since_s / MP_SECONDS_PER_DAY);
	add_limit(&p, &o);
	r = show(&o, conn, "modules",
		 "SELECT total, transfers, nr_hosts, last_day, build_id, name"
		 " FROM fleet.list_modules($1, 2147483647) LIMIT $2",
		 &p, columns, 6);
	PQfinish(conn);
	return r;
}

/* The key of the module of a file. Return: bytes; 0 after a message. */
static size_t find_key(const char *argument, uint8_t key[MD_MODULE_KEY_MAX])
{
	struct mp_err err = {""};
	struct mp_id id;

	if (md_original_id(argument, &id, &err)) {
		md_stats_fail("%s", err.msg);
		return 0;
	}
	return md_module_key(&id, key);
}

/* The whole fleet. Return: exit status. */
static int show_all_hosts(struct options *o, PGconn *conn)
{
	static const struct column columns[] = {{"host", "name", FORM_TEXT, 0, 24},
						{"last sent", "sent_at", FORM_TIME, 8, 19},
						{"asked for builds", "asked_at", FORM_TIME, 8, 19},
						{"files", "nr_files", FORM_NUMBER, 8, 6},
						{"old ones", "nr_old", FORM_NUMBER, 8, 8},
						{"banned", "banned", FORM_BOOL, 1, 0}};
	struct md_pg_params p = {0};

	o->lists_hosts = true;
	md_pg_add_number(&p, MD_PG_INT4, o->since_s / MP_SECONDS_PER_DAY);
	add_limit(&p, o);
	return show(
		o, conn, "fleet-hosts",
		"SELECT name, extract(epoch FROM last_at)::bigint, extract(epoch FROM asked_at)::bigint,"
		" nr_files, nr_old, banned FROM fleet.list_hosts($1) LIMIT $2",
		&p, columns, 6);
}

int md_fleet_command_hosts(int argc, char **argv)
{
	static const struct column columns[] = {{"host", "name", FORM_TEXT, 0, 24},
						{"samples", "samples", FORM_NUMBER, 8, 14},
						{"counted", "counted", FORM_NUMBER, 8, 14},
						{"weight", "weight", FORM_WEIGHT, 4, 0}};
	struct options o = {.takes_argument = true, .may_lack_argument = true};
	struct md_pg_params p = {0};
	uint8_t key[MD_MODULE_KEY_MAX];
	size_t size = 0;
	bool by_id;
	PGconn *conn;
	int r = start(&o, &hosts_argp, argc, argv, &conn);

	if (r)
		return r;
	if (!o.argument) {
		r = show_all_hosts(&o, conn);
		PQfinish(conn);
		return r;
	}
	by_id = access(o.argument, F_OK) && md_build_id_parse(o.argument, key);
	if (!by_id)
		size = find_key(o.argument, key);
	if (!by_id && !size) {
		PQfinish(conn);
		return MD_FLEET_FAILED;
	}
	if (by_id)
		md_pg_add_bytes(&p, MD_PG_TEXT, o.argument, strlen(o.argument));
	else
		md_pg_add_bytes(&p, MD_PG_BYTEA, key, size);
	md_pg_add_number(&p, MD_PG_INT4, o.since_s / MP_SECONDS_PER_DAY);
	add_limit(&p, &o);
	r = show(&o, conn, "hosts",
		 by_id ? "SELECT s.name, s.total, s.weighted, s.weight FROM"
			 " fleet.find_modules(decode($1, 'hex')) m, LATERAL"
			 " fleet.host_shares(m.module, 0::smallint, $2, 2147483647, 0.9) s LIMIT $3"
		       : "SELECT name, total, weighted, weight FROM"
			 " fleet.host_shares($1, 0::smallint, $2, 2147483647, 0.9) LIMIT $3",
		 &p, columns, 4);
	PQfinish(conn);
	return r;
}

/* The name that the fleet has for @path; with a salt that is its hash. Return: exit status. */
static int name_of(struct options *o, char name[MD_NAME_SIZE])
{
	struct md_file_names names = {.how = o->access.config.names};
	const char *file = o->salt_file ? o->salt_file : o->access.config.salt_file;
	char *real = realpath(o->argument, NULL);
	struct mp_err err = {""};
	const char *found;

	if (file[0] && md_file_names_read_salt(&names, file, &err)) {
		free(real);
		return md_stats_fail("%s", err.msg);
	}
	if (!names.salt_size)
		names.how = MD_NAMES_PLAIN;
	found = md_file_name(&names, real ? real : o->argument, name);
	free(real);
	return found ? 0 : md_stats_fail("no names are sent (names = no)");
}

int md_fleet_command_versions(int argc, char **argv)
{
	static const struct column columns[] = {{"build-id", "build_id", FORM_HEX, 0, 40},
						{"hosts", "nr_hosts", FORM_NUMBER, 8, 7},
						{"samples", "samples", FORM_NUMBER, 8, 14},
						{"first day", "first_day", FORM_DAY, 4, 10},
						{"last day", "last_day", FORM_DAY, 4, 0}};
	struct options o = {.takes_argument = true};
	struct md_pg_params p = {0};
	char name[MD_NAME_SIZE];
	PGconn *conn;
	int r = start(&o, &versions_argp, argc, argv, &conn);

	if (r)
		return r;
	r = name_of(&o, name);
	if (!r) {
		md_pg_add_bytes(&p, MD_PG_TEXT, name, strlen(name));
		add_limit(&p, &o);
		r = show(&o, conn, "versions",
			 "SELECT build_id, nr_hosts, total, first_day, last_day FROM"
			 " fleet.versions($1) LIMIT $2",
			 &p, columns, 5);
	}
	PQfinish(conn);
	return r;
}

int md_fleet_command_builds(int argc, char **argv)
{
	static const struct column columns[] = {{"state", "state", FORM_TEXT, 0, 9},
						{"since", "since", FORM_TIME, 8, 19},
						{"build-id", "build_id", FORM_HEX, 0, 40},
						{"plan", "plan_bytes", FORM_NUMBER, 8, 9},
						{"release", "release", FORM_NUMBER, 4, 7},
						{"in place", "nr_installed", FORM_NUMBER, 8, 8},
						{"other", "nr_other", FORM_NUMBER, 8, 6},
						{"waiting", "nr_waiting", FORM_NUMBER, 8, 7},
						{"refused", "nr_refused", FORM_NUMBER, 8, 7},
						{"version", "version", FORM_TEXT, 0, 16},
						{"options", "options", FORM_TEXT, 0, 16},
						{"detail", "detail", FORM_TEXT, 0, 0}};
	struct options o = {.lists_builds = true};
	struct md_pg_params p = {0};
	PGconn *conn;
	int r = start(&o, &builds_argp, argc, argv, &conn);

	if (r)
		return r;
	add_limit(&p, &o);
	r = show(&o, conn, "builds",
		 "SELECT state, extract(epoch FROM changed_at)::bigint, substr(module, 9),"
		 " plan_size, release, nr_installed, nr_other, nr_waiting, nr_refused,"
		 " version, options, detail FROM fleet.list_builds() LIMIT $1",
		 &p, columns, sizeof(columns) / sizeof(columns[0]));
	PQfinish(conn);
	return r;
}
