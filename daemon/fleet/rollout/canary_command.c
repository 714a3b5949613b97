// SPDX-License-Identifier: Apache-2.0
/*
 * canary_command - the command "canary": shows the roll-outs of builds, lets them take the steps that the
 * evidence calls for, does what an operator decides, and changes policies. The database decides what follows from evidence.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fleet/module_key.h"
#include "daemon/fleet/table.h"
#include "daemon/cli/cli.h"

#define MP_OPTIONS struct options

enum action {
	LIST,
	STEP,
	POLICY,
	START,
	PROMOTE,
	HOLD,
	RESUME,
	WITHDRAW,
	NR_ACTIONS
};

static const char *const action_names[NR_ACTIONS] = {"list",	"step", "policy", "start",
						     "promote", "hold", "resume", "withdraw"};

/* A command changes at most so many settings of a policy, which has fewer. */
#define CHANGES_MAX 14

/* Columns with new values, as the database takes them. Starts as zeros. */
struct changes {
	struct {
		const char *column;
		char value[256];
	} list[CHANGES_MAX];
	size_t nr;
};

struct options {
	struct md_fleet_access access;
	enum action action;
	const char *module;	       /* a file or the beginning of a build-id */
	const char *options, *version; /* of the build; NULL: any */
	struct changes changes;
	bool drops, json;
};

static const struct mp_option option_table[] = {
	MP_VALUE(TEXT, "options", 0, options, "TEXT",
		 "The build with these options, as `builds' shows them"),
	MP_VALUE(TEXT, "for", 0, version, "VERSION", "The build of this version of Morph"), MD_JSON,
	MP_OPTIONS_END};

/* ---- settings ---------------------------------------------------------------------------- */

/* The columns of fleet.canary_policy. The database checks values, too. */
static const struct column {
	const char *name;
	const char *units; /* that a number may have; NULL: it is yes or no */
	double most;
	bool whole, list; /* @list: several, between commas */
} columns[] = {
	{"rolls_out", NULL, 0, false, false},	 {"automatic", NULL, 0, false, false},
	{"shares", "%", 1, false, true},	 {"least_hosts", "", 1e9, true, false},
	{"least_audits", "", 1e9, true, false},	 {"soak_s", "smhdw", 1e12, true, false},
	{"stage_s", "smhdw", 1e12, true, false}, {"lease_s", "smhdw", 1e12, true, false},
	{"alpha", "%", 1, false, false},	 {"doubted", "%", 1, false, false},
	{"most_factor", "", 1e9, false, false},	 {"margin", "%", 1, false, false},
};

#define NR_COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* Appends a number to @out. */
static bool read_number(const struct column *c, const char *text, char *out, size_t room)
{
	static const char units[] = "%smhdw";
	static const double factors[] = {0.01, 1, 60, 3600, 86400, 604800};
	size_t used = strlen(out);
	char *unit;
	double number = strtod(text, &unit);

	if (unit == text || (*unit && (unit[1] || !strchr(c->units, *unit))))
		return false;
	if (*unit)
		number *= factors[strchr(units, *unit) - units];
	if (!(number >= 0 && number <= c->most) || (c->whole && number != floor(number)))
		return false;
	return snprintf(out + used, room - used, "%s%.12g", used > 1 ? "," : "", number) + 1 <
	       (int)(room - used);
}

static bool read_value(const struct column *c, char *text, char *out, size_t room)
{
	char *save;

	snprintf(out, room, "%s", c->list ? "{" : c->units ? "" : text);
	if (!c->units)
		return !strcmp(text, "yes") || !strcmp(text, "no");
	if (!c->list)
		return read_number(c, text, out, room);
	for (char *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save))
		if (!read_number(c, word, out, room))
			return false;
	strcat(out, "}");
	return strlen(out) > 2;
}

/*
 * Adds "COLUMN=VALUE". Shares and chances may be in per cent, times have a unit (90s, 12h, 1d) or are seconds. Return: 0;
 * -EINVAL with a message.
 */
