// SPDX-License-Identifier: Apache-2.0
/* report_command - the command "report": reads the fleet and writes the page; see report_page.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/fleet/client_command.h"
#include "daemon/fleet/report/report_page.h"
#include "daemon/fleet/server_json.h"
#include "daemon/stats/interrupt.h"
#include "daemon/stats/stats.h"
#include "libprof/base/outfile.h"
#include "libprof/cli/args.h"
#include "libprof/cli/stdio.h"

#define DAY_S	   86400
#define SINCE_DAYS 30
#define LAG_DAYS   2

extern const char *argp_program_version;

struct options {
	struct md_fleet_access access;
	const char *output;
	int64_t since_s, lag_s;
	bool json;
};

enum {
	KEY_LAG = 256,
	KEY_JSON
};

static const struct argp_option option_table[] = {
	{"output", 'o', "FILE|DIR", 0,
	 "Write FILE, or index.html in DIR, instead of to standard output", 0},
	{"since", 's', "WHEN", 0, "Leave out older days: 3d, 2026-11-20, ... (default: 30d)", 0},
	{"lag", KEY_LAG, "WHEN", 0,
	 "A host lags that has sent nothing since: 12h, 3d, ... (default: 2d)", 0},
	{"json", KEY_JSON, NULL, 0, "Print as JSON what the page shows", 0},
	{0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	int64_t then_s;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &o->access; return 0;
	case 'o': o->output = arg; return 0;
	case 's': md_stats_since(state, arg, &o->since_s); return 0;
	case KEY_LAG:
		md_stats_since(state, arg, &then_s);
		o->lag_s = (int64_t)time(NULL) - then_s;
		return 0;
	case KEY_JSON: o->json = true; return 0;
	case ARGP_KEY_ARG: argp_error(state, "%s: too many arguments", arg); return EINVAL;
	case ARGP_KEY_END:
		if (!o->output && !o->json && isatty(STDOUT_FILENO))
			argp_error(state, "the page is HTML: name a file with --output=FILE");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&md_fleet_access_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
	option_table,
	parse,
	NULL,
	"Write an HTML page about the fleet: modules by samples, gains, roll-outs, versions in use, hosts "
	"that lag. The page needs no network.\v"
	"Exit status: 0 done, 1 failed, 2 usage, 75 the server is gone.",
	children,
	NULL,
	NULL};

/* ---- reading ------------------------------------------------------------------------------- */

#define BUILD_NAMES                                                                                \
	"(SELECT f.name FROM fleet.module_facts(module) f) AS name, "                              \
	"encode(substr(module, 9), 'hex') AS build_id"

static int read_modules(PGconn *conn, struct md_fleet_report *r, struct mp_err *err)
{
	char since[24];
	const char *const params[] = {since};

	snprintf(since, sizeof(since), "%" PRId64, r->since_s / DAY_S);
	return md_fleet_rows(
		conn,
		"SELECT encode(module, 'hex') AS module, encode(build_id, 'hex') AS build_id, name, "
		"nr_hosts, total, first_day, last_day FROM fleet.list_modules($1::integer, 2147483647) "
		"LIMIT 5000",
		1, params, "read the modules", &r->modules, err);
}

static int read_hosts(PGconn *conn, struct md_fleet_report *r, struct mp_err *err)
{
	char since[24];
	const char *const params[] = {since};

	snprintf(since, sizeof(since), "%" PRId64, r->since_s / DAY_S);
	return md_fleet_rows(
		conn,
		"SELECT name, banned, coalesce(floor(extract(epoch FROM greatest(last_at, asked_at))), 0)"
		"::bigint AS last_s, nr_files, nr_old FROM fleet.list_hosts($1::integer) ORDER BY 3, 1",
		1, params, "read the hosts", &r->hosts, err);
}

