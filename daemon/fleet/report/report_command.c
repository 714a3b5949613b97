// SPDX-License-Identifier: Apache-2.0
/* report_command - the command "report": reads the fleet and writes the page; see report_page.h. */
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/fleet/command.h"
#include "daemon/fleet/pg.h"
#include "daemon/fleet/report/report_page.h"
#include "daemon/stats/interrupt.h"
#include "daemon/stats/stats.h"
#include "libprof/base/outfile.h"

#define SINCE_DAYS 30
#define LAG_DAYS   2

struct options {
	struct md_fleet_access access;
	const char *output;
	int64_t since_s, lag_since_s;
	bool json;
};

static const struct md_option option_table[] = {
	MD_VALUE(TEXT, "output", 'o', output, "FILE|DIR",
		 "Write FILE, or index.html in DIR, instead of to standard output"),
	MD_VALUE(TIME, "since", 's', since_s, "WHEN",
		 "Leave out older days: 3d, 2026-11-20, ... (default: 30d)"),
	MD_VALUE(TIME, "lag", 0, lag_since_s, "WHEN",
		 "A host lags that has sent nothing since: 12h, 3d, ... (default: 2d)"),
	MD_FLAG("json", json, "Print as JSON what the page shows"), MD_OPTIONS_END};

static void check(void *options, struct argp_state *state)
{
	const struct options *o = options;

	if (!o->output && !o->json && isatty(STDOUT_FILENO))
		argp_error(state, "the page is HTML: name a file with --output=FILE");
}

static const struct md_usage usage = {
	.options = option_table,
	.check = check,
	.doc = "Write an HTML page about the fleet: modules by samples, gains, roll-outs, versions in use, hosts "
	       "that lag. The page needs no network.\v"
	       "Exit status: 0 done, 1 failed, 2 usage, 75 the server is gone."};

/* ---- reading ------------------------------------------------------------------------------- */

/* What the page shows, by its names in JSON. $1: the first day. */
static const struct part {
	const char *name, *sql;
	size_t at;
} parts[] = {
	{"modules",
	 "SELECT encode(module, 'hex') AS module, encode(build_id, 'hex') AS build_id, name, "
	 "nr_hosts, total, first_day, last_day FROM fleet.list_modules($1, 2147483647) LIMIT 5000",
	 offsetof(struct md_fleet_report, modules)},
	{"gains",
	 "SELECT (SELECT f.name FROM fleet.module_facts(module) f) AS name, "
	 "encode(substr(module, 9), 'hex') AS build_id, options, version, release, nr_hosts, pairs, "
	 "ratio, lowest, highest, by_ranks FROM fleet.list_gains() WHERE $1::int IS NOT NULL LIMIT 1000",
	 offsetof(struct md_fleet_report, gains)},
	{"canaries",
	 "SELECT name, encode(build_id, 'hex') AS build_id, options, version, release, state, stage, "
	 "nr_stages, cutoff AS share, cause, nr_hosts, nr_audits, log_faster, log_slower "
	 "FROM fleet.list_canaries() WHERE $1::int IS NOT NULL LIMIT 1000",
	 offsetof(struct md_fleet_report, canaries)},
	{"history",
	 "SELECT encode(substr(module, 9), 'hex') AS build_id, options, version, state, cause, stage, who, "
	 "nr_hosts, floor(extract(epoch FROM at))::bigint AS at_s FROM fleet.canary_history "
	 "WHERE $1::int IS NOT NULL ORDER BY at DESC, revision DESC LIMIT 60",
	 offsetof(struct md_fleet_report, history)},
	{"hosts",
	 "SELECT name, banned, coalesce(floor(extract(epoch FROM greatest(last_at, asked_at))), 0)::bigint "
	 "AS last_s, nr_files, nr_old FROM fleet.list_hosts($1) ORDER BY 3, 1",
	 offsetof(struct md_fleet_report, hosts)},
};
#define NR_PARTS (sizeof(parts) / sizeof(parts[0]))

static json_t **rows_of(struct md_fleet_report *r, const struct part *part)
{
	return (json_t **)((char *)r + part->at);
}

/* ---- writing ------------------------------------------------------------------------------- */

static int print_json(struct md_fleet_report *r)
{
	json_t *root = md_stats_json_new("fleet-report");

	for (size_t i = 0; i < NR_PARTS; i++)
		json_object_set(root, parts[i].name, *rows_of(r, &parts[i]));
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
	struct md_fleet_report report = {.now_s = (int64_t)time(NULL),
					 .version = md_fleet_version()};
	struct options o = {.since_s = report.now_s - SINCE_DAYS * MP_SECONDS_PER_DAY,
			    .lag_since_s = report.now_s - LAG_DAYS * MP_SECONDS_PER_DAY};
	struct mp_err err = {""};
	PGconn *conn;
	int r = md_fleet_start(&usage, argc, argv, &o, &conn);

	if (r)
		return r;
	report.since_s = o.since_s;
	report.lag_s = report.now_s - o.lag_since_s;
	for (size_t i = 0; i < NR_PARTS && !r; i++)
		r = md_pg_rows(conn, "read the fleet", rows_of(&report, &parts[i]), &err,
			       parts[i].sql, "i", o.since_s / MP_SECONDS_PER_DAY);
	PQfinish(conn);
	if (r)
		r = md_fleet_failed(r, &err);
	else
		r = o.json ? print_json(&report) : write_page(&o, &report);
	for (size_t i = 0; i < NR_PARTS; i++)
		json_decref(*rows_of(&report, &parts[i]));
	return r;
}