static int read_change(struct changes *changes, const char *text, struct mp_err *err)
{
	size_t size = strcspn(text, "=");
	char value[256];

	for (size_t i = 0; i < NR_COLUMNS; i++) {
		const struct column *c = &columns[i];

		if (strlen(c->name) != size || strncmp(c->name, text, size) != 0)
			continue;
		if (changes->nr == CHANGES_MAX)
			return mp_err_set(err, EINVAL, "%s: too many arguments", text);
		if (snprintf(value, sizeof(value), "%s", text + size + 1) >= (int)sizeof(value) ||
		    !read_value(c, value, changes->list[changes->nr].value,
				sizeof(changes->list[0].value)))
			return mp_err_set(err, EINVAL, "%s: no such value", text);
		changes->list[changes->nr++].column = c->name;
		return 0;
	}
	return mp_err_set(err, EINVAL, "%s: no such setting", text);
}

/* ---- options ------------------------------------------------------------------------------- */

/* An argument behind the action. */
static void take_argument(struct options *o, const char *arg, struct argp_state *state)
{
	struct mp_err err;

	if (o->action == POLICY && !strcmp(arg, "default"))
		o->drops = true;
	else if (o->action == POLICY && strchr(arg, '=')) {
		if (read_change(&o->changes, arg, &err))
			argp_error(state, "%s", err.msg);
	} else if (o->module || o->action < POLICY) {
		argp_error(state, "%s: too many arguments", arg);
	} else {
		o->module = arg;
	}
}

static void check(void *options, struct argp_state *state)
{
	struct options *o = options;
	char **arguments = o->access.words.list;
	int i = 0;

	if (o->access.words.nr)
		i = md_cli_find_word(arguments[0], action_names, NR_ACTIONS);
	if (i < 0)
		argp_error(state,
			   "%s: not list, step, policy, start, promote, hold, resume or withdraw",
			   arguments[0]);
	o->action = (enum action)i;
	for (i = 1; i < o->access.words.nr; i++)
		take_argument(o, arguments[i], state);
	if (o->action >= START && !o->module)
		argp_error(state, "no build given: a build-id or a file");
	if (o->drops && (!o->module || o->changes.nr))
		argp_error(state, "`default' goes with a module, and without settings");
}

static const struct mp_usage usage = {
	.options = option_table,
	.arguments = "[list|step]\n"
		     "policy [BUILD-ID|FILE] [SETTING=VALUE...|default]\n"
		     "start|promote|hold|resume|withdraw BUILD-ID|FILE",
	.words = MP_AT(access.words),
	.most = CHANGES_MAX + 2,
	.check = check,
	.doc = "Show the roll-outs of builds, and steer them. A build goes to few hosts first. \"step\" takes "
	       "the steps that the hosts' evidence and the time call for: more hosts, all hosts, or withdraw; "
	       "let a timer run it. \"policy\" shows the rules of roll-outs, or changes them for all modules or for one. "
	       "The others are what an operator decides.\v"
	       "Exit status: 0 done, 1 failed, 2 usage, 3 there is no such build, 75 the server is gone."};

/* ---- list ---------------------------------------------------------------------------------- */

#define CANARIES                                                                                          \
	"SELECT encode(module, 'hex') AS module, encode(build_id, 'hex') AS build_id, options, version, " \
	"release, state, cause, stage, nr_stages, cutoff AS share, revision, "                            \
	"floor(extract(epoch FROM started_at))::bigint AS started_s, "                                    \
	"floor(extract(epoch FROM stage_at))::bigint AS stage_s, nr_hosts, nr_audits, nr_alarms, "        \
	"nr_undone, log_faster, log_slower, name FROM fleet.list_canaries()"

static int list(const struct options *o, PGconn *conn)
{
	static const struct md_column columns[] = {{"state", "state", 9, 0},
						   {"stage", "stage", 5, 0},
						   {"of", "nr_stages", 2, 0},
						   {"share", "share", 7, MD_FORM_SHARE},
						   {"hosts", "nr_hosts", 6, 0},
						   {"audits", "nr_audits", 6, 0},
						   {"faster", "log_faster", 8, MD_FORM_LOG},
						   {"slower", "log_slower", 8, MD_FORM_LOG},
						   {"build-id", "build_id", 40, 0},
						   {"version", "version", 16, 0},
						   {"options", "options", 16, 0},
						   {"cause", "cause", 0, 0}};
	struct mp_err err = {""};
	json_t *rows;
	int r = md_pg_rows(conn, "read the roll-outs", &rows, &err, CANARIES, "");

	if (r)
		return md_fleet_failed(r, &err);
	r = md_table_print(rows, o->json, "canary", columns);
	json_decref(rows);
	return r;
}

