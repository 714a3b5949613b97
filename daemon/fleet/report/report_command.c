// SPDX-License-Identifier: Apache-2.0
/*
 * report_command - the command "report": the fleet as one HTML page, a table for each question. The page needs no network and
 * runs nothing: its own policy forbids both. All texts come from hosts, and are escaped. Without colours it says the same.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/fleet/command.h"
#include "daemon/fleet/pg.h"
#include "daemon/morph/report_style.h"
#include "daemon/stats/interrupt.h"
#include "daemon/cli/cli.h"
#include "libprof/base/outfile.h"
#include "libprof/cli/program.h"
#include "libprof/cli/svg.h"

#define MP_OPTIONS struct options

#define SINCE_DAYS 30
#define LAG_DAYS   2

struct options {
	struct md_fleet_access access;
	const char *output;
	int64_t since_s, lag_since_s;
	bool json;
};

static const struct mp_option option_table[] = {
	MP_VALUE(TEXT, "output", 'o', output, "FILE|DIR",
		 "Write FILE, or index.html in DIR, instead of to standard output"),
	MP_VALUE(TIME, "since", 's', since_s, "WHEN",
		 "Leave out older days: 3d, 2026-11-20, ... (default: 30d)"),
	MP_VALUE(TIME, "lag", 0, lag_since_s, "WHEN",
		 "A host lags that has sent nothing since: 12h, 3d, ... (default: 2d)"),
	MP_FLAG("json", json, "Print as JSON what the page shows"), MP_OPTIONS_END};

static void check(void *options, struct argp_state *state)
{
	const struct options *o = options;

	if (!o->output && !o->json && isatty(STDOUT_FILENO))
		argp_error(state, "the page is HTML: name a file with --output=FILE");
}

static const struct mp_usage usage = {
	.options = option_table,
	.check = check,
	.doc = "Write an HTML page about the fleet: modules by samples, gains, roll-outs, versions in use, hosts "
	       "that lag. The page needs no network.\v"
	       "Exit status: 0 done, 1 failed, 2 usage, 75 the server is gone."};

/* ---- what is read -------------------------------------------------------------------------- */

/* What --json prints, by its names. $1: the first day; $2: since when a host must have been heard of. */
#define GIVEN "WITH given AS (SELECT $1::integer AS since, $2::bigint AS lag) "

static const struct part {
	const char *name, *sql;
} parts[] = {
	{"modules",
	 "SELECT encode(module, 'hex') AS module, encode(build_id, 'hex') AS build_id, name, "
	 "nr_hosts, total, first_day, last_day FROM fleet.list_modules($1, 2147483647) LIMIT 5000"},
	{"gains",
	 "SELECT (SELECT f.name FROM fleet.module_facts(module) f) AS name, "
	 "encode(substr(module, 9), 'hex') AS build_id, options, version, release, nr_hosts, pairs, "
	 "ratio, lowest, highest, by_ranks FROM fleet.list_gains() LIMIT 1000"},
	{"canaries",
	 "SELECT name, encode(build_id, 'hex') AS build_id, options, version, release, state, stage, "
	 "nr_stages, cutoff AS share, cause, nr_hosts, nr_audits, log_faster, log_slower "
	 "FROM fleet.list_canaries() LIMIT 1000"},
	{"history",
	 "SELECT encode(substr(module, 9), 'hex') AS build_id, options, version, state, cause, stage, who, "
	 "nr_hosts, floor(extract(epoch FROM at))::bigint AS at_s FROM fleet.canary_history "
	 "ORDER BY at DESC, revision DESC LIMIT 60"},
	{"hosts",
	 "SELECT name, banned, coalesce(floor(extract(epoch FROM greatest(last_at, asked_at))), 0)::bigint "
	 "AS last_s, nr_files, nr_old FROM fleet.list_hosts($1) ORDER BY 3, 1"},
};
#define NR_PARTS (sizeof(parts) / sizeof(parts[0]))

/* The tables of the page. Names of columns are their heads. */
#define MODULE(name, id) "concat_ws(' ', " name ", left(encode(" id ", 'hex'), 12)) AS \"Module\", "
#define BUILD		 "concat_ws(' ', version, options) AS \"Build\", "
#define COUNT(number)	 "to_char(" number ", 'FM999,999,999,999,999,999')"
#define DAY(day)	 "to_char(date '1970-01-01' + " day ", 'YYYY-MM-DD')"
#define TIME(time)	 "to_char(" time " AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')"
#define GAIN(ratio)	 "to_char(100 * (" ratio " - 1), 'FMS9990.0')"
#define EVIDENCE(log)                                                                              \
	"CASE WHEN abs(" log ") < 7 THEN to_char(exp(" log "), 'FM9990.00')"                       \
	" ELSE to_char(exp(least(greatest(" log ", -600), 600)), '9.9EEEE') END"

