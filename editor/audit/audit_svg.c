// SPDX-License-Identifier: Apache-2.0
/* audit_svg - draws two panels: the runs of each side, and B against A by pair. */
#include "editor/audit/audit_svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "editor/audit/audit_axis.h"
#include "editor/audit/audit_history.h"
#include "editor/audit/audit_report.h"
#include "libprof/base/text.h"
#include "libprof/cli/svg.h"

#define WIDTH	   960.0
#define HEIGHT	   700.0
#define LEFT	   96.0
#define RIGHT	   (WIDTH - 40)
#define ROW_A	   200.0 /* foot of A's curve */
#define ROW_B	   290.0
#define CURVE	   52.0 /* height of the curves */
#define AXIS_RUNS  316.0
#define TOP_PAIRS  400.0
#define FOOT_PAIRS 630.0
#define NR_CURVE   160
#define NR_TICKS   7
/* An interval is drawn up to this many widths of the last one beyond it. */
#define INTERVAL_MOST 1.5
#define SIZE	      14

/* Blue and orange differ for colour-blind people, too, and both are named in the picture. */
static const char style[] =
	"<style>text{font-family:'Helvetica Neue',Helvetica,Arial,'Liberation Sans',sans-serif;"
	"fill:#1a1a1a}.q{fill:#555}.e{text-anchor:end}.m{text-anchor:middle}.b{font-weight:bold}"
	".g{fill:#fff}.l{stroke:#d4d4d4;fill:none}.x{stroke:#777;fill:none}"
	".A{fill:#0067a5}.B{fill:#c24e00}.c{fill-opacity:.22}.d{fill-opacity:.6}"
	".A.k{fill:none;stroke:#0067a5;stroke-width:2}.B.k{fill:none;stroke:#c24e00;stroke-width:2}"
	".i{fill:#6a3d9a;fill-opacity:.2}.t{stroke:#6a3d9a;stroke-width:2.5;fill:none}"
	".p{fill:#555;fill-opacity:.6}.n{fill:#777;fill-opacity:.12}"
	"@media(prefers-color-scheme:dark){text{fill:#eee}.q{fill:#b5b5b5}.g{fill:#161616}"
	".l{stroke:#3a3a3a}.x{stroke:#999}.A{fill:#5bb5f0}.B{fill:#f39a4d}"
	".A.k{stroke:#5bb5f0}.B.k{stroke:#f39a4d}.i{fill:#b79be0;fill-opacity:.3}"
	".t{stroke:#b79be0}.p{fill:#ccc}.n{fill:#aaa}}</style>\n";

struct picture {
	FILE *out;
	const struct me_audit_opts *opts;
	const struct me_audit *audit;
	struct me_metric_scale scale; /* of the values */
};

/* ---- axes ---------------------------------------------------------------------------------- */

static void put_label(const struct picture *pic, double x, double y, const char *class,
		      double value, int decimals)
{
	char text[64];

	snprintf(text, sizeof(text), fabs(value) < 1e9 ? "%.*f" : "%.*g",
		 fabs(value) < 1e9 ? decimals : 6, value);
	mp_svg_put_words(pic->out, x, y, SIZE - 1, class, text);
}

/* A horizontal axis at @y, with lines up to @top. The labels are @factor times the values, and
 * whole numbers if @least_step is not 0. */
static void put_axis_x(const struct picture *pic, const struct me_axis *axis, double y, double top,
		       double factor, double least_step)
{
	struct me_axis shown = {axis->lo * factor, axis->hi * factor, axis->from, axis->to};
	int decimals;
	double step = fmax(me_axis_step(&shown, NR_TICKS, &decimals), least_step);

	decimals = least_step > 0 ? 0 : decimals;
	for (double tick = ceil(shown.lo / step) * step; tick <= shown.hi; tick += step) {
		double x = me_axis_place(&shown, tick);

		mp_svg_put(pic->out, "<path class=\"l\" d=\"M%n %nV%n\"/>\n", x, top, y);
		put_label(pic, x, y + 18, "q m", tick, decimals);
	}
	mp_svg_put(pic->out, "<path class=\"x\" d=\"M%n %nH%n\"/>\n", axis->from, y, axis->to);
}

static void put_axis_y(const struct picture *pic, const struct me_axis *axis)
{
	int decimals;
	double step = me_axis_step(axis, NR_TICKS, &decimals);

	for (double tick = ceil(axis->lo / step) * step; tick <= axis->hi; tick += step) {
		double y = me_axis_place(axis, tick);

		mp_svg_put(pic->out, "<path class=\"l\" d=\"M%n %nH%n\"/>\n", LEFT, y, RIGHT);
		put_label(pic, LEFT - 8, y + 5, "q e", tick, decimals);
	}
}

