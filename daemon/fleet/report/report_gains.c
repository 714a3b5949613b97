// SPDX-License-Identifier: Apache-2.0
/* report_gains - see report_gains.h. */
#include "daemon/fleet/report/report_gains.h"

#include <math.h>

#include "daemon/fleet/pg.h"
#include "libprof/cli/svg.h"

#define PLOT_WIDTH 400.0
#define MAX_GAINS  60

struct scale {
	double low, high; /* percent */
};

static double gain_of(const json_t *row, const char *column)
{
	return 100 * (md_row_number(row, column) - 1);
}

/* A bound that is not known reads as 0, and is drawn to the edge. */
static double place(const struct scale *s, double percent)
{
	double at = 8 + (PLOT_WIDTH - 16) * (percent - s->low) / (s->high - s->low);

	return fmin(fmax(at, 2), PLOT_WIDTH - 2);
}

static double high_of(const json_t *row)
{
	double high = gain_of(row, "highest");

	return high > -100 ? high : 1e9;
}

static void put_interval(FILE *out, const struct scale *s, const json_t *row)
{
	double at = place(s, gain_of(row, "ratio"));
	bool worse = gain_of(row, "ratio") < 0;

	mp_svg_put(out,
		   "<svg width=\"%n\" height=\"22\" role=\"img\" aria-label=\"interval\"><line "
		   "class=\"axis\" x1=\"%n\" x2=\"%n\" y1=\"0\" y2=\"22\"/>",
		   PLOT_WIDTH, place(s, 0), place(s, 0));
	mp_svg_put(out, "<line class=\"whisker%s\" x1=\"%n\" x2=\"%n\" y1=\"11\" y2=\"11\"/>",
		   worse ? " worse" : "", place(s, gain_of(row, "lowest")), place(s, high_of(row)));
	/* Without colours, the form tells: a circle is faster, a square slower. */
	if (worse)
		mp_svg_put(
			out,
			"<rect class=\"dot worse\" x=\"%n\" y=\"6\" width=\"10\" height=\"10\"/>",
			at - 5);
	else
		mp_svg_put(out, "<circle class=\"dot\" cx=\"%n\" cy=\"11\" r=\"5\"/>", at);
	fputs("</svg>", out);
}

static void put_scale(FILE *out, const struct scale *s)
{
	double step = s->high - s->low > 40 ? 10 : s->high - s->low > 15 ? 5 : 2;
	char text[32];

	mp_svg_put(out, "<svg width=\"%n\" height=\"18\">", PLOT_WIDTH);
	for (double at = ceil(s->low / step) * step; at <= s->high + 1e-9; at += step) {
		snprintf(text, sizeof(text), fabs(at) < 1e-9 ? "0" : "%+.0f %%", at);
		mp_svg_put(
			out,
			"<text class=\"tick\" x=\"%n\" y=\"13\" text-anchor=\"middle\">%t</text>",
			fmin(fmax(place(s, at), 18), PLOT_WIDTH - 18), text);
	}
	fputs("</svg>", out);
}

static struct scale scale_of(const json_t *rows)
{
	struct scale s = {-2, 4};

	for (size_t i = 0; i < json_array_size(rows) && i < MAX_GAINS; i++) {
		const json_t *row = json_array_get(rows, i);

		s.low = fmax(fmin(s.low, gain_of(row, "lowest") - 1), -40);
		if (high_of(row) < 1e9)
			s.high = fmin(fmax(s.high, high_of(row) + 1), 60);
	}
	return s;
}

static void put_row(FILE *out, const struct scale *s, const json_t *row)
{
	bool ranks = json_is_true(json_object_get(row, "by_ranks"));
	char text[160];

	fputs("<tr><td class=\"path\">", out);
	md_fleet_report_put_module(out, row);
	mp_svg_put(out, "<br><span class=\"soft\">Morph %t %t</span></td><td>",
		   md_row_text(row, "version"), md_row_text(row, "options"));
	put_interval(out, s, row);
	snprintf(text, sizeof(text), "%+.1f %% (%+.1f to ", gain_of(row, "ratio"),
		 gain_of(row, "lowest"));
	mp_svg_put(out, "</td><td class=\"num\">%t", text);
	if (high_of(row) < 1e9)
		snprintf(text, sizeof(text), "%+.1f)", high_of(row));
	mp_svg_put(out, "%t", high_of(row) < 1e9 ? text : "?)");
	snprintf(text, sizeof(text), "%.0f hosts, %.0f pairs%s", md_row_number(row, "nr_hosts"),
		 md_row_number(row, "pairs"), ranks ? "" : "; range of their intervals");
	mp_svg_put(out, "<br><span class=\"soft\">%t</span></td></tr>\n", text);
}

void md_fleet_report_put_gains(const struct md_fleet_report *r, FILE *out)
{
	struct scale s = scale_of(r->gains);

	fputs("<h2>What builds gained</h2>\n", out);
	if (!json_array_size(r->gains)) {
		fputs("<p class=\"soft\">No host has measured a build yet.</p>\n", out);
		return;
	}
	fputs("<p>Hosts measure both versions in turns. The mark is the median of the hosts' gains in "
	      "speed: a circle if it is faster, a square if it is slower. The line is an interval "
	      "for this median, 99 %, if there are 11 hosts or more.</p>\n<div class=\"card\"><table>"
	      "<tbody>\n",
	      out);
	for (size_t i = 0; i < json_array_size(r->gains) && i < MAX_GAINS; i++)
		put_row(out, &s, json_array_get(r->gains, i));
	fputs("<tr><td></td><td>", out);
	put_scale(out, &s);
	fputs("</td><td></td></tr></tbody></table></div>\n", out);
}