static const struct table {
	const char *title, *about, *none, *sql;
} tables[] = {
	{"What the fleet's time goes to", "Samples of all hosts, without caps.",
	 "No host has sent samples in this time.",
	 "SELECT " MODULE("name", "build_id") "to_char(100 * total / sum(total) OVER (), 'FM990.00') || ' %' AS \"Share\", " COUNT(
		 "total") " AS \"Samples\", " COUNT("nr_hosts") " AS \"Hosts\", " DAY("last_day") " AS \"Last day\" FROM given, fleet.list_modules(since, 2147483647) LIMIT 40"},
	{"What builds gained",
	 "Hosts measure both versions in turns. The gain in speed is the median of the hosts' gains, with an "
	 "interval for this median, 99 %, if there are 11 hosts or more.",
	 "No host has measured a build yet.",
	 "SELECT " MODULE("(SELECT f.name FROM fleet.module_facts(module) f)", "substr(module, 9)")
		 BUILD
	 "format('%s %% (%s to %s)', " GAIN("ratio") ", " GAIN("lowest") ", coalesce(" GAIN(
		 "highest") ", '?')) AS \"Gain\", format('%s hosts, %s pairs%s', nr_hosts, pairs, CASE WHEN by_ranks THEN '' "
			    "ELSE '; range of their intervals' END) AS \"Measured by\" FROM fleet.list_gains() LIMIT 60"},
	{"Roll-outs",
	 "A build goes to a share of the hosts first. The evidence of all of them is one number for each "
	 "direction. 1 says nothing; with the usual policy, 200 decides.",
	 "No build was rolled out yet.",
	 "SELECT " MODULE("name", "build_id") BUILD
	 "state AS \"State\", format('%s of %s, %s %%', stage, "
	 "nr_stages, to_char(100 * cutoff, 'FM990.099')) AS \"Stage\", nr_hosts AS \"Hosts\", "
	 "nr_audits AS \"Audits\", " EVIDENCE("log_faster") " AS \"Faster\", " EVIDENCE(
		 "log_slower") " AS \"Slower\", cause AS \"Cause\" FROM fleet.list_canaries() LIMIT 1000"},
	{"What was decided", "Changes of roll-outs, the newest first. Times are UTC.",
	 "Nothing yet.",
	 "SELECT " TIME("at") " AS \"When\", " MODULE("NULL", "substr(module, 9)") BUILD
	 "state AS \"State\", "
	 "stage AS \"Stage\", nr_hosts AS \"Hosts\", cause AS \"Cause\", who AS \"Who\" "
	 "FROM fleet.canary_history ORDER BY at DESC, revision DESC LIMIT 60"},
	{"Versions in use", "Files with more than one version, the newest first.",
	 "No file has more than one version, or hosts send no names.",
	 "SELECT name AS \"File\", left(encode(build_id, 'hex'), 16) AS \"Build-id\", " COUNT("nr_hosts") " AS \"Hosts\", " COUNT(
		 "total") " AS \"Samples\", " DAY("first_day") " AS \"First day\", " DAY("last_day") " AS \"Last day\" FROM (SELECT m.*, count(*) OVER (PARTITION BY name) AS nr "
												     "FROM given, fleet.list_modules(since, 2147483647) m) v WHERE nr > 1 AND name IS NOT NULL "
												     "ORDER BY name, v.first_day DESC LIMIT 100"},
	{"Hosts that lag",
	 "They are silent, or use older versions than other hosts. Times are UTC.", "None.",
	 "SELECT name AS \"Host\", " TIME(
		 "last") " AS \"Heard of last\", format('%s of %s', nr_old, nr_files) "
			 "AS \"Files with an old version\", CASE WHEN banned THEN 'banned' WHEN last IS NULL THEN 'never sent' "
			 "WHEN extract(epoch FROM last) < lag THEN 'silent' ELSE 'old versions' END AS \"State\" "
			 "FROM given, LATERAL (SELECT h.*, greatest(last_at, asked_at) AS last FROM fleet.list_hosts(since) h) l "
			 "WHERE banned OR nr_old > 0 OR last IS NULL OR extract(epoch FROM last) < lag "
			 "ORDER BY last NULLS FIRST, name LIMIT 100"},
};
#define NR_TABLES (sizeof(tables) / sizeof(tables[0]))

/* The rows of each query of a list, `parts' or `tables', in its order. */
struct answers {
	json_t *rows[NR_TABLES];
};

static int read_rows(PGconn *conn, const struct options *o, size_t i, struct answers *answers,
		     struct mp_err *err)
{
	char sql[2048];

	snprintf(sql, sizeof(sql), GIVEN "%s", o->json ? parts[i].sql : tables[i].sql);
	return md_pg_rows(conn, "read the fleet", &answers->rows[i], err, sql, "ii",
			  o->since_s / MP_SECONDS_PER_DAY, o->lag_since_s);
}

