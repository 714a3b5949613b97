// SPDX-License-Identifier: Apache-2.0
/* report - the parts of the page; see report.h. */
#include "daemon/morph/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/morph/report_style.h"
#include "daemon/stats/defaults.h"
#include "daemon/morph/wording.h"
#include "libprof/cli/svg.h"

#define MAX_PROGRAMS 25
#define MAX_HISTORY  60

/* The directory in a soft colour, then the name. */
static void put_path(FILE *out, const char *path)
{
	const char *name = basename(path);
	char *dir = strndup(path, (size_t)(name - path));

	mp_svg_put(out, "<span class=\"dir\">%t</span><wbr>%t", dir ? dir : "", name);
	free(dir);
}

static const char *state_class(const struct md_machine_program *p)
{
	if (md_machine_is_optimised(p))
		return "state good";
	if (!p->job)
		return "state soft";
	if (md_wording_has_nothing_yet(p))
		return "state wait";
	switch (p->job->state) {
	case MP_JOB_FAILED:
	case MP_JOB_REFUSED:
	case MP_JOB_UNDONE:
	case MP_JOB_NOT_FASTER: return "state bad";
	case MP_JOB_GONE: return "state soft";
	default: return "state wait";
	}
}

/* ---- heading ------------------------------------------------------------------------------------ */

static void put_head(const struct md_report *r, FILE *out)
{
	char when[MD_WORDING_MAX], start[MD_WORDING_MAX];

	mp_svg_put(out,
		   "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		   "style-src 'unsafe-inline'; img-src data:\">\n"
		   "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
		   "<title>Morph on %t</title>\n<style>%s</style></head>\n<body><main>\n",
		   r->host, md_report_style);
	mp_svg_put(out,
		   "<h1>Morph on %t</h1>\n<p class=\"soft\">Samples since %t. Written %t.</p>\n",
		   r->host, md_wording_time(r->machine->start_s, start),
		   md_wording_time(r->when_s, when));
}

static void put_tile(FILE *out, const char *value, const char *what)
{
	mp_svg_put(out, "<div class=\"tile\"><b>%t</b><span>%t</span></div>\n", value, what);
}

static void put_tiles(const struct md_report *r, FILE *out)
{
	const struct md_saved *saved = r->saved;
	char value[64], what[400];
	size_t nr = 0;

	for (size_t i = 0; i < r->machine->nr_programs; i++)
		nr += md_machine_is_optimised(&r->machine->programs[i]);
	fputs("<div class=\"tiles\">\n", out);
	snprintf(value, sizeof(value), "%.2f %%", md_saved_percent(&saved->all, saved->all.saved));
	snprintf(what, sizeof(what), "of the machine's CPU time is saved (%.2f to %.2f), %s",
		 md_saved_percent(&saved->all, saved->all.least),
		 md_saved_percent(&saved->all, saved->all.most),
		 saved->whole ? "in the last 7 days" : "since samples are taken");
	if (saved->nr_programs && !saved->nr_measured)
		put_tile(out, "Not measured", "what the optimised programs save");
	else
		put_tile(out, value, what);
	snprintf(value, sizeof(value), "%zu", nr);
	put_tile(out, value, nr == 1 ? "program runs optimised" : "programs run optimised");
	put_tile(out, mp_svg_format_count(r->machine->nr_samples, value), "samples");
	if (r->collector->runs) {
		snprintf(value, sizeof(value), "%.2f %%", r->collector->cpu_percent);
		put_tile(out, value, "of one CPU is what collecting costs");
	} else {
		snprintf(what, sizeof(what), "%s", r->collector->why);
		put_tile(out, "Not collecting", what);
	}
	fputs("</div>\n", out);
}

/* ---- programs ------------------------------------------------------------------------------------ */