static int step(const struct options *o, PGconn *conn)
{
	struct mp_err err = {""};
	int r = md_pg_run(conn, "take the roll-outs' steps", NULL, &err,
			  "SELECT FROM fleet.step_canaries()", "");

	return r ? md_fleet_failed(r, &err) : list(o, conn);
}

/* ---- one build ----------------------------------------------------------------------------- */

/* A row that waits for a decision goes before others. */
static bool is_open(const json_t *row)
{
	return !strcmp(md_row_text(row, "state"), "running") ||
	       !strcmp(md_row_text(row, "state"), "held");
}

/* Return: exit status. *@out is borrowed from @rows. */
static int choose(const struct options *o, const json_t *rows, const json_t **out)
{
	size_t nr = json_array_size(rows), nr_open = 0;

	*out = NULL;
	for (size_t i = 0; i < nr; i++) {
		const json_t *row = json_array_get(rows, i);

		nr_open += is_open(row);
		if (!*out || (is_open(row) && !is_open(*out)))
			*out = row;
	}
	if (!nr) {
		md_cli_fail("%s: there is no such build", o->module);
		return MP_EXIT_NO_PROFILE;
	}
	if (nr > 1 && nr_open != 1)
		return md_cli_fail("%s: there are several such builds; say --options= or --for=",
				   o->module);
	return 0;
}

/* Return: exit status. */
static int change(const struct options *o, PGconn *conn, const json_t *row)
{
	struct mp_err err = {""};
	bool changed;
	int r;

	if (o->action == START)
		r = md_pg_ask(conn, "start the roll-out", &changed, &err,
			      "SELECT fleet.start_canary(decode($1, 'hex'), $2, $3)", "ttt",
			      md_row_text(row, "module"), md_row_text(row, "options"),
			      md_row_text(row, "version"));
	else
		r = md_pg_ask(conn, "change the roll-out", &changed, &err,
			      "SELECT fleet.set_canary(decode($1, 'hex'), $2, $3, $4, $5)", "tttit",
			      md_row_text(row, "module"), md_row_text(row, "options"),
			      md_row_text(row, "version"), (int64_t)md_row_number(row, "revision"),
			      action_names[o->action]);
	if (r)
		return md_fleet_failed(r, &err);
	if (!changed)
		md_cli_note("%s: it is so already", o->module);
	return list(o, conn);
}

#define CHOSEN                                                                                     \
	" WHERE module = ANY($1::bytea[]) AND ($2::text IS NULL OR options = $2)"                  \
	" AND ($3::text IS NULL OR version = $3)"

static int act(const struct options *o, PGconn *conn)
{
	struct mp_err err = {""};
	const json_t *row;
	json_t *rows;
	char *modules;
	int r = md_modules_named(conn, o->module, &modules);

	if (r)
		return r;
	r = md_pg_rows(conn, "read the builds", &rows, &err,
		       o->action == START
			       ? "SELECT encode(module, 'hex') AS module, options, version"
				 " FROM fleet.build" CHOSEN " AND state = 'done'"
			       : CANARIES CHOSEN,
		       "ttt", modules, o->options, o->version);
	free(modules);
	if (r)
		return md_fleet_failed(r, &err);
	r = choose(o, rows, &row);
	if (!r)
		r = change(o, conn, row);
	json_decref(rows);
	return r;
}

/* ---- policies -------------------------------------------------------------------------- */

#define MODULE "coalesce(($1::bytea[])[1], '')"

struct policy_change {
	const char *module;
	const struct changes *changes;
};

