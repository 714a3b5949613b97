// SPDX-License-Identifier: Apache-2.0
/* audit_plot - draws with Unicode's block and line characters, 60 columns wide. */
#include "editor/audit/audit_plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "editor/audit/audit_axis.h"
#include "editor/audit/audit_history.h"

enum {
	COLUMNS = 60
};

static int column(const struct me_axis *axis, double value)
{
	return (int)fmin(fmax(floor(me_axis_place(axis, value)), 0), COLUMNS - 1);
}

/* Values outside the axis count in its first and last column. */
static void plot_side(FILE *out, const char *letter, const struct me_axis *axis,
		      const double *values, size_t nr)
{
	static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	size_t counts[COLUMNS] = {0}, most = 0;

	for (size_t i = 0; i < nr; i++) {
		size_t *count = &counts[column(axis, values[i])];

		(*count)++;
		most = *count > most ? *count : most;
	}
	fprintf(out, "  %s  ", letter);
	for (int i = 0; i < COLUMNS; i++)
		fputs(bars[(8 * counts[i] + most - 1) / most], out);
	fputc('\n', out);
}

static void plot_runs(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out)
{
	struct me_metric_scale scale = me_metric_scale(&opts->metric, audit->a.median);
	struct me_axis axis = {.from = 0, .to = COLUMNS};
	size_t nr = audit->nr_pairs;
	double *all = calloc(2 * nr, sizeof(*all));
	char low[64], high[64];

	if (!all)
		return;
	memcpy(all, audit->a.values, nr * sizeof(*all));
	memcpy(all + nr, audit->b.values, nr * sizeof(*all));
	me_axis_cover(&axis, all, 2 * nr, ME_AXIS_BULK);
	free(all);
	plot_side(out, "A", &axis, audit->a.values, nr);
	plot_side(out, "B", &axis, audit->b.values, nr);
	snprintf(low, sizeof(low), "%.*f", scale.decimals, axis.lo * scale.factor);
	snprintf(high, sizeof(high), "%.*f %s", scale.decimals, axis.hi * scale.factor, scale.unit);
	fprintf(out, "     %s%*s\n", low, COLUMNS - (int)strlen(low), high);
}

static void plot_interval(FILE *out, const struct me_axis *axis,
			  const struct me_history_point *point)
{
	bool known = isfinite(point->lo) && isfinite(point->hi);
	int lo = known ? column(axis, point->lo) : COLUMNS;
	int hi = known ? column(axis, point->hi) : -1;
	int zero = column(axis, 0), middle = column(axis, point->estimate);

	fprintf(out, "%5zu", point->nr);
	for (int i = 0; i < COLUMNS; i++)
		fputs(i == middle	 ? "●"
		      : i == lo		 ? "├"
		      : i == hi		 ? "┤"
		      : i == zero	 ? "┊"
		      : i > lo && i < hi ? "─"
					 : " ",
		      out);
	fprintf(out, "  %.4f\n", exp(point->estimate));
}

/* The first interval is the widest one that counts: the axis covers it. */
static void plot_history(const struct me_audit *audit, const struct me_history *history, FILE *out)
{
	struct me_axis axis = {-0.01, 0.01, 0, COLUMNS};
	size_t next = mp_seq_least_pairs(audit->seq.alpha), i;

	for (i = 0; i < history->nr; i++) {
		const struct me_history_point *p = &history->points[i];

		if (p->nr < next && i + 1 < history->nr)
			continue;
		axis.lo = fmin(axis.lo, fmax(isfinite(p->lo) ? p->lo : p->estimate, -1));
		axis.hi = fmax(axis.hi, fmin(isfinite(p->hi) ? p->hi : p->estimate, 1));
	}
	for (i = 0; i < history->nr; i++) {
		const struct me_history_point *p = &history->points[i];

		if (p->nr < next && i + 1 < history->nr)
			continue;
		plot_interval(out, &axis, p);
		while (next <= p->nr)
			next *= 2;
	}
}

void me_audit_plot(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out)
{
	struct me_history history;

	if (!audit->nr_pairs)
		return;
	fputc('\n', out);
	plot_runs(opts, audit, out);
	fputs("\npairs  B against A: interval and estimate; ┊ no difference\n", out);
	if (!me_history_make(&audit->seq, &history))
		plot_history(audit, &history, out);
	me_history_fini(&history);
}