/* A bar of the share; the part that Morph could move is in colour. */
static void put_bar(FILE *out, const struct md_machine_program *p, double largest)
{
	double width = largest > 0 ? 150 * p->share / largest : 0;

	mp_svg_put(out,
		   "<svg width=\"150\" height=\"12\" role=\"img\" aria-label=\"share\"><rect "
		   "class=\"track\" width=\"%n\" height=\"12\" rx=\"3\"/>",
		   width < 2 ? 2.0 : width);
	if (p->estimated)
		mp_svg_put(out, "<rect class=\"move\" width=\"%n\" height=\"12\" rx=\"3\"/>",
			   width * p->saving.movable);
	fputs("</svg>", out);
}

static void put_program(FILE *out, const struct md_machine_program *p, double largest)
{
	char text[MD_WORDING_MAX];

	fputs("<tr><td class=\"path\">", out);
	put_path(out, p->path);
	fputs("</td><td>", out);
	put_bar(out, p, largest);
	snprintf(text, sizeof(text), "%.2f %%", 100 * p->share);
	mp_svg_put(out, "</td><td class=\"num\">%t</td><td class=\"num\">", text);
	if (p->estimated)
		snprintf(text, sizeof(text), "%.0f %%", 100 * p->saving.movable);
	mp_svg_put(out, "%t</td><td class=\"num\">", p->estimated ? text : "");
	if (md_machine_is_optimised(p) && p->gain.ratio > 0)
		mp_svg_put(out, "%t", md_wording_gain(&p->gain, text));
	else if (p->estimated && !p->denied)
		mp_svg_put(out, "<span class=\"soft\">%t</span>",
			   md_wording_worth(&p->worth, text));
	mp_svg_put(out, "</td><td><span class=\"%s\">%t</span></td></tr>\n", state_class(p),
		   md_wording_state(p));
}

static void put_programs(const struct md_report *r, FILE *out)
{
	const struct md_machine *m = r->machine;
	double largest = m->nr_programs ? m->programs[0].share : 0;

	fputs("<h2>What the time goes to</h2>\n<p>Each bar is a program's or library's share of "
	      "all samples; in colour, the part of it that Morph could move. The gain in grey is "
	      "expected, in percent of the machine's time; nine of ten gains lie in the brackets. "
	      "Other gains were measured, in percent of the program's own time.</p>\n<div "
	      "class=\"card\"><table><thead><tr><th>Program</th><th></th><th>Share</th>"
	      "<th>Movable</th><th>Gain</th><th>State</th></tr></thead><tbody>\n",
	      out);
	for (size_t i = 0; i < m->nr_programs && i < MAX_PROGRAMS; i++)
		if (m->programs[i].share >= MD_MORPH_LEAST_SHARE || m->programs[i].job)
			put_program(out, &m->programs[i], largest);
	fputs("</tbody></table></div>\n", out);
}

/* ---- gains --------------------------------------------------------------------------------------- */

#define PLOT_WIDTH 460.0

struct scale {
	double low, high; /* percent */
};

static double place(const struct scale *s, double percent)
{
	return 8 + (PLOT_WIDTH - 16) * (percent - s->low) / (s->high - s->low);
}

static bool is_measured(const struct md_machine_program *p)
{
	return p->gain.ratio > 0 && p->gain.lowest > 0;
}

static void put_interval(FILE *out, const struct scale *s, const struct mp_job_gain *gain)
{
	const char *worse = gain->ratio < 1 ? " worse" : "";
	double low = place(s, 100 * (gain->lowest - 1)), high = place(s, 100 * (gain->highest - 1));

	mp_svg_put(out,
		   "<svg width=\"%n\" height=\"22\"><line class=\"axis\" x1=\"%n\" x2=\"%n\" "
		   "y1=\"0\" y2=\"22\"/><line class=\"whisker%s\" x1=\"%n\" x2=\"%n\" y1=\"11\" "
		   "y2=\"11\"/><circle class=\"dot%s\" cx=\"%n\" cy=\"11\" r=\"5\"/></svg>",
		   PLOT_WIDTH, place(s, 0), place(s, 0), worse, low, high, worse,
		   place(s, 100 * (gain->ratio - 1)));
}

