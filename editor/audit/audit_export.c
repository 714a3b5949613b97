// SPDX-License-Identifier: Apache-2.0
/* audit_export - writes an audit as CSV or Markdown, and reads the pairs of such a CSV file. */
#include "editor/audit/audit_export.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "editor/audit/audit_report.h"

static const char csv_head[] = "pair,a_ns,b_ns,speedup,metric,a_hash,b_hash\n";

void me_audit_print_csv(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out)
{
	fputs(csv_head, out);
	for (size_t i = 0; i < audit->nr_pairs; i++) {
		uint64_t a = audit->a.times_ns[i], b = audit->b.times_ns[i];

		fprintf(out, "%zu,%" PRIu64 ",%" PRIu64 ",%.6f,%s,%016" PRIx64 ",%016" PRIx64 "\n",
			i + 1, a, b, (double)a / (double)b, me_metric_name(opts->metric),
			audit->a_hash, audit->b_hash);
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
			  const struct me_audit_side *side, size_t nr)
{
	uint64_t min = UINT64_MAX, max = 0;

	for (size_t i = 0; i < nr; i++) {
		min = side->times_ns[i] < min ? side->times_ns[i] : min;
		max = side->times_ns[i] > max ? side->times_ns[i] : max;
	}
	fprintf(out, "| %s | ", letter);
	markdown_path(out, path);
	if (nr)
		fprintf(out, " | %.3f | %.3f | %.3f |", side->median_ns / 1e6, (double)min / 1e6,
			(double)max / 1e6);
	else
		fputs(" | | | |", out);
}

void me_audit_print_markdown(const struct me_audit_opts *opts, const struct me_audit *audit,
			     FILE *out)
{
	bool compared = audit->nr_pairs && audit->verdict != ME_AUDIT_DIFFERS;

	fprintf(out,
		"| | Program | Median [ms] | Min [ms] | Max [ms] | Speed-up | %g %% interval |\n",
		100 * (1 - audit->seq.alpha));
	fputs("|:---|:---|---:|---:|---:|---:|---:|\n", out);
	markdown_side(out, "A", opts->a, &audit->a, audit->nr_pairs);
	fputs(" 1 | |\n", out);
	markdown_side(out, "B", opts->b, &audit->b, audit->nr_pairs);
	if (compared)
		fprintf(out, " %.4f |", exp(me_seq_estimate(&audit->seq)));
	else
		fputs(" |", out);
	if (compared && isfinite(audit->lo) && isfinite(audit->hi))
		fprintf(out, " %.4f to %.4f |\n", exp(audit->lo), exp(audit->hi));
	else
		fputs(" |\n", out);
	fprintf(out, "\nVerdict: %s, by %s time, after %zu pairs in random order.\n",
		me_audit_verdict_name(audit->verdict), me_metric_name(opts->metric),
		audit->nr_pairs);
}

/*
 * Read one line of CSV. The first line sets metric and hashes; every other line must
 * agree with it.
 */
static int csv_line(const char *line, struct me_audit_pairs *pairs)
{
	uint64_t a, b, a_hash, b_hash;
	enum me_audit_metric metric;
	char name[8] = "";
	size_t pair;
	int end = 0;

	if (sscanf(line, "%zu,%" SCNu64 ",%" SCNu64 ",%*f,%7[a-z],%" SCNx64 ",%" SCNx64 " %n",
		   &pair, &a, &b, name, &a_hash, &b_hash, &end) != 6 ||
	    line[end] || pair != pairs->nr + 1 || !a || !b)
		return -EINVAL;
	for (metric = ME_METRIC_CPU; strcmp(name, me_metric_name(metric)); metric++)
		if (metric == ME_METRIC_WALL)
			return -EINVAL;
	if (pairs->nr &&
	    (metric != pairs->metric || a_hash != pairs->a_hash || b_hash != pairs->b_hash))
		return -EINVAL;
	if ((pairs->nr & (pairs->nr - 1)) == 0) { /* 0, 1, 2, 4, 8, ... */
		size_t room = pairs->nr ? 2 * pairs->nr : 1;
		uint64_t *grown = realloc(pairs->a_ns, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		pairs->a_ns = grown;
		grown = realloc(pairs->b_ns, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		pairs->b_ns = grown;
	}
	pairs->metric = metric;
	pairs->a_hash = a_hash;
	pairs->b_hash = b_hash;
	pairs->a_ns[pairs->nr] = a;
	pairs->b_ns[pairs->nr++] = b;
	return 0;
}

int me_audit_read_csv(const char *path, struct me_audit_pairs *pairs, struct mp_err *err)
{
	FILE *in = fopen(path, "re");
	char line[256];
	size_t nr = 0;
	int rc = 0;

	memset(pairs, 0, sizeof(*pairs));
	if (!in)
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	while (!rc && fgets(line, sizeof(line), in)) {
		if (++nr == 1)
			rc = strcmp(line, csv_head) ? -EINVAL : 0;
		else
			rc = csv_line(line, pairs);
	}
	if (!rc && ferror(in))
		rc = -EIO;
	fclose(in);
	if (rc == -EINVAL || (!rc && !nr))
		return mp_err_set(err, EINVAL,
				  "%s: line %zu: not in the form that --export-csv writes", path,
				  nr ? nr : 1);
	return rc ? mp_err_set(err, -rc, "%s: %s", path, strerror(-rc)) : 0;
}

void me_audit_pairs_fini(struct me_audit_pairs *pairs)
{
	free(pairs->a_ns);
	free(pairs->b_ns);
	memset(pairs, 0, sizeof(*pairs));
}