/* In a transaction. A module's own policy begins as a copy. */
static int change_columns(PGconn *conn, void *arg, struct mp_err *err)
{
	const struct policy_change *c = arg;
	struct md_pg_params p = {0};
	char sql[1024] = "UPDATE fleet.canary_policy SET ";
	int r = md_pg_run(conn, "copy the policy", NULL, err,
			  "INSERT INTO fleet.canary_policy"
			  " SELECT (jsonb_populate_record(p, jsonb_build_object('module', " MODULE
			  "))).*"
			  " FROM fleet.canary_policy p WHERE module = '' ON CONFLICT DO NOTHING",
			  "t", c->module);

	md_pg_add(&p, "t", c->module);
	for (size_t i = 0; i < c->changes->nr; i++) {
		/* The column's name comes from this file, and its type decides how the text is read. */
		snprintf(sql + strlen(sql), sizeof(sql) - strlen(sql), "%s%s = $%d", i ? ", " : "",
			 c->changes->list[i].column, p.nr + 1);
		md_pg_add(&p, "t", c->changes->list[i].value);
	}
	strcat(sql, " WHERE module = " MODULE);
	return r ? r : md_pg_run_with(conn, "change the policy", NULL, err, sql, &p);
}

static int policy_change(PGconn *conn, const char *module, const struct changes *changes,
			 struct mp_err *err)
{
	struct policy_change c = {module, changes};

	return md_pg_transaction(conn, change_columns, &c, "change the policy", err);
}

static int policy_drop(PGconn *conn, const char *module, struct mp_err *err)
{
	return md_pg_run(conn, "remove the policy", NULL, err,
			 "DELETE FROM fleet.canary_policy WHERE module = " MODULE
			 " AND module <> ''",
			 "t", module);
}

/* ---- print --------------------------------------------------------------------------------- */

static void put_value(json_t *value)
{
	json_t *share;
	size_t i;

	if (json_is_boolean(value))
		fputs(json_is_true(value) ? "yes" : "no", stdout);
	json_array_foreach(value, i, share)
		printf("%s%.9g", i ? "," : "", json_number_value(share));
	if (json_is_number(value))
		printf("%.9g", json_number_value(value));
	putchar('\n');
}

static void put_policy(const json_t *row)
{
	const char *build_id = md_row_text(row, "build_id"), *module = md_row_text(row, "module");

	puts(*build_id ? build_id : *module ? module : "all modules");
	for (size_t i = 0; i < NR_COLUMNS; i++) {
		printf("  %-12s ", columns[i].name);
		put_value(json_object_get(row, columns[i].name));
	}
}

static int policy_print(PGconn *conn, bool json, struct mp_err *err)
{
	json_t *rows, *root, *row;
	size_t i;
	int r = md_pg_rows(
		conn, "read the policies", &rows, err,
		"SELECT encode(module, 'hex') AS module, encode(substr(module, 9), 'hex') AS build_id, "
		"rolls_out, automatic, shares, least_hosts, least_audits, soak_s, stage_s, lease_s, alpha, "
		"doubted, most_factor, margin FROM fleet.canary_policy ORDER BY canary_policy.module",
		"");

	if (r)
		return r;
	if (json) {
		root = md_cli_json_new("canary-policy");
		json_object_set(root, "rows", rows);
		md_cli_json_print(root);
	} else {
		json_array_foreach(rows, i, row) put_policy(row);
	}
	json_decref(rows);
	return 0;
}

static int do_policy(const struct options *o, PGconn *conn)
{
	struct mp_err err = {""};
	char *module = NULL;
	int r = o->module ? md_modules_named(conn, o->module, &module) : 0;

	if (!r && module && strchr(module, ','))
		r = md_cli_fail("%s: several modules begin so", o->module);
	if (r) {
		free(module);
		return r;
	}
	if (o->drops)
		r = policy_drop(conn, module, &err);
	else if (o->changes.nr)
		r = policy_change(conn, module ? module : "{}", &o->changes, &err);
	free(module);
	if (!r)
		r = policy_print(conn, o->json, &err);
	return r ? md_fleet_failed(r, &err) : md_cli_finish(MP_EXIT_DONE);
}

int md_fleet_command_canary(int argc, char **argv)
{
	struct options o = {0};
	PGconn *conn;
	int r = md_fleet_start(&usage, argc, argv, &o, &conn);

	if (r)
		return r;
	switch (o.action) {
	case LIST: r = list(&o, conn); break;
	case STEP: r = step(&o, conn); break;
	case POLICY: r = do_policy(&o, conn); break;
	default: r = act(&o, conn);
	}
	PQfinish(conn);
	return r;
}