static void put_scale(FILE *out, const struct scale *s)
{
	double step = s->high - s->low > 40 ? 10 : s->high - s->low > 15 ? 5 : 2;
	char text[32];

	mp_svg_put(out, "<svg width=\"%n\" height=\"18\">", PLOT_WIDTH);
	for (double at = ceil(s->low / step) * step; at <= s->high + 1e-9; at += step) {
		snprintf(text, sizeof(text), "%+.0f %%", at);
		mp_svg_put(
			out,
			"<text class=\"tick\" x=\"%n\" y=\"13\" text-anchor=\"middle\">%t</text>",
			fmin(fmax(place(s, at), 18), PLOT_WIDTH - 18),
			fabs(at) < 1e-9 ? "0" : text);
	}
	fputs("</svg>", out);
}

static void put_gains(const struct md_report *r, FILE *out)
{
	struct scale s = {-2, 4};
	char text[MD_WORDING_MAX];
	size_t nr = 0;

	for (size_t i = 0; i < r->machine->nr_programs; i++) {
		const struct md_machine_program *p = &r->machine->programs[i];

		if (!is_measured(p))
			continue;
		nr++;
		s.low = fmax(fmin(s.low, 100 * (p->gain.lowest - 1) - 1), -60);
		s.high = fmin(fmax(s.high, 100 * (p->gain.highest - 1) + 1), 200);
	}
	fputs("<h2>What was measured</h2>\n", out);
	if (!nr) {
		fputs("<p class=\"soft\">No program was measured yet.</p>\n", out);
		return;
	}
	fputs("<p>Audits run both versions in turns. The dot is the measured gain in speed, the "
	      "line its interval.</p>\n<div class=\"card\"><table><tbody>\n",
	      out);
	for (size_t i = 0; i < r->machine->nr_programs; i++) {
		const struct md_machine_program *p = &r->machine->programs[i];

		if (!is_measured(p))
			continue;
		fputs("<tr><td class=\"path\">", out);
		put_path(out, p->path);
		fputs("</td><td>", out);
		put_interval(out, &s, &p->gain);
		mp_svg_put(out, "</td><td class=\"num\">%t</td></tr>\n",
			   md_wording_gain(&p->gain, text));
	}
	fputs("<tr><td></td><td>", out);
	put_scale(out, &s);
	fputs("</td><td></td></tr></tbody></table></div>\n", out);
}

/* ---- next, history, pictures, end ----------------------------------------------------------------- */

static void put_next(const struct md_report *r, FILE *out)
{
	const struct md_machine_program **next = NULL;
	size_t nr = md_machine_order(r->machine, &next);
	char text[MD_WORDING_MAX];

	fputs("<h2>What is next</h2>\n", out);
	if (!nr)
		fputs("<p class=\"soft\">Nothing: no program with enough samples is left.</p>\n",
		      out);
	else
		fputs("<div class=\"card\"><table><tbody>\n", out);
	for (size_t i = 0; i < nr && i < 5; i++) {
		fputs("<tr><td class=\"path\">", out);
		put_path(out, next[i]->path);
		mp_svg_put(
			out,
			"</td><td class=\"num\">%t</td><td><code>morph optimize %t</code></td></tr>\n",
			next[i]->estimated ? md_wording_worth(&next[i]->worth, text)
					   : "no estimate",
			next[i]->path);
	}
	if (nr)
		fputs("</tbody></table></div>\n", out);
	free(next);
}

