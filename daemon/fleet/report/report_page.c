// SPDX-License-Identifier: Apache-2.0
/* report_page - the parts of the page; see report_page.h. */
#include "daemon/fleet/report/report_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fleet/report/report_gains.h"
#include "daemon/fleet/pg.h"
#include "daemon/morph/report_style.h"
#include "daemon/morph/wording.h"
#include "libprof/cli/svg.h"

#define MAX_MODULES 40
#define MAX_FILES   30
#define MAX_HISTORY 60
#define MAX_HOSTS   100
#define DAY_S	    86400

/* On narrow screens these tables keep their heads and are moved sideways. */
static const char own_style[] =
	"@media(max-width:720px){thead{display:table-header-group}tr{display:table-row}"
	"td,td:empty{display:table-cell;padding:7px 14px 7px 0}td.path{min-width:140px}"
	"td:nth-child(4)::after{content:none}}";

static const char *number(double value, char buf[32])
{
	return mp_svg_format_count(value > 0 ? (uint64_t)value : 0, buf);
}

static const char *day(const json_t *row, const char *column, char buf[MD_WORDING_MAX])
{
	md_wording_time((int64_t)md_row_number(row, column) * DAY_S + DAY_S / 2, buf);
	buf[10] = '\0'; /* without the time of the day */
	return buf;
}

void md_fleet_report_put_module(FILE *out, const json_t *row)
{
	char id[13];

	snprintf(id, sizeof(id), "%s", md_row_text(row, "build_id"));
	if (md_row_text(row, "name")[0])
		mp_svg_put(out, "%t <span class=\"dir\">%t</span>", md_row_text(row, "name"), id);
	else
		mp_svg_put(out, "<span class=\"dir\">build-id</span> %t", id);
}

/* ---- heading ------------------------------------------------------------------------------- */

static void put_head(const struct md_fleet_report *r, FILE *out)
{
	char when[MD_WORDING_MAX], since[MD_WORDING_MAX];

	mp_svg_put(out,
		   "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		   "style-src 'unsafe-inline'\">\n"
		   "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
		   "<title>Morph: the fleet</title>\n<style>%s%s</style></head>\n<body><main>\n",
		   md_report_style, own_style);
	mp_svg_put(out, "<h1>The fleet</h1>\n<p class=\"soft\">Samples since %t. Written %t.</p>\n",
		   md_wording_time(r->since_s, since), md_wording_time(r->now_s, when));
}

static void put_tile(FILE *out, double value, const char *what)
{
	char text[32];

	mp_svg_put(out, "<div class=\"tile\"><b>%t</b><span>%t</span></div>\n", number(value, text),
		   what);
}

static double sum(const json_t *rows, const char *column)
{
	double total = 0;

	for (size_t i = 0; i < json_array_size(rows); i++)
		total += md_row_number(json_array_get(rows, i), column);
	return total;
}

static size_t count(const json_t *rows, const char *column, const char *text)
{
	size_t nr = 0;

	for (size_t i = 0; i < json_array_size(rows); i++)
		nr += !strcmp(md_row_text(json_array_get(rows, i), column), text);
	return nr;
}

static bool is_silent(const struct md_fleet_report *r, const json_t *host)
{
	return (double)r->now_s - md_row_number(host, "last_s") > (double)r->lag_s;
}

static void put_tiles(const struct md_fleet_report *r, FILE *out)
{
	size_t nr = json_array_size(r->hosts), nr_silent = 0;

	for (size_t i = 0; i < nr; i++)
		nr_silent += is_silent(r, json_array_get(r->hosts, i));
	fputs("<div class=\"tiles\">\n", out);
	put_tile(out, (double)nr, nr == 1 ? "host" : "hosts");
	put_tile(out, (double)nr_silent, "of them were silent for some time");
	put_tile(out, (double)json_array_size(r->modules), "programs and libraries with samples");
	put_tile(out, sum(r->modules, "total"), "samples");
	put_tile(out,
		 (double)(count(r->canaries, "state", "running") +
			  count(r->canaries, "state", "held")),
		 "builds are being rolled out");
	put_tile(out, (double)count(r->canaries, "state", "released"), "builds on all hosts");
	put_tile(out, (double)count(r->canaries, "state", "withdrawn"), "builds withdrawn");
	fputs("</div>\n", out);
}