/* ---- the runs ------------------------------------------------------------------------------ */

/* Width of the kernel: Silverman's rule, by the quartiles, so that outliers do not widen it. */
static double kernel_width(const struct me_axis *axis, const double *values, size_t nr)
{
	struct me_axis bulk = {0};
	double width;

	me_axis_cover(&bulk, values, nr, 1);
	width = (bulk.hi - bulk.lo) / 4 * pow((double)nr, -0.2);
	return fmax(width, (axis->hi - axis->lo) / 400);
}

static double density(const double *values, size_t nr, double at, double width)
{
	double sum = 0;

	for (size_t i = 0; i < nr; i++)
		sum += exp(-(at - values[i]) * (at - values[i]) / (2 * width * width));
	return sum / (double)nr;
}

static void put_curve(const struct picture *pic, const struct me_axis *axis, const char *class,
		      const double *values, double foot)
{
	size_t nr = pic->audit->nr_pairs;
	double width = kernel_width(axis, values, nr), heights[NR_CURVE + 1], most = 0;

	for (int i = 0; i <= NR_CURVE; i++) {
		heights[i] =
			density(values, nr, axis->lo + (axis->hi - axis->lo) * i / NR_CURVE, width);
		most = fmax(most, heights[i]);
	}
	for (int filled = 1; filled >= 0; filled--) {
		mp_svg_put(pic->out, "<path class=\"%s %s\" d=\"M%n %n", class, filled ? "c" : "k",
			   axis->from, foot);
		for (int i = 0; i <= NR_CURVE; i++)
			mp_svg_put(pic->out, "L%n %n",
				   axis->from + (axis->to - axis->from) * i / NR_CURVE,
				   foot - CURVE * heights[i] / most);
		mp_svg_put(pic->out, filled ? "V%nZ\"/>\n" : "V%n\"/>\n", foot);
	}
}

/* Runs outside the axis: their number, at the edge. */
static void put_outside(const struct picture *pic, const struct me_axis *axis, size_t low,
			size_t high, double foot)
{
	char text[64];

	if (low) {
		snprintf(text, sizeof(text), "\u2190 %zu more", low);
		mp_svg_put_words(pic->out, axis->from + 2, foot - 6, SIZE - 2, "q", text);
	}
	if (high) {
		snprintf(text, sizeof(text), "%zu more \u2192", high);
		mp_svg_put_words(pic->out, axis->to - 2, foot - 6, SIZE - 2, "q e", text);
	}
}

static void put_side(const struct picture *pic, const struct me_axis *axis, const char *letter,
		     const struct me_audit_side *side, double foot)
{
	double middle = me_axis_place(axis, side->median);
	size_t low = 0, high = 0;

	mp_svg_put_words(pic->out, LEFT - 24, foot - 8, 22, letter, letter);
	put_curve(pic, axis, letter, side->values, foot);
	for (size_t i = 0; i < pic->audit->nr_pairs; i++) {
		double value = side->values[i];

		low += value < axis->lo;
		high += value > axis->hi;
		if (value >= axis->lo && value <= axis->hi)
			/* three lines of dots, so that equal values do not hide each other */
			mp_svg_put(pic->out,
				   "<circle class=\"%s d\" cx=\"%n\" cy=\"%n\" r=\"2.6\"/>\n",
				   letter, me_axis_place(axis, value),
				   foot + 6 + 5 * (double)(i % 3));
	}
	mp_svg_put(pic->out, "<path class=\"%s k\" d=\"M%n %nV%n\"/>\n", letter, middle,
		   foot - CURVE - 6, foot);
	put_outside(pic, axis, low, high, foot);
}

static const char *direction(const struct me_audit_opts *opts)
{
	return opts->metric.higher_is_better ? "higher is better" : "lower is better";
}