static const char *decision_class(const struct mp_decision *d)
{
	switch (d->state) {
	case MP_JOB_ADOPTED:
	case MP_JOB_KEPT:
	case MP_JOB_AUDITED: return "good";
	case MP_JOB_FAILED:
	case MP_JOB_REFUSED:
	case MP_JOB_UNDONE:
	case MP_JOB_UNDOING:
	case MP_JOB_NOT_FASTER: return "bad";
	default: return "plain";
	}
}

static void put_history(const struct md_report *r, FILE *out)
{
	char text[MD_WORDING_MAX];
	size_t shown = 0;

	fputs("<h2>What was decided</h2>\n", out);
	if (!r->nr_decisions) {
		fputs("<p class=\"soft\">Nothing yet.</p>\n", out);
		return;
	}
	fputs("<ol class=\"history\">\n", out);
	for (size_t i = r->nr_decisions; i-- > 0 && shown < MAX_HISTORY; shown++) {
		const struct mp_decision *d = &r->decisions[i];

		mp_svg_put(out, "<li class=\"%s\"><span class=\"soft num\">%t</span> <b>%t</b> ",
			   decision_class(d), md_wording_time(d->when_s, text), d->step);
		put_path(out, d->path);
		mp_svg_put(out, "<br><span class=\"soft\">%t%s%t", d->verdict,
			   d->reason[0] ? ": " : "", d->reason);
		if (d->gain.ratio > 0 && !strcmp(d->step, "audit"))
			mp_svg_put(out, "; %t", md_wording_gain(&d->gain, text));
		fputs("</span></li>\n", out);
	}
	fputs("</ol>\n", out);
}

/* As an image of its own, the picture cannot touch the page. */
static void put_base64(FILE *out, const char *data, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < size; i += 3) {
		uint32_t bits = (uint32_t)(uint8_t)data[i] << 16;

		bits |= i + 1 < size ? (uint32_t)(uint8_t)data[i + 1] << 8 : 0;
		bits |= i + 2 < size ? (uint8_t)data[i + 2] : 0;
		fputc(digits[bits >> 18], out);
		fputc(digits[bits >> 12 & 63], out);
		fputc(i + 1 < size ? digits[bits >> 6 & 63] : '=', out);
		fputc(i + 2 < size ? digits[bits & 63] : '=', out);
	}
}

static void put_pictures(const struct md_report *r, FILE *out)
{
	if (!r->nr_pictures)
		return;
	fputs("<h2>Where the code that runs lies</h2>\n<p>Each row is a page of 4 KiB, each cell a "
	      "cache line; darker is executed more.</p>\n",
	      out);
	for (size_t i = 0; i < r->nr_pictures; i++) {
		mp_svg_put(out, "<details%s><summary>", i ? "" : " open");
		put_path(out, r->pictures[i].path);
		mp_svg_put(out,
			   "%s</summary><div class=\"picture\"><img alt=\"heat map\" "
			   "src=\"data:image/svg+xml;base64,",
			   r->pictures[i].after ? ", before and after" : "");
		put_base64(out, r->pictures[i].svg, r->pictures[i].size);
		fputs("\"></div></details>\n", out);
	}
}

static void put_end(const struct md_report *r, FILE *out)
{
	const struct md_effect *e = &r->machine->effect;
	char text[400];

	snprintf(text, sizeof(text),
		 "Expected gains assume %.3f percent of a program's time for each taken branch in "
		 "1,000 instructions that is saved (standard deviation %.3f), from %zu audits of "
		 "this machine and from Morph's benchmarks. Only an audit tells.",
		 e->slope, e->slope_sd, e->nr_here);
	mp_svg_put(out, "<footer><p>%t</p><p>Morph %t</p></footer>\n</main></body></html>\n", text,
		   r->version);
}

void md_report_write(const struct md_report *report, FILE *out)
{
	put_head(report, out);
	put_tiles(report, out);
	md_report_put_week(report->saved, out);
	put_programs(report, out);
	put_gains(report, out);
	put_next(report, out);
	put_history(report, out);
	put_pictures(report, out);
	put_end(report, out);
}
