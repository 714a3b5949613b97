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
#include <strings.h>
#include <unistd.h>

#include "daemon/code/originals.h"
#include "daemon/fleet/client_command.h"
#include "daemon/fleet/module_key.h"
#include "daemon/fleet/rollout/canary_policy.h"
#include "daemon/fleet/server_json.h"
#include "daemon/fleet/server_private.h"
#include "daemon/stats/stats.h"
#include "libprof/cli/args.h"
#include "libprof/cli/stdio.h"

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
#define CHANGES_MAX 32

struct options {
	struct md_fleet_access access;
	enum action action;
	const char *module;	       /* a file or the beginning of a build-id */
	const char *options, *version; /* of the build; NULL: any */
	struct md_policy_change changes[CHANGES_MAX];
	size_t nr_changes;
	bool has_action, drops, json;
};

enum {
	KEY_OPTIONS = 256,
	KEY_FOR,
	KEY_JSON
};

static const struct argp_option option_table[] = {
	{"options", KEY_OPTIONS, "TEXT", 0, "The build with these options, as `builds' shows them",
	 0},
	{"for", KEY_FOR, "VERSION", 0, "The build of this version of Morph", 0},
	{"json", KEY_JSON, NULL, 0, "Print JSON", 0},
	{0}};

/* An argument of "policy". Return: false: it is a module. */
static bool take_change(struct options *o, const char *arg, struct argp_state *state)
{
	struct mp_err err;

	if (!strcmp(arg, "default")) {
		o->drops = true;
		return true;
	}
	if (!strchr(arg, '='))
		return false;
	if (o->nr_changes == CHANGES_MAX)
		argp_error(state, "%s: too many arguments", arg);
	else if (md_policy_read_change(arg, &o->changes[o->nr_changes++], &err))
		argp_error(state, "%s", err.msg);
	return true;
}