static int read_fleet(PGconn *conn, struct md_fleet_report *r, struct mp_err *err)
{
	int ret = read_modules(conn, r, err);

	if (!ret)
		ret = md_fleet_rows(
			conn,
			"SELECT " BUILD_NAMES ", options, version, release, nr_hosts, pairs, "
			"ratio, lowest, highest, by_ranks FROM fleet.list_gains() LIMIT 1000",
			0, NULL, "read the gains", &r->gains, err);
	if (!ret)
		ret = md_fleet_rows(
			conn,
			"SELECT name, encode(build_id, 'hex') AS build_id, options, version, "
			"release, state, stage, nr_stages, cutoff AS share, cause, nr_hosts, "
			"nr_audits, log_faster, log_slower FROM fleet.list_canaries() LIMIT 1000",
			0, NULL, "read the roll-outs", &r->canaries, err);
	if (!ret)
		ret = md_fleet_rows(
			conn,
			"SELECT encode(substr(module, 9), 'hex') AS build_id, options, version, state, "
			"cause, stage, who, nr_hosts, floor(extract(epoch FROM at))::bigint AS at_s "
			"FROM fleet.canary_history ORDER BY at DESC, revision DESC LIMIT 60",
			0, NULL, "read the history", &r->history, err);
	return ret ? ret : read_hosts(conn, r, err);
}

static void fini(struct md_fleet_report *r)
{
	json_decref(r->modules);
	json_decref(r->gains);
	json_decref(r->canaries);
	json_decref(r->history);
	json_decref(r->hosts);
}

/* ---- writing ------------------------------------------------------------------------------- */

static int print_json(const struct md_fleet_report *r)
{
	json_t *root = md_stats_json_new("fleet-report");

	json_object_set(root, "modules", r->modules);
	json_object_set(root, "gains", r->gains);
	json_object_set(root, "canaries", r->canaries);
	json_object_set(root, "history", r->history);
	json_object_set(root, "hosts", r->hosts);
	return md_stats_json_print(root);
}

static int write_page(const struct options *o, const struct md_fleet_report *r)
{
	char path[4096];
	const char *output = o->output;
	struct mp_err err = {""};
	struct mp_outfile out;
	struct stat st;

	if (output && !stat(output, &st) && S_ISDIR(st.st_mode)) {
		if (snprintf(path, sizeof(path), "%s/index.html", output) >= (int)sizeof(path))
			return md_stats_fail("%s: the name is too long", output);
		output = path;
	}
	if (mp_outfile_open(output, md_interrupt_unlinks, &out, &err))
		return md_stats_fail("%s", err.msg);
	md_fleet_report_write(r, out.file);
	if (mp_outfile_commit(&out, &err))
		return md_stats_fail("%s", err.msg);
	return md_stats_finish(MD_FLEET_DONE);
}

int md_fleet_command_report(int argc, char **argv)
{
	const char *version = strchr(argp_program_version, ' ');
	struct md_fleet_report report = {.now_s = (int64_t)time(NULL),
					 .version = version ? version + 1 : ""};
	struct options o = {.since_s = report.now_s - SINCE_DAYS * DAY_S,
			    .lag_s = LAG_DAYS * DAY_S};
	struct mp_err err = {""};
	PGconn *conn;
	int r;

	md_stats_set_program(argv[0]);
	mp_args_parse(&argp, argc, argv, 0, &o);
	mp_stdio_parsed();
	report.since_s = o.since_s;
	report.lag_s = o.lag_s;
	r = md_fleet_access_connect(&o.access, &conn);
	if (r)
		return r;
	r = read_fleet(conn, &report, &err);
	PQfinish(conn);
	if (r) {
		md_stats_fail("%s", err.msg);
		r = r == -ENOTCONN || r == -EAGAIN ? MD_FLEET_LATER : MD_FLEET_FAILED;
	} else {
		r = o.json ? print_json(&report) : write_page(&o, &report);
	}
	fini(&report);
	return r;
}
