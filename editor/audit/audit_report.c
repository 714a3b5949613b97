// SPDX-License-Identifier: Apache-2.0
/* audit_report - writes an audit's result in words or as JSON, and its progress. */
#include "editor/audit/audit_report.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "libprof/base/clock.h"
#include "libprof/cli/json.h"
#include "libprof/cli/progress.h"
#include "libprof/base/text.h"

const char *me_audit_verdict_name(enum me_audit_verdict verdict)
{
	static const char *const names[] = {
		[ME_AUDIT_FASTER] = "faster",
		[ME_AUDIT_SLOWER] = "slower",
		[ME_AUDIT_EQUAL] = "equal",
		[ME_AUDIT_UNDECIDED] = "undecided",
		[ME_AUDIT_DIFFERS] = "output differs",
	};

	return names[verdict];
}

static void print_side(FILE *out, const char *letter, const struct me_metric *metric,
		       const struct me_audit_side *side, size_t nr, const char *path)
{
	double min = side->values[0], max = min;

	for (size_t i = 1; i < nr; i++) {
		min = fmin(min, side->values[i]);
		max = fmax(max, side->values[i]);
	}
	fprintf(out, "  %s  ", letter);
	me_metric_put(out, metric, side->median, 8);
	fputs("  (", out);
	me_metric_put(out, metric, min, 0);
	fputs(" to ", out);
	me_metric_put(out, metric, max, 0);
	fputs(")  ", out);
	mp_text_put(out, path);
	fputc('\n', out);
}

/* A number that the command prints need not be a speed. */
static bool is_speed(const struct me_audit_opts *opts)
{
	return opts->metric.kind != ME_METRIC_PATTERN;
}

static void print_effect(FILE *out, const struct me_audit_opts *opts, const struct me_audit *audit)
{
	double level = 100 * (1 - audit->seq.alpha);

	fprintf(out, "\n  B is %.4f times as %s as A", exp(mp_seq_estimate(&audit->seq)),
		is_speed(opts) ? "fast" : "good");
	if (isfinite(audit->lo) && isfinite(audit->hi))
		fprintf(out, "; %g %% interval %.4f to %.4f\n", level, exp(audit->lo),
			exp(audit->hi));
	else
		fprintf(out, "; an interval needs %zu pairs or more\n",
			mp_seq_least_pairs(audit->seq.alpha));
}

/* Say which limit was reached, and whether the audit could have decided with this many pairs. */
static void print_undecided(FILE *out, const struct me_audit_opts *opts,
			    const struct me_audit *audit)
{
	size_t least = mp_seq_least_pairs(audit->seq.alpha);

	fprintf(out, "\nnot %s: no difference was shown within %zu pair%s",
		is_speed(opts) ? "faster" : "better", audit->nr_pairs,
		audit->nr_pairs == 1 ? "" : "s");
	if (audit->nr_pairs < opts->max_pairs)
		fprintf(out, ", which took the %g seconds that were allowed", opts->max_seconds);
	fputc('\n', out);
	if (audit->nr_pairs < least)
		fprintf(out,
			"no audit can decide with fewer than %zu pairs: allow --pairs=%zu:%zu, "
			"or give both programs less to do\n",
			least, 2 * least,
			opts->max_pairs > 2 * least ? opts->max_pairs : 2 * least);
}

static void print_verdict(FILE *out, const struct me_audit_opts *opts, const struct me_audit *audit)
{
	const char *better = is_speed(opts) ? "faster" : "better";

	switch (audit->verdict) {
	case ME_AUDIT_FASTER: fprintf(out, "\n%s\n", better); break;
	case ME_AUDIT_SLOWER:
		fprintf(out, "\nnot %s: B is %s\n", better, is_speed(opts) ? "slower" : "worse");
		break;
	case ME_AUDIT_EQUAL:
		fprintf(out, "\nnot %s: any difference is below %g %%\n", better,
			100 * expm1(opts->indifference));
		break;
	case ME_AUDIT_UNDECIDED: print_undecided(out, opts, audit); break;
	case ME_AUDIT_DIFFERS: fprintf(out, "\noutput differs: %s\n", audit->difference); break;
	}
}