static void take_argument(struct options *o, const char *arg, struct argp_state *state)
{
	int i = md_stats_find_word(arg, action_names, NR_ACTIONS);

	if (!o->has_action) {
		if (i < 0)
			argp_error(
				state,
				"%s: not list, step, policy, start, promote, hold, resume or withdraw",
				arg);
		o->action = (enum action)i;
		o->has_action = true;
	} else if (o->action == POLICY && take_change(o, arg, state)) {
		return;
	} else if (o->module || o->action < POLICY) {
		argp_error(state, "%s: too many arguments", arg);
	} else {
		o->module = arg;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &o->access; return 0;
	case KEY_OPTIONS: o->options = arg; return 0;
	case KEY_FOR: o->version = arg; return 0;
	case KEY_JSON: o->json = true; return 0;
	case ARGP_KEY_ARG: take_argument(o, arg, state); return 0;
	case ARGP_KEY_END:
		if (o->action >= START && !o->module)
			argp_error(state, "no build given: a build-id or a file");
		if (o->drops && (!o->module || o->nr_changes))
			argp_error(state, "`default' goes with a module, and without settings");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&md_fleet_access_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
	option_table,
	parse,
	"[list|step]\n"
	"policy [BUILD-ID|FILE] [SETTING=VALUE...|default]\n"
	"start|promote|hold|resume|withdraw BUILD-ID|FILE",
	"Show the roll-outs of builds, and steer them. A build goes to few hosts first. \"step\" takes "
	"the steps that the hosts' evidence and the time call for: more hosts, all hosts, or withdraw; "
	"let a timer run it. \"policy\" shows the rules of roll-outs, or changes them for all modules or for one. "
	"The others are what an operator decides.\v"
	"Exit status: 0 done, 1 failed, 2 usage, 3 there is no such build, 75 the server is gone.",
	children,
	NULL,
	NULL};

static int fail(int r, const struct mp_err *err)
{
	md_stats_fail("%s", err->msg);
	return r == -ENOTCONN || r == -EAGAIN ? MD_FLEET_LATER : MD_FLEET_FAILED;
}

/* ---- list ---------------------------------------------------------------------------------- */

static const char canaries[] =
	"SELECT encode(module, 'hex') AS module, encode(build_id, 'hex') AS build_id, options, version, "
	"release, state, cause, stage, nr_stages, cutoff AS share, revision, "
	"floor(extract(epoch FROM started_at))::bigint AS started_s, "
	"floor(extract(epoch FROM stage_at))::bigint AS stage_s, nr_hosts, nr_audits, nr_alarms, "
	"nr_undone, log_faster, log_slower, name FROM fleet.list_canaries()";

/* An e-value by its logarithm, for people: "12", "0.04", "3e+20". */
static const char *evidence(double log_e, char buf[32])
{
	double e = exp(fmin(log_e, 700));

	snprintf(buf, 32, e < 1000 && e >= 0.005 ? "%.2f" : "%.0e", e);
	return buf;
}

static void put_row(const json_t *row)
{
	char stage[32], share[32], faster[32], slower[32];

	snprintf(stage, sizeof(stage), "%.0f/%.0f", md_row_number(row, "stage"),
		 md_row_number(row, "nr_stages"));
	snprintf(share, sizeof(share), "%.3g %%", 100 * md_row_number(row, "share"));
	printf("%-9.9s %-5s %8s %6.0f %6.0f %8s %8s %-16.16s ", md_row_text(row, "state"), stage,
	       share, md_row_number(row, "nr_hosts"), md_row_number(row, "nr_audits"),
	       evidence(md_row_number(row, "log_faster"), faster),
	       evidence(md_row_number(row, "log_slower"), slower), md_row_text(row, "build_id"));
	md_stats_put_text(md_row_text(row, "version"));
	putchar(' ');
	md_stats_put_text(md_row_text(row, "options"));
	fputs(md_row_text(row, "options")[0] ? ": " : "", stdout);
	md_stats_put_text(md_row_text(row, "cause"));
	putchar('\n');
}

static int put_rows(const struct options *o, json_t *rows)
{
	json_t *root;

	if (!o->json) {
		printf("%-9s %-5s %8s %6s %6s %8s %8s %-16s %s\n", "state", "stage", "share",
		       "hosts", "audits", "faster", "slower", "build-id",
		       "version, options: cause");
		for (size_t i = 0; i < json_array_size(rows); i++)
			put_row(json_array_get(rows, i));
		return md_stats_finish(MD_FLEET_DONE);
	}
	root = md_stats_json_new("canary");
	json_object_set(root, "rows", rows);
	return md_stats_json_print(root);
}

static int list(const struct options *o, PGconn *conn)
{
	struct mp_err err = {""};
	json_t *rows;
	int r = md_fleet_rows(conn, canaries, 0, NULL, "read the roll-outs", &rows, &err);

	if (r)
		return fail(r, &err);
	r = put_rows(o, rows);
	json_decref(rows);
	return r;
}

static int step(const struct options *o, PGconn *conn)
{
	struct mp_err err = {""};
	json_t *rows;
	int r = md_fleet_rows(conn,
			      "SELECT encode(module, 'hex') AS module FROM fleet.step_canaries()",
			      0, NULL, "take the roll-outs' steps", &rows, &err);

	if (r)
		return fail(r, &err);
	json_decref(rows);
	return list(o, conn);
}

/* ---- one build ----------------------------------------------------------------------------- */

/* A build as the user names it: @hex is its module, or the beginning of its build-id. */
struct wanted {
	const struct options *options;
	char hex[2 * MD_MODULE_KEY_MAX + 1];
	bool whole; /* @hex is the module */
};

static bool is_wanted(const struct wanted *w, const json_t *row)
{
	const struct options *o = w->options;

	if (w->whole ? strcmp(md_row_text(row, "module"), w->hex) != 0
		     : strncmp(md_row_text(row, "build_id"), w->hex, strlen(w->hex)) != 0)
		return false;
	return (!o->options || !strcmp(md_row_text(row, "options"), o->options)) &&
	       (!o->version || !strcmp(md_row_text(row, "version"), o->version));
}

/* A row that waits for a decision goes before others. */
static bool is_open(const json_t *row)
{
	return !strcmp(md_row_text(row, "state"), "running") ||
	       !strcmp(md_row_text(row, "state"), "held");
}

/* Return: exit status. *@out is borrowed from @rows. */
static int find(const struct wanted *w, const json_t *rows, const json_t **out)
{
	size_t nr = 0, nr_open = 0;

	*out = NULL;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);

		if (!is_wanted(w, row))
			continue;
		nr++;
		nr_open += is_open(row);
		if (!*out || (is_open(row) && !is_open(*out)))
			*out = row;
	}
	if (!nr) {
		md_stats_fail("%s: there is no such build", w->options->module);
		return MD_FLEET_NO_PROFILE;
	}
	if (nr > 1 && nr_open != 1)
		return md_stats_fail("%s: there are several such builds; say --options= or --for=",
				     w->options->module);
	return 0;
}

