// SPDX-License-Identifier: Apache-2.0
/* audit_export - writes an audit as CSV or Markdown, and reads the pairs of such a CSV file. */
#include "editor/audit/audit_export.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "editor/audit/audit_report.h"
#include "libprof/base/grow.h"
#include "libprof/base/infile.h"

static const char head_of_times[] = "pair,a_ns,b_ns,speedup,metric,a_hash,b_hash\n";
static const char head_of_values[] = "pair,a,b,speedup,metric,a_hash,b_hash,unit\n";

/* A cell that may hold commas and quotation marks. */
static void csv_put_cell(FILE *out, const char *text)
{
	if (!strpbrk(text, ",\"")) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

void me_audit_print_csv(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out)
{
	const struct me_metric *metric = &opts->metric;
	bool times = me_metric_is_time(metric);

	fputs(times ? head_of_times : head_of_values, out);
	for (size_t i = 0; i < audit->nr_pairs; i++) {
		double a = audit->a.values[i], b = audit->b.values[i];

		/* 15 digits: a whole number of nanoseconds is printed as one */
		fprintf(out, "%zu,%.15g,%.15g,%.6f,", i + 1, a, b,
			exp(me_metric_ratio(metric, a, b)));
		csv_put_cell(out, me_metric_name(metric));
		fprintf(out, ",%016" PRIx64 ",%016" PRIx64, audit->a_hash, audit->b_hash);
		if (!times) {
			fputc(',', out);
			csv_put_cell(out, me_metric_unit(metric));
		}
		fputc('\n', out);
	}
}

static void markdown_path(FILE *out, const char *path)
{
	fputc('`', out);
	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;

		/* These characters would end the code, the cell or the line. */
		if (c == '`' || c < 0x20 || c == 0x7f)
			fputc('?', out);
		else if (c == '|')
			fputs("\\|", out);
		else
			fputc(c, out);
	}
	fputc('`', out);
}

static void markdown_side(FILE *out, const char *letter, const char *path,
			  const struct me_audit_side *side, size_t nr,
			  const struct me_metric_scale *scale)
{
	double min = INFINITY, max = 0;

	for (size_t i = 0; i < nr; i++) {
		min = fmin(min, side->values[i]);
		max = fmax(max, side->values[i]);
	}
	fprintf(out, "| %s | ", letter);
	markdown_path(out, path);
	if (nr)
		fprintf(out, " | %.*f | %.*f | %.*f |", scale->decimals,
			side->median * scale->factor, scale->decimals, min * scale->factor,
			scale->decimals, max * scale->factor);
	else
		fputs(" | | | |", out);
}

/* Times of runs are always in milliseconds, so that tables can be compared. */
static struct me_metric_scale markdown_scale(const struct me_metric *metric, double median)
{
	if (me_metric_is_time(metric))
		return (struct me_metric_scale){1e-6, 3, "ms"};
	return me_metric_scale(metric, median);
}

static void markdown_head(FILE *out, const struct me_audit *audit, const char *unit)
{
	static const char *const columns[] = {"Median", "Min", "Max"};

	fputs("| | Program |", out);
	for (int i = 0; i < 3; i++) {
		fprintf(out, " %s", columns[i]);
		if (unit[0]) {
			fputs(" [", out);
			for (const char *c = unit; *c; c++)
				fputc(*c == '|' ? '/' : *c, out);
			fputc(']', out);
		}
		fputs(" |", out);
	}
	fprintf(out, " Speed-up | %g %% interval |\n", 100 * (1 - audit->seq.alpha));
	fputs("|:---|:---|---:|---:|---:|---:|---:|\n", out);
}

void me_audit_print_markdown(const struct me_audit_opts *opts, const struct me_audit *audit,
			     FILE *out)
{
	bool compared = audit->nr_pairs && audit->verdict != ME_AUDIT_DIFFERS;
	const struct me_metric *metric = &opts->metric;
	struct me_metric_scale scale = markdown_scale(metric, audit->a.median);

	markdown_head(out, audit, scale.unit);
	markdown_side(out, "A", opts->a, &audit->a, audit->nr_pairs, &scale);
	fputs(" 1 | |\n", out);
	markdown_side(out, "B", opts->b, &audit->b, audit->nr_pairs, &scale);
	if (compared)
		fprintf(out, " %.4f |", exp(mp_seq_estimate(&audit->seq)));
	else
		fputs(" |", out);
	if (compared && isfinite(audit->lo) && isfinite(audit->hi))
		fprintf(out, " %.4f to %.4f |\n", exp(audit->lo), exp(audit->hi));
	else
		fputs(" |\n", out);
	fprintf(out, "\nVerdict: %s, by ", me_audit_verdict_name(audit->verdict));
	if (metric->kind == ME_METRIC_PATTERN)
		markdown_path(out, me_metric_name(metric));
	else
		fprintf(out, "%s time%s", me_metric_name(metric),
			metric->requests.text ? " per request" : "");
	fprintf(out, ", after %zu pairs in random order.\n", audit->nr_pairs);
}