static void print_title(FILE *out, const struct me_audit_opts *opts, const struct me_audit *audit)
{
	const struct me_metric *metric = &opts->metric;

	mp_text_put(out, me_metric_title(metric, opts->client));
	if (metric->kind == ME_METRIC_PATTERN) {
		fputs(metric->unit ? " in " : "", out);
		mp_text_put(out, me_metric_unit(metric));
		fprintf(out, " (%s is better)", metric->higher_is_better ? "higher" : "lower");
	}
	fprintf(out, "%s, median (least to most) of %zu pair%s",
		metric->requests.text ? " per request"
		: opts->client	      ? " during one run of the client"
				      : " of one run",
		audit->nr_pairs, audit->nr_pairs == 1 ? "" : "s");
	if (audit->nr_earlier)
		fprintf(out, ", %zu of them from an earlier audit,", audit->nr_earlier);
	fprintf(out, " in %.1f s\n\n", audit->seconds);
}

/* Says which results were the same in all runs, and which were not compared. */
static void print_same(FILE *out, const struct me_audit_opts *opts, const struct me_audit *audit)
{
	if (me_audit_compares_output(opts))
		fprintf(out,
			"  the same output (%llu bytes) and exit status (%d) in all %zu runs\n",
			(unsigned long long)audit->size_bytes, WEXITSTATUS(audit->status),
			audit->nr_runs);
	else
		fprintf(out,
			"  the same exit status (%d) in all %zu runs; the output was not compared, "
			"since there is no --filter\n",
			WEXITSTATUS(audit->status), audit->nr_runs);
	if (audit->nr_both)
		fprintf(out, "  both runs of a pair went on at the same time, on one CPU%s\n",
			audit->turns_because[0] ? ", at first" : "");
	if (audit->turns_because[0]) {
		fputs("  runs in turns: ", out);
		mp_text_put(out, audit->turns_because);
		fputc('\n', out);
	}
	if (audit->nr_killed)
		fprintf(out, "  %zu times the server did not end after SIGTERM, and was killed\n",
			audit->nr_killed);
}

void me_audit_print(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out)
{
	if (audit->nr_pairs) {
		print_title(out, opts, audit);
		print_side(out, "A", &opts->metric, &audit->a, audit->nr_pairs, opts->a);
		print_side(out, "B", &opts->metric, &audit->b, audit->nr_pairs, opts->b);
		if (audit->verdict != ME_AUDIT_DIFFERS)
			print_effect(out, opts, audit);
	}
	if (audit->verdict != ME_AUDIT_DIFFERS)
		print_same(out, opts, audit);
	print_verdict(out, opts, audit);
}

/* Times of runs also have the names that they had before there were other metrics. */
static json_t *json_side(const char *path, const struct me_metric *metric,
			 const struct me_audit_side *side, size_t nr)
{
	json_t *values = json_array(), *times = json_array(), *root;
	bool is_time = me_metric_is_time(metric);

	for (size_t i = 0; i < nr; i++) {
		json_array_append_new(values, json_real(side->values[i]));
		json_array_append_new(times, json_integer((json_int_t)side->values[i]));
	}
	root = json_pack("{s:o, s:f, s:o}", "path", mp_json_string(path), "median", side->median,
			 "values", values);
	if (is_time) {
		json_object_set_new(root, "median_ns", json_real(side->median));
		json_object_set(root, "times_ns", times);
	}
	json_decref(times);
	return root;
}

static json_t *json_bound(double log_ratio)
{
	return isfinite(log_ratio) ? json_real(exp(log_ratio)) : json_null();
}

/* The logarithm of an e-value, to be multiplied with those of other hosts. JSON has no infinities. */
static double log_evidence(const struct mp_seq *seq, const double *capital)
{
	return fmin(fmax(log(mp_seq_pool_capital(seq, capital)), -700), 700);
}