/* ---- modules ------------------------------------------------------------------------------- */

static void put_bar(FILE *out, double share, double largest)
{
	double width = largest > 0 ? 150 * share / largest : 0;

	mp_svg_put(out,
		   "<svg width=\"150\" height=\"12\" role=\"img\" aria-label=\"share\"><rect "
		   "class=\"move\" width=\"%n\" height=\"12\" rx=\"3\"/></svg>",
		   width < 2 ? 2.0 : width);
}

static void put_modules(const struct md_fleet_report *r, FILE *out)
{
	double total = sum(r->modules, "total"),
	       largest = md_row_number(json_array_get(r->modules, 0), "total");
	char text[MD_WORDING_MAX];

	fputs("<h2>What the fleet's time goes to</h2>\n<p>Each bar is a program's or library's "
	      "share of the samples of all hosts, without caps.</p>\n<div class=\"card\"><table>"
	      "<thead><tr><th>Module</th><th></th><th>Share</th><th>Samples</th><th>Hosts</th>"
	      "<th>Last day</th></tr></thead><tbody>\n",
	      out);
	for (size_t i = 0; i < json_array_size(r->modules) && i < MAX_MODULES; i++) {
		const json_t *row = json_array_get(r->modules, i);
		double samples = md_row_number(row, "total");

		fputs("<tr><td class=\"path\">", out);
		md_fleet_report_put_module(out, row);
		fputs("</td><td>", out);
		put_bar(out, samples, largest);
		mp_svg_put(out, "</td><td class=\"num\">%t</td>",
			   mp_svg_format_share(total > 0 ? samples / total : 0, text));
		mp_svg_put(out, "<td class=\"num\">%t</td>", number(samples, text));
		mp_svg_put(out, "<td class=\"num\">%t</td>",
			   number(md_row_number(row, "nr_hosts"), text));
		mp_svg_put(out, "<td class=\"num\">%t</td></tr>\n", day(row, "last_day", text));
	}
	fputs("</tbody></table></div>\n", out);
}

/* ---- versions ------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	int order = strcmp(md_row_text(x, "name"), md_row_text(y, "name"));
	double dx = md_row_number(x, "first_day"), dy = md_row_number(y, "first_day");

	return order ? order : (dx < dy) - (dx > dy);
}

static void put_version(FILE *out, const json_t *row, bool first)
{
	char text[MD_WORDING_MAX], id[17];

	snprintf(id, sizeof(id), "%s", md_row_text(row, "build_id"));
	mp_svg_put(out, "<tr><td class=\"path\">%t</td><td>%t</td>",
		   first ? md_row_text(row, "name") : "", id);
	mp_svg_put(out, "<td class=\"num\">%t</td>", number(md_row_number(row, "nr_hosts"), text));
	mp_svg_put(out, "<td class=\"num\">%t</td>", number(md_row_number(row, "total"), text));
	mp_svg_put(out, "<td class=\"num\">%t</td>", day(row, "first_day", text));
	mp_svg_put(out, "<td class=\"num\">%t</td></tr>\n", day(row, "last_day", text));
}

/* Return: rows from @i on with one name. */
static size_t same_name(json_t **rows, size_t nr, size_t i)
{
	size_t end = i + 1;

	while (end < nr && !strcmp(md_row_text(rows[end], "name"), md_row_text(rows[i], "name")))
		end++;
	return end - i;
}