/* Take one cell from *@line, without its quotation marks. Return: NULL: there is none. */
static char *csv_take_cell(char **line)
{
	char *from = *line, *to = *line, *cell = *line;
	bool quoted = from && *from == '"';

	if (!from)
		return NULL;
	for (from += quoted; *from && (quoted || *from != ','); from++) {
		if (quoted && *from == '"') {
			if (from[1] != '"')
				break;
			from++;
		}
		*to++ = *from;
	}
	if (quoted && *from++ != '"')
		return NULL;
	if (*from && *from != ',')
		return NULL;
	*line = *from ? from + 1 : NULL;
	*to = 0;
	return cell;
}

static bool csv_read_value(const char *cell, double *value)
{
	char *end;

	*value = cell ? strtod(cell, &end) : 0;
	return *value >= ME_PATTERN_MIN && *value <= ME_PATTERN_MAX && !*end;
}

static bool csv_read_hash(const char *cell, uint64_t *hash)
{
	int end = 0;

	return cell && sscanf(cell, "%" SCNx64 "%n", hash, &end) == 1 && !cell[end];
}

static int csv_add(struct me_audit_pairs *pairs, double a, double b)
{
	if ((pairs->nr & (pairs->nr - 1)) == 0) { /* 0, 1, 2, 4, 8, ... */
		size_t room = pairs->nr ? 2 * pairs->nr : 1;

		if (mp_resize(pairs->a, room) || mp_resize(pairs->b, room))
			return -ENOMEM;
	}
	pairs->a[pairs->nr] = a;
	pairs->b[pairs->nr++] = b;
	return 0;
}

/* The first line sets metric, unit and hashes; every other line must agree with it. */
static int csv_agree(struct me_audit_pairs *pairs, const char *metric, const char *unit,
		     uint64_t a_hash, uint64_t b_hash)
{
	if (pairs->nr)
		return strcmp(metric, pairs->metric) || strcmp(unit, pairs->unit) ||
				       a_hash != pairs->a_hash || b_hash != pairs->b_hash
			       ? -EINVAL
			       : 0;
	pairs->metric = strdup(metric);
	pairs->unit = strdup(unit);
	pairs->a_hash = a_hash;
	pairs->b_hash = b_hash;
	return pairs->metric && pairs->unit ? 0 : -ENOMEM;
}

static bool csv_is_time(const char *metric)
{
	return !strcmp(metric, "cpu") || !strcmp(metric, "user") || !strcmp(metric, "wall");
}

/* Read one line of CSV. @times: the header was head_of_times. */
static int csv_line(char *line, bool times, struct me_audit_pairs *pairs)
{
	const char *pair = csv_take_cell(&line), *a_cell = csv_take_cell(&line);
	const char *b_cell = csv_take_cell(&line);
	const char *metric, *unit = "ns";
	uint64_t a_hash, b_hash;
	double a, b;
	int rc;

	csv_take_cell(&line); /* the speed-up follows from the values */
	metric = csv_take_cell(&line);
	if (!pair || strtoull(pair, NULL, 10) != pairs->nr + 1 || !csv_read_value(a_cell, &a) ||
	    !csv_read_value(b_cell, &b) || !metric ||
	    !csv_read_hash(csv_take_cell(&line), &a_hash) ||
	    !csv_read_hash(csv_take_cell(&line), &b_hash))
		return -EINVAL;
	if (!times)
		unit = csv_take_cell(&line);
	if (!unit || line || (times && !csv_is_time(metric)))
		return -EINVAL;
	rc = csv_agree(pairs, metric, unit, a_hash, b_hash);
	return rc ? rc : csv_add(pairs, a, b);
}

/* @head ends with a newline, as it is written. */
static bool csv_is_head(const char *line, const char *head)
{
	size_t len = strlen(line);

	return !strncmp(line, head, len) && !strcmp(head + len, "\n");
}

int me_audit_read_csv(const char *path, struct me_audit_pairs *pairs, struct mp_err *err)
{
	char *line = NULL;
	bool times = false;
	size_t nr = 0, size = 0;
	FILE *in;
	int rc, got = 0;

	memset(pairs, 0, sizeof(*pairs));
	rc = mp_infile_stream(path, &in, err);
	if (rc)
		return rc;
	while (!rc && (got = mp_infile_line(in, &line, &size)) > 0) {
		if (++nr == 1) {
			times = csv_is_head(line, head_of_times);
			rc = times || csv_is_head(line, head_of_values) ? 0 : -EINVAL;
		} else {
			rc = csv_line(line, times, pairs);
		}
	}
	free(line);
	fclose(in);
	if (got == -EILSEQ || got == -EFBIG)
		rc = -EINVAL;
	else if (got < 0)
		rc = got;
	if (rc == -EINVAL || (!rc && !nr))
		return mp_err_set(err, EINVAL, "%s: line %zu: not in the form that --export writes",
				  path, nr ? nr : 1);
	return rc ? mp_err_set(err, -rc, "%s: %s", path, strerror(-rc)) : 0;
}

void me_audit_pairs_fini(struct me_audit_pairs *pairs)
{
	free(pairs->a);
	free(pairs->b);
	free(pairs->metric);
	free(pairs->unit);
	memset(pairs, 0, sizeof(*pairs));
}