static json_t *json_audit(const struct me_audit_opts *opts, const struct me_audit *audit)
{
	const struct me_metric *metric = &opts->metric;
	bool compared = me_audit_compares_output(opts);

	return json_pack(
		"{s:i, s:s, s:s, s:o, s:o, s:s, s:b, s:f, s:I, s:I, s:f, s:o, s:o, s:f, s:[o,o], "
		"s:i, s:b, s:I, s:o, s:I, s:I, s:o, s:f, s:f}",
		"schema", ME_AUDIT_SCHEMA, "command", "audit", "verdict",
		me_audit_verdict_name(audit->verdict), "metric",
		mp_json_string(me_metric_name(metric)), "unit",
		mp_json_string(me_metric_unit(metric)), "better",
		metric->higher_is_better ? "higher" : "lower", "server", opts->client != NULL,
		"alpha", audit->seq.alpha, "pairs", (json_int_t)audit->nr_pairs, "runs",
		(json_int_t)audit->nr_runs, "seconds", audit->seconds, "a",
		json_side(opts->a, metric, &audit->a, audit->nr_pairs), "b",
		json_side(opts->b, metric, &audit->b, audit->nr_pairs), "speedup",
		exp(mp_seq_estimate(&audit->seq)), "interval", json_bound(audit->lo),
		json_bound(audit->hi), "status", WEXITSTATUS(audit->status), "output_compared",
		compared, "output_bytes", (json_int_t)audit->size_bytes, "difference",
		mp_json_string(audit->verdict == ME_AUDIT_DIFFERS ? audit->difference : NULL),
		"killed_servers", (json_int_t)audit->nr_killed, "pairs_at_once",
		(json_int_t)audit->nr_both, "turns_because",
		mp_json_string(audit->turns_because[0] ? audit->turns_because : NULL),
		"log_evidence_faster", log_evidence(&audit->seq, audit->seq.up),
		"log_evidence_slower", log_evidence(&audit->seq, audit->seq.down));
}

static int print_object(json_t *root, FILE *out)
{
	int ret;

	if (!mp_json_is_whole(root)) {
		json_decref(root);
		return -ENOMEM;
	}
	ret = json_dumpf(root, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) ? -EIO : 0;
	json_decref(root);
	putc('\n', out);
	return ret;
}

int me_audit_print_json(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out)
{
	return print_object(json_audit(opts, audit), out);
}

int me_audit_print_failure(const char *reason, FILE *out)
{
	json_t *root = mp_json_new(ME_AUDIT_SCHEMA, "audit");

	json_object_set_new(root, "error", mp_json_string(reason));
	return print_object(root, out);
}

/* The result so far, in a few words. */
static void say_so_far(const struct mp_seq *seq, const struct me_audit_lines *lines, char *to,
		       size_t size)
{
	double lo, hi;
	int len;

	if (!seq->nr) {
		snprintf(to, size, "warming up");
		return;
	}
	mp_seq_interval(seq, &lo, &hi);
	len = snprintf(to, size, "%zu pair%s: B %.3f times as %s", seq->nr, seq->nr == 1 ? "" : "s",
		       exp(mp_seq_estimate(seq)), lines->no_speed ? "good" : "fast");
	if (isfinite(lo) && isfinite(hi) && len > 0 && (size_t)len < size)
		snprintf(to + len, size - (size_t)len, " (%.3f to %.3f)", exp(lo), exp(hi));
}

void me_audit_progress(const struct mp_seq *seq, void *arg)
{
	char words[128];

	say_so_far(seq, arg, words, sizeof(words));
	mp_progress_say("%s", words);
}

void me_audit_progress_line(const struct mp_seq *seq, void *arg)
{
	struct me_audit_lines *lines = arg;
	double now_s = mp_now_s();
	char words[128];

	if (!lines->start_s)
		lines->start_s = lines->last_s = now_s;
	if (now_s - lines->last_s < lines->every_s)
		return;
	lines->last_s = now_s;
	say_so_far(seq, lines, words, sizeof(words));
	fprintf(lines->out, "morph-audit: %.0f s: %s\n", now_s - lines->start_s, words);
	fflush(lines->out);
}
