// SPDX-License-Identifier: Apache-2.0
/*
 * report_saved - what was saved, in two forms: a picture of the last days for the page, and numbers for
 * monitoring in the text format of Prometheus; see report.h.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/morph/report.h"
#include "libprof/cli/json.h"
#include "libprof/cli/svg.h"

/* ---- picture ---------------------------------------------------------------------------------- */

#define BAR_WIDTH  44.0
#define BAR_STEP   66.0
#define BAR_HEIGHT 150.0
#define LEFT	   10.0
#define TOP	   20.0

static const char *format_amount(const struct md_saved *saved, double amount, char *buf)
{
	char number[32];

	if (amount > 0 && amount < 10 && saved->has_rate)
		snprintf(number, sizeof(number), "%.1f", amount);
	else
		mp_svg_format_count(amount > 0 ? (uint64_t)llround(amount) : 0, number);
	snprintf(buf, 48, "%s%s", number, saved->has_rate ? " s" : "");
	return buf;
}

/* Two bars: the CPU time that was used, and above it the time that the originals would have taken. */
static void put_day(FILE *out, const struct md_saved *saved, size_t d, double largest)
{
	const struct md_saved_time *day = &saved->days[d];
	double x = LEFT + (double)d * BAR_STEP, foot = TOP + BAR_HEIGHT;
	double used = BAR_HEIGHT * day->used / largest;
	double more = day->saved > 0 ? BAR_HEIGHT * day->saved / largest : 0;
	time_t when = (time_t)((saved->first_day + (int64_t)d) * MP_SECONDS_PER_DAY);
	char date[16] = "", a[48], b[48];
	struct tm tm;

	if (gmtime_r(&when, &tm))
		strftime(date, sizeof(date), "%d %b", &tm);
	mp_svg_put(out,
		   "<g><title>%t: %t used, %t saved</title><rect class=\"track\" x=\"%n\" "
		   "y=\"%n\" width=\"%n\" height=\"%n\"/>",
		   date, format_amount(saved, day->used, a), format_amount(saved, day->saved, b), x,
		   foot - used, BAR_WIDTH, used);
	if (more > 0)
		mp_svg_put(
			out,
			"<rect class=\"dot\" x=\"%n\" y=\"%n\" width=\"%n\" height=\"%n\"/>"
			"<text class=\"tick\" x=\"%n\" y=\"%n\" text-anchor=\"middle\">%t</text>",
			x, foot - used - more, BAR_WIDTH, more, x + BAR_WIDTH / 2,
			foot - used - more - 5, b);
	mp_svg_put(out,
		   "<text class=\"tick\" x=\"%n\" y=\"%n\" text-anchor=\"middle\">%t</text></g>\n",
		   x + BAR_WIDTH / 2, foot + 16, date);
}

void md_report_put_week(const struct md_saved *saved, FILE *out)
{
	double largest = 0;

	for (size_t d = 0; d < MD_SAVED_DAYS; d++)
		largest = fmax(largest, saved->days[d].used + fmax(saved->days[d].saved, 0));
	if (!saved->nr_measured || largest <= 0)
		return;
	mp_svg_put(out,
		   "<h2>What was saved</h2>\n<p>Each bar is a day (UTC): %s that the machine used, "
		   "and in colour what the originals of optimised programs would have taken "
		   "besides.</p>\n<div class=\"card\"><svg class=\"week\" width=\"%n\" "
		   "height=\"%n\" role=\"img\" aria-label=\"used and saved, by day\">\n",
		   saved->has_rate ? "seconds of CPU time" : "samples",
		   2 * LEFT + BAR_STEP * MD_SAVED_DAYS, TOP + BAR_HEIGHT + 24);
	for (size_t d = 0; d < MD_SAVED_DAYS; d++)
		put_day(out, saved, d, largest);
	fputs("</svg></div>\n", out);
}

/* ---- Prometheus ------------------------------------------------------------------------------- */

/* A label's value: UTF-8, with three characters escaped. */
static void put_label(FILE *out, const char *text)
{
	json_t *valid = mp_json_string(text);
	const char *at = json_string_value(valid);

	for (; at && *at; at++)
		if (*at == '\n')
			fputs("\\n", out);
		else if (*at == '\\' || *at == '"')
			fprintf(out, "\\%c", *at);
		else
			fputc(*at, out);
	json_decref(valid);
}

static void put_head(FILE *out, const char *name, const char *help)
{
	fprintf(out, "# HELP morph_%s %s\n# TYPE morph_%s gauge\n", name, help, name);
}

static void put_number(FILE *out, const char *name, const char *help, double value)
{
	put_head(out, name, help);
	fprintf(out, "morph_%s %.10g\n", name, value);
}

struct column {
	const char *name, *help;
	size_t at; /* a double of struct md_saved_program */
	bool time; /* needs a rate; else a measured gain */
};

#define AT(field) offsetof(struct md_saved_program, field)
static const struct column columns[] = {
	{"program_cpu_seconds", "CPU time that versions of Morph took in the period.",
	 AT(time.used), true},
	{"program_saved_cpu_seconds", "CPU time that they saved.", AT(time.saved), true},
	{"program_speedup", "Times as fast as the original, as measured.", AT(gain.ratio), false},
	{"program_speedup_lowest", "The lower limit of that.", AT(gain.lowest), false},
	{"program_speedup_highest", "The upper limit of that.", AT(gain.highest), false},
};

static void put_column(const struct md_saved *saved, const struct column *c, FILE *out)
{
	put_head(out, c->name, c->help);
	for (size_t i = 0; i < saved->nr_programs; i++) {
		const struct md_saved_program *p = &saved->programs[i];

		if (c->time ? !saved->has_rate : !(p->gain.ratio > 0))
			continue;
		fprintf(out, "morph_%s{path=\"", c->name);
		put_label(out, p->path);
		fprintf(out, "\"} %.10g\n", *(const double *)((const char *)p + c->at));
	}
}

void md_report_put_metrics(const struct md_saved *saved, const struct md_collector *collector,
			   FILE *out)
{
	size_t in_use = 0;

	for (size_t i = 0; i < saved->nr_programs; i++)
		in_use += saved->programs[i].in_use;
	put_number(out, "collecting", "1 if the collector runs.", collector->runs);
	put_number(out, "programs_optimised", "Programs with a version of Morph in place.",
		   (double)in_use);
	put_number(out, "programs_not_measured",
		   "Programs that had one in the period, and whose gain nobody measured.",
		   (double)(saved->nr_programs - saved->nr_measured));
	put_number(out, "period_start_timestamp_seconds",
		   "Where the period begins of the numbers below.", (double)saved->since_s);
	if (saved->has_rate) {
		put_number(out, "used_cpu_seconds", "CPU time that the machine used.",
			   saved->all.used);
		put_number(out, "saved_cpu_seconds",
			   "CPU time that the originals would have taken besides.",
			   saved->all.saved);
		put_number(out, "saved_cpu_seconds_lowest", "The lower limit of that.",
			   saved->all.least);
		put_number(out, "saved_cpu_seconds_highest", "The upper limit of that.",
			   saved->all.most);
	}
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		put_column(saved, &columns[i], out);
}