static void put_runs(const struct picture *pic)
{
	const struct me_audit *audit = pic->audit;
	struct me_axis axis = {.from = LEFT, .to = RIGHT};
	size_t nr = audit->nr_pairs;
	double *all = calloc(2 * nr, sizeof(*all));
	char *name = mp_text_escaped(me_metric_title(&pic->opts->metric, pic->opts->client));
	char *title = NULL;

	if (all && name &&
	    asprintf(&title, "Each run: %s%s%s%s (%s)", name,
		     pic->opts->metric.requests.text ? " per request" : "",
		     pic->scale.unit[0] ? " in " : "", pic->scale.unit, direction(pic->opts)) > 0) {
		memcpy(all, audit->a.values, nr * sizeof(*all));
		memcpy(all + nr, audit->b.values, nr * sizeof(*all));
		me_axis_cover(&axis, all, 2 * nr, ME_AXIS_BULK);
		mp_svg_put_words(pic->out, LEFT, 124, SIZE + 1, "b", title);
		put_axis_x(pic, &axis, AXIS_RUNS, ROW_A - CURVE - 6, pic->scale.factor, 0);
		put_side(pic, &axis, "A", &audit->a, ROW_A);
		put_side(pic, &axis, "B", &audit->b, ROW_B);
	}
	free(title);
	free(name);
	free(all);
}

/* ---- B against A --------------------------------------------------------------------------- */

/*
 * The range: the bulk of the pairs, "no effect", and the intervals, as far as they are not many
 * times wider than the last one.
 */
static void cover_pairs(const struct me_audit *audit, const struct me_history *history,
			struct me_axis *y)
{
	double limit = INTERVAL_MOST * (audit->hi - audit->lo), room;

	me_axis_cover(y, audit->seq.d, audit->nr_pairs, 1);
	y->lo = fmin(y->lo, 0);
	y->hi = fmax(y->hi, 0);
	for (size_t i = 0; i < history->nr && isfinite(limit); i++) {
		const struct me_history_point *p = &history->points[i];

		if (isfinite(p->lo))
			y->lo = fmin(y->lo, fmax(p->lo, audit->lo - limit));
		if (isfinite(p->hi))
			y->hi = fmax(y->hi, fmin(p->hi, audit->hi + limit));
	}
	y->lo = exp(y->lo);
	y->hi = exp(y->hi);
	room = (y->hi - y->lo) / 30;
	y->lo = fmax(y->lo - room, 0);
	y->hi += room;
}

/* The place of a logarithm of a ratio, kept inside the panel. */
static double place_ratio(const struct me_axis *y, double log_ratio)
{
	return fmin(fmax(me_axis_place(y, exp(fmin(log_ratio, 700))), y->to), y->from);
}

static void put_interval(const struct picture *pic, const struct me_history *history,
			 const struct me_axis *x, const struct me_axis *y)
{
	size_t first = 0, i;

	while (first < history->nr &&
	       !(isfinite(history->points[first].lo) && isfinite(history->points[first].hi)))
		first++;
	if (first < history->nr) {
		fputs("<path class=\"i\" d=\"", pic->out);
		for (i = first; i < history->nr; i++)
			mp_svg_put(pic->out, "%s%n %n", i == first ? "M" : "L",
				   me_axis_place(x, (double)history->points[i].nr),
				   place_ratio(y, history->points[i].hi));
		for (i = history->nr; i > first; i--)
			mp_svg_put(pic->out, "L%n %n",
				   me_axis_place(x, (double)history->points[i - 1].nr),
				   place_ratio(y, history->points[i - 1].lo));
		fputs("Z\"/>\n", pic->out);
	}
	fputs("<path class=\"t\" d=\"", pic->out);
	for (i = 0; i < history->nr; i++)
		mp_svg_put(pic->out, "%s%n %n", i ? "L" : "M",
			   me_axis_place(x, (double)history->points[i].nr),
			   place_ratio(y, history->points[i].estimate));
	fputs("\"/>\n", pic->out);
}