/* Files of which several versions are in use, or were in this time. Names are hashes, unless hosts send them. */
static void put_versions(const struct md_fleet_report *r, FILE *out)
{
	size_t nr = json_array_size(r->modules), nr_files = 0, same;
	json_t **rows = calloc(nr + 1, sizeof(*rows));

	fputs("<h2>Versions in use</h2>\n", out);
	for (size_t i = 0; rows && i < nr; i++)
		rows[i] = json_array_get(r->modules, i);
	if (rows)
		qsort(rows, nr, sizeof(*rows), by_name);
	for (size_t i = 0; rows && i < nr && nr_files < MAX_FILES; i += same) {
		same = same_name(rows, nr, i);
		if (same < 2 || !md_row_text(rows[i], "name")[0])
			continue;
		if (!nr_files++)
			fputs("<p>Files with more than one version, the newest first.</p>\n<div "
			      "class=\"card\"><table><thead><tr><th>File</th><th>Build-id</th>"
			      "<th>Hosts</th><th>Samples</th><th>First day</th><th>Last day</th>"
			      "</tr></thead><tbody>\n",
			      out);
		for (size_t j = 0; j < same; j++)
			put_version(out, rows[i + j], !j);
	}
	fputs(nr_files ? "</tbody></table></div>\n"
		       : "<p class=\"soft\">No file has more than one version, or hosts send no "
			 "names.</p>\n",
	      out);
	free(rows);
}

/* ---- roll-outs ----------------------------------------------------------------------------- */

static const char *state_class(const char *state)
{
	return !strcmp(state, "released")    ? "state good"
	       : !strcmp(state, "withdrawn") ? "state bad"
					     : "state wait";
}

/* "7.2 (200 decides)", from the logarithm. */
static const char *evidence(double log_e, char *buf, size_t size)
{
	double e = exp(fmin(log_e, 700));

	snprintf(buf, size, e < 10000 && e >= 0.005 ? "%.2f" : "%.0e", e);
	return buf;
}

static void put_canary(FILE *out, const json_t *row)
{
	const char *state = md_row_text(row, "state");
	char text[64];

	fputs("<tr><td class=\"path\">", out);
	md_fleet_report_put_module(out, row);
	mp_svg_put(out, "<br><span class=\"soft\">Morph %t %t</span></td>",
		   md_row_text(row, "version"), md_row_text(row, "options"));
	snprintf(text, sizeof(text), "%.0f of %.0f, %.3g %%", md_row_number(row, "stage"),
		 md_row_number(row, "nr_stages"), 100 * md_row_number(row, "share"));
	mp_svg_put(out, "<td><span class=\"%s\">%t</span></td><td class=\"num\">%t</td>",
		   state_class(state), state, text);
	snprintf(text, sizeof(text), "%.0f, %.0f", md_row_number(row, "nr_hosts"),
		 md_row_number(row, "nr_audits"));
	mp_svg_put(out, "<td class=\"num\">%t</td>", text);
	mp_svg_put(out, "<td class=\"num\">%t</td>",
		   evidence(md_row_number(row, "log_faster"), text, sizeof(text)));
	mp_svg_put(out, "<td class=\"num\">%t</td><td>%t</td></tr>\n",
		   evidence(md_row_number(row, "log_slower"), text, sizeof(text)),
		   md_row_text(row, "cause"));
}

static void put_canaries(const struct md_fleet_report *r, FILE *out)
{
	fputs("<h2>Roll-outs</h2>\n", out);
	if (!json_array_size(r->canaries)) {
		fputs("<p class=\"soft\">No build was rolled out yet.</p>\n", out);
		return;
	}
	fputs("<p>A build goes to a share of the hosts first. The evidence of all of them is one "
	      "number for each direction. 1 says nothing; with the usual policy, 200 decides.</p>\n"
	      "<div class=\"card\"><table><thead><tr><th>Build</th><th>State</th><th>Stage</th>"
	      "<th>Hosts, audits</th><th>Faster</th><th>Slower</th><th>Cause</th></tr></thead>"
	      "<tbody>\n",
	      out);
	for (size_t i = 0; i < json_array_size(r->canaries); i++)
		put_canary(out, json_array_get(r->canaries, i));
	fputs("</tbody></table></div>\n", out);
}