static int want(const struct options *o, struct wanted *w)
{
	uint8_t bytes[MD_MODULE_KEY_MAX];
	struct mp_err err = {""};
	struct mp_id id;
	size_t size = access(o->module, F_OK) ? md_build_id_parse(o->module, bytes) : 0;

	*w = (struct wanted){.options = o, .whole = !size};
	if (!size) {
		if (md_original_id(o->module, &id, &err))
			return md_stats_fail("%s", err.msg);
		size = md_module_key(&id, bytes);
	}
	for (size_t i = 0; i < size; i++)
		snprintf(w->hex + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* Return: exit status. */
static int change(const struct options *o, PGconn *conn, const json_t *row)
{
	char revision[32];
	const char *const params[] = {md_row_text(row, "module"), md_row_text(row, "options"),
				      md_row_text(row, "version"), revision,
				      action_names[o->action]};
	struct mp_err err = {""};
	bool changed;
	int r;

	snprintf(revision, sizeof(revision), "%.0f", md_row_number(row, "revision"));
	if (o->action == START)
		r = md_fleet_ask(conn, "SELECT fleet.start_canary(decode($1, 'hex'), $2, $3)", 3,
				 params, "start the roll-out", &changed, &err);
	else
		r = md_fleet_ask(
			conn, "SELECT fleet.set_canary(decode($1, 'hex'), $2, $3, $4::integer, $5)",
			5, params, "change the roll-out", &changed, &err);
	if (r)
		return fail(r, &err);
	if (!changed)
		md_stats_note("%s: it is so already", o->module);
	return 0;
}

static int act(const struct options *o, PGconn *conn)
{
	static const char builds[] =
		"SELECT encode(module, 'hex') AS module, encode(substr(module, 9), 'hex') AS build_id, "
		"options, version FROM fleet.build WHERE state = 'done'";
	const char *query = o->action == START ? builds : canaries;
	struct mp_err err = {""};
	struct wanted wanted;
	const json_t *row;
	json_t *rows;
	int r = want(o, &wanted);

	if (r)
		return r;
	r = md_fleet_rows(conn, query, 0, NULL, "read the builds", &rows, &err);
	if (r)
		return fail(r, &err);
	r = find(&wanted, rows, &row);
	if (!r)
		r = change(o, conn, row);
	json_decref(rows);
	return r ? r : list(o, conn);
}

/* ---- policies ------------------------------------------------------------------------------ */

/* The module of a policy, in hexadecimal. Return: exit status. */
static int find_module(const struct options *o, PGconn *conn, char hex[2 * MD_MODULE_KEY_MAX + 1])
{
	struct wanted wanted;
	const char *const params[] = {wanted.hex};
	struct mp_err err = {""};
	json_t *rows;
	int r = want(o, &wanted);

	if (r)
		return r;
	strcpy(hex, wanted.hex);
	if (wanted.whole)
		return 0;
	r = md_fleet_rows(
		conn,
		"SELECT encode(m, 'hex') AS module FROM fleet.modules_of(decode($1, 'hex')) m", 1,
		params, "find the module", &rows, &err);
	if (r)
		return fail(r, &err);
	if (json_array_size(rows) == 1)
		snprintf(hex, 2 * MD_MODULE_KEY_MAX + 1, "%s",
			 md_row_text(json_array_get(rows, 0), "module"));
	else if (json_array_size(rows))
		r = md_stats_fail("%s: several modules begin so", o->module);
	else
		r = (md_stats_fail("%s: there is no such module", o->module), MD_FLEET_NO_PROFILE);
	json_decref(rows);
	return r;
}

static int do_policy(const struct options *o, PGconn *conn)
{
	char hex[2 * MD_MODULE_KEY_MAX + 1] = "";
	struct mp_err err = {""};
	int r = o->module ? find_module(o, conn, hex) : 0;

	if (r)
		return r;
	if (o->drops)
		r = md_policy_drop(conn, hex, &err);
	else if (o->nr_changes)
		r = md_policy_change(conn, hex, o->changes, o->nr_changes, &err);
	if (!r)
		r = md_policy_print(conn, o->json, &err);
	return r ? fail(r, &err) : md_stats_finish(MD_FLEET_DONE);
}

/* ---- the command --------------------------------------------------------------------------- */

static int run(const struct options *o, PGconn *conn)
{
	switch (o->action) {
	case LIST: return list(o, conn);
	case STEP: return step(o, conn);
	case POLICY: return do_policy(o, conn);
	default: return act(o, conn);
	}
}

int md_fleet_command_canary(int argc, char **argv)
{
	struct options o = {0};
	PGconn *conn;
	int r;

	md_stats_set_program(argv[0]);
	mp_args_parse(&argp, argc, argv, 0, &o);
	mp_stdio_parsed();
	r = md_fleet_access_connect(&o.access, &conn);
	if (r)
		return r;
	r = run(&o, conn);
	PQfinish(conn);
	return r;
}