/* ---- writing ------------------------------------------------------------------------------- */

static int print_json(const struct answers *answers)
{
	json_t *root = md_cli_json_new("fleet-report");

	for (size_t i = 0; i < NR_PARTS; i++)
		json_object_set(root, parts[i].name, answers->rows[i]);
	return md_cli_json_print(root);
}

static void put_cell(FILE *out, const json_t *value)
{
	static const char *const bad[] = {"withdrawn", "banned", "never sent", "silent"};
	const char *text = json_string_value(value), *shown;
	char number[32] = "";

	if (json_is_number(value))
		snprintf(number, sizeof(number), "%.0f", json_number_value(value));
	shown = text ? text : number;
	if (text && (!strcmp(text, "released") || md_cli_find_word(text, bad, 4) >= 0))
		mp_svg_put(out, "<td><span class=\"state %s\">%t</span></td>",
			   *text == 'r' ? "good" : "bad", text);
	else
		mp_svg_put(out, "<td%s>%t</td>", strlen(shown) > 24 ? "" : " class=\"num\"", shown);
}

static void put_table(FILE *out, const struct table *table, json_t *rows)
{
	const char *head;
	json_t *row, *value;
	size_t i;

	mp_svg_put(out, "<h2>%t</h2>\n<p class=\"soft\">%t</p>\n", table->title,
		   json_array_size(rows) ? table->about : table->none);
	if (!json_array_size(rows))
		return;
	fputs("<div class=\"card\"><table><thead><tr>", out);
	json_object_foreach(json_array_get(rows, 0), head, value)
		mp_svg_put(out, "<th>%t</th>", head);
	fputs("</tr></thead><tbody>\n", out);
	json_array_foreach(rows, i, row)
	{
		fputs("<tr>", out);
		json_object_foreach(row, head, value) put_cell(out, value);
		fputs("</tr>\n", out);
	}
	fputs("</tbody></table></div>\n", out);
}

/* On narrow screens these tables keep their heads and are moved sideways. */
static const char own_style[] =
	"@media(max-width:720px){thead{display:table-header-group}tr{display:table-row}"
	"td,td:empty{display:table-cell;padding:7px 14px 7px 0}td:nth-child(4)::after{content:none}}";

static void put_page(const struct options *o, const struct answers *answers, FILE *out)
{
	char now[32], since[32];

	mp_svg_put(out,
		   "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		   "style-src 'unsafe-inline'\">\n"
		   "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
		   "<title>Morph: the fleet</title>\n<style>%s%s</style></head>\n<body><main>\n"
		   "<h1>The fleet</h1>\n<p class=\"soft\">Samples since %t. Written %t.</p>\n",
		   md_report_style, own_style, md_cli_format_time(o->since_s, since),
		   md_cli_format_time((int64_t)time(NULL), now));
	for (size_t i = 0; i < NR_TABLES; i++)
		put_table(out, &tables[i], answers->rows[i]);
	mp_svg_put(out, "<footer><p>Morph %t</p></footer>\n</main></body></html>\n",
		   mp_program_version());
}

static int write_page(const struct options *o, const struct answers *answers)
{
	char path[PATH_MAX];
	const char *output = o->output;
	struct mp_err err = {""};
	struct mp_outfile out;
	struct stat st;

	if (output && !stat(output, &st) && S_ISDIR(st.st_mode)) {
		if (snprintf(path, sizeof(path), "%s/index.html", output) >= (int)sizeof(path))
			return md_cli_fail("%s: the name is too long", output);
		output = path;
	}
	if (mp_outfile_open(output, md_interrupt_unlinks, &out, &err))
		return md_cli_fail("%s", err.msg);
	put_page(o, answers, out.file);
	if (mp_outfile_commit(&out, &err))
		return md_cli_fail("%s", err.msg);
	return md_cli_finish(MP_EXIT_DONE);
}

int md_fleet_command_report(int argc, char **argv)
{
	const int64_t now_s = time(NULL);
	struct options o = {.since_s = now_s - SINCE_DAYS * MP_SECONDS_PER_DAY,
			    .lag_since_s = now_s - LAG_DAYS * MP_SECONDS_PER_DAY};
	struct answers answers = {0};
	struct mp_err err = {""};
	PGconn *conn;
	int r = md_fleet_start(&usage, argc, argv, &o, &conn);

	if (r)
		return r;
	for (size_t i = 0; i < (o.json ? NR_PARTS : NR_TABLES) && !r; i++)
		r = read_rows(conn, &o, i, &answers, &err);
	PQfinish(conn);
	if (r)
		r = md_fleet_failed(r, &err);
	else
		r = o.json ? print_json(&answers) : write_page(&o, &answers);
	for (size_t i = 0; i < NR_TABLES; i++)
		json_decref(answers.rows[i]);
	return r;
}
