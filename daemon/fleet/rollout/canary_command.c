// SPDX-License-Identifier: Apache-2.0
/*
 * canary_command - the command "canary": shows the roll-outs of builds, lets them take the steps that the
 * evidence calls for, does what an operator decides, and changes policies. The database decides what follows from evidence.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fleet/module_key.h"
#include "daemon/fleet/rollout/canary_policy.h"
#include "daemon/fleet/table.h"
#include "daemon/stats/stats.h"

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

struct options {
	struct md_fleet_access access;
	enum action action;
	const char *module;	       /* a file or the beginning of a build-id */
	const char *options, *version; /* of the build; NULL: any */
	struct md_policy_changes changes;
	bool drops, json;
};

static const struct md_option option_table[] = {
	MD_VALUE(TEXT, "options", 0, options, "TEXT",
		 "The build with these options, as `builds' shows them"),
	MD_VALUE(TEXT, "for", 0, version, "VERSION", "The build of this version of Morph"), MD_JSON,
	MD_OPTIONS_END};

/* An argument behind the action. */
static void take_argument(struct options *o, const char *arg, struct argp_state *state)
{
	struct mp_err err;

	if (o->action == POLICY && !strcmp(arg, "default"))
		o->drops = true;
	else if (o->action == POLICY && strchr(arg, '=')) {
		if (md_policy_read_change(&o->changes, arg, &err))
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
	char **arguments = o->access.arguments;
	int i = 0;

	if (o->access.nr_arguments)
		i = md_stats_find_word(arguments[0], action_names, NR_ACTIONS);
	if (i < 0)
		argp_error(state,
			   "%s: not list, step, policy, start, promote, hold, resume or withdraw",
			   arguments[0]);
	o->action = (enum action)i;
	for (i = 1; i < o->access.nr_arguments; i++)
		take_argument(o, arguments[i], state);
	if (o->action >= START && !o->module)
		argp_error(state, "no build given: a build-id or a file");
	if (o->drops && (!o->module || o->changes.nr))
		argp_error(state, "`default' goes with a module, and without settings");
}

static const struct md_usage usage = {
	.options = option_table,
	.arguments = "[list|step]\n"
		     "policy [BUILD-ID|FILE] [SETTING=VALUE...|default]\n"
		     "start|promote|hold|resume|withdraw BUILD-ID|FILE",
	.most = MD_POLICY_CHANGES_MAX + 2,
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
		md_stats_fail("%s: there is no such build", o->module);
		return MD_FLEET_NO_PROFILE;
	}
	if (nr > 1 && nr_open != 1)
		return md_stats_fail("%s: there are several such builds; say --options= or --for=",
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
		md_stats_note("%s: it is so already", o->module);
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

static int do_policy(const struct options *o, PGconn *conn)
{
	struct mp_err err = {""};
	char *module = NULL;
	int r = o->module ? md_modules_named(conn, o->module, &module) : 0;

	if (!r && module && strchr(module, ','))
		r = md_stats_fail("%s: several modules begin so", o->module);
	if (r) {
		free(module);
		return r;
	}
	if (o->drops)
		r = md_policy_drop(conn, module, &err);
	else if (o->changes.nr)
		r = md_policy_change(conn, module ? module : "{}", &o->changes, &err);
	free(module);
	if (!r)
		r = md_policy_print(conn, o->json, &err);
	return r ? md_fleet_failed(r, &err) : md_stats_finish(MD_FLEET_DONE);
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