static void put_pairs(const struct picture *pic)
{
	const struct me_audit *audit = pic->audit;
	struct me_axis x = {0, (double)audit->nr_pairs + 1, LEFT, RIGHT};
	struct me_axis y = {.from = FOOT_PAIRS, .to = TOP_PAIRS};
	double eq = pic->opts->indifference, level = 100 * (1 - audit->seq.alpha);
	struct me_history history;
	char title[160];

	if (me_history_make(&audit->seq, &history))
		return;
	cover_pairs(audit, &history, &y);
	snprintf(title, sizeof(title),
		 "B against A after each pair: how many times as %s, with the %g %% interval",
		 pic->opts->metric.kind == ME_METRIC_PATTERN ? "good" : "fast", level);
	mp_svg_put_words(pic->out, LEFT, TOP_PAIRS - 26, SIZE + 1, "b", title);
	put_axis_x(pic, &x, FOOT_PAIRS, TOP_PAIRS, 1, 1);
	put_axis_y(pic, &y);
	mp_svg_put_words(pic->out, RIGHT, FOOT_PAIRS + 38, SIZE - 1, "q e", "pairs of runs");
	if (eq > 0)
		mp_svg_put(pic->out,
			   "<rect class=\"n\" x=\"%n\" y=\"%n\" width=\"%n\" height=\"%n\"/>\n",
			   LEFT, place_ratio(&y, eq), RIGHT - LEFT,
			   place_ratio(&y, -eq) - place_ratio(&y, eq));
	mp_svg_put(pic->out, "<path class=\"x\" stroke-dasharray=\"6 4\" d=\"M%n %nH%n\"/>\n", LEFT,
		   place_ratio(&y, 0), RIGHT);
	for (size_t i = 0; i < audit->nr_pairs; i++)
		mp_svg_put(pic->out, "<circle class=\"p\" cx=\"%n\" cy=\"%n\" r=\"2.6\"/>\n",
			   me_axis_place(&x, (double)i + 1), place_ratio(&y, audit->seq.d[i]));
	put_interval(pic, &history, &x, &y);
	me_history_fini(&history);
	mp_svg_put_words(
		pic->out, LEFT, FOOT_PAIRS + 38, SIZE - 1, "q",
		"dots: each pair (far ones at the edge); line: estimate; area: interval; dashed: no "
		"difference");
}

/* ---- words --------------------------------------------------------------------------------- */

/* The result in a sentence: for the title, and for those who do not see the picture. */
static char *sentence(const struct picture *pic)
{
	const struct me_audit *audit = pic->audit;
	const char *verdict = me_audit_verdict_name(audit->verdict);
	const char *how = pic->opts->metric.kind == ME_METRIC_PATTERN ? "good" : "fast";
	double estimate = exp(mp_seq_estimate(&audit->seq));
	char *text = NULL;
	int len;

	if (!audit->nr_pairs)
		len = asprintf(&text, "No pairs were measured (%s)", verdict);
	else if (isfinite(audit->lo) && isfinite(audit->hi))
		len = asprintf(&text,
			       "B is %.4f times as %s as A (%.4f to %.4f) after %zu pairs: %s",
			       estimate, how, exp(audit->lo), exp(audit->hi), audit->nr_pairs,
			       verdict);
	else
		len = asprintf(&text, "B is %.4f times as %s as A after %zu pairs: %s", estimate,
			       how, audit->nr_pairs, verdict);
	return len < 0 ? NULL : text;
}

static void put_path(const struct picture *pic, const char *letter, const char *path,
		     const struct me_audit_side *side, double y)
{
	char *fitting = mp_svg_fit_text(path, SIZE, RIGHT - LEFT - 180), value[64];

	mp_svg_put_words(pic->out, LEFT - 24, y, SIZE, letter, letter);
	if (fitting)
		mp_svg_put_words(pic->out, LEFT, y, SIZE, "", fitting);
	free(fitting);
	if (!pic->audit->nr_pairs)
		return;
	snprintf(value, sizeof(value), "median %.*f %s", pic->scale.decimals,
		 side->median * pic->scale.factor, pic->scale.unit);
	mp_svg_put_words(pic->out, RIGHT, y, SIZE, "q e", value);
}

void me_audit_print_svg(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out)
{
	struct picture pic = {out, opts, audit, me_metric_scale(&opts->metric, audit->a.median)};
	double height = audit->nr_pairs ? HEIGHT : 110;
	char *text = sentence(&pic);

	mp_svg_put(out,
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %n %n\" role=\"img\" "
		   "aria-labelledby=\"morph-audit-title morph-audit-desc\">\n"
		   "<title id=\"morph-audit-title\">%t</title>\n"
		   "<desc id=\"morph-audit-desc\">A: %t. B: %t. Above: the distribution of each "
		   "side's runs. Below: the interval, pair by pair.</desc>\n",
		   WIDTH, height, text ? text : "", opts->a, opts->b);
	fputs(style, out);
	fputs("<rect class=\"g\" width=\"100%\" height=\"100%\"/>\n", out);
	mp_svg_put_words(out, LEFT - 24, 40, 18, "b", text ? text : "");
	put_path(&pic, "A", opts->a, &audit->a, 70);
	put_path(&pic, "B", opts->b, &audit->b, 92);
	if (audit->nr_pairs) {
		put_runs(&pic);
		put_pairs(&pic);
	}
	fputs("</svg>\n", out);
	free(text);
}