static void put_history(const struct md_fleet_report *r, FILE *out)
{
	char text[MD_WORDING_MAX], id[13];

	if (!json_array_size(r->history))
		return;
	fputs("<h2>What was decided</h2>\n<ol class=\"history\">\n", out);
	for (size_t i = 0; i < json_array_size(r->history) && i < MAX_HISTORY; i++) {
		const json_t *row = json_array_get(r->history, i);
		const char *state = md_row_text(row, "state");

		snprintf(id, sizeof(id), "%s", md_row_text(row, "build_id"));
		mp_svg_put(out, "<li class=\"%s\"><span class=\"soft num\">%t</span> <b>%t</b> %t ",
			   state_class(state) + strlen("state "),
			   md_wording_time((int64_t)md_row_number(row, "at_s"), text), state, id);
		mp_svg_put(out, "<span class=\"soft\">%t %t; ", md_row_text(row, "version"),
			   md_row_text(row, "options"));
		snprintf(text, sizeof(text), "stage %.0f, %.0f hosts", md_row_number(row, "stage"),
			 md_row_number(row, "nr_hosts"));
		mp_svg_put(out, "%t; %t (%t)</span></li>\n", text, md_row_text(row, "cause"),
			   md_row_text(row, "who"));
	}
	fputs("</ol>\n", out);
}

/* ---- hosts --------------------------------------------------------------------------------- */

static void put_host(FILE *out, const struct md_fleet_report *r, const json_t *row)
{
	bool banned = json_is_true(json_object_get(row, "banned")), silent = is_silent(r, row);
	char text[MD_WORDING_MAX];

	mp_svg_put(out, "<tr><td class=\"path\">%t</td><td class=\"num\">%t</td>",
		   md_row_text(row, "name"),
		   md_wording_time((int64_t)md_row_number(row, "last_s"), text));
	snprintf(text, sizeof(text), "%.0f of %.0f", md_row_number(row, "nr_old"),
		 md_row_number(row, "nr_files"));
	mp_svg_put(out, "<td class=\"num\">%t</td><td><span class=\"%s\">%t</span></td></tr>\n",
		   text, banned || silent ? "state bad" : "state wait",
		   banned					   ? "banned"
		   : silent && !(md_row_number(row, "last_s") > 0) ? "never sent"
		   : silent					   ? "silent"
								   : "old versions");
}

static void put_hosts(const struct md_fleet_report *r, FILE *out)
{
	size_t nr = 0;
	char text[96];

	fputs("<h2>Hosts that lag</h2>\n", out);
	for (size_t i = 0; i < json_array_size(r->hosts); i++) {
		const json_t *row = json_array_get(r->hosts, i);

		if (!is_silent(r, row) && !(md_row_number(row, "nr_old") > 0) &&
		    !json_is_true(json_object_get(row, "banned")))
			continue;
		if (!nr)
			fputs("<div class=\"card\"><table><thead><tr><th>Host</th><th>Heard of last</th>"
			      "<th>Files with an old version</th><th>State</th></tr></thead><tbody>\n",
			      out);
		if (nr++ < MAX_HOSTS)
			put_host(out, r, row);
	}
	fputs(nr ? "</tbody></table></div>\n" : "<p class=\"soft\">None.</p>\n", out);
	if (nr > MAX_HOSTS) {
		snprintf(text, sizeof(text), "And %zu more.", nr - MAX_HOSTS);
		mp_svg_put(out, "<p>%t</p>\n", text);
	}
}

void md_fleet_report_write(const struct md_fleet_report *r, FILE *out)
{
	put_head(r, out);
	put_tiles(r, out);
	put_modules(r, out);
	md_fleet_report_put_gains(r, out);
	put_canaries(r, out);
	put_history(r, out);
	put_versions(r, out);
	put_hosts(r, out);
	mp_svg_put(out, "<footer><p>Morph %t</p></footer>\n</main></body></html>\n", r->version);
}
