// SPDX-License-Identifier: Apache-2.0
/* audit_report - writes an audit's result in words or as JSON, and its progress. */
#include "editor/audit/audit_report.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "libprof/cli/json.h"
#include "libprof/cli/progress.h"
#include "libprof/base/text.h"

const char *me_metric_name(enum me_audit_metric metric)
{
	static const char *const names[] = {
		[ME_METRIC_CPU] = "cpu",
		[ME_METRIC_USER] = "user",
		[ME_METRIC_WALL] = "wall",
	};

	return names[metric];
}

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

static void print_time(FILE *out, double ns, int width)
{
	if (ns >= 1e9)
		fprintf(out, "%*.3f s", width, ns / 1e9);
	else if (ns >= 1e6)
		fprintf(out, "%*.2f ms", width, ns / 1e6);
	else
		fprintf(out, "%*.1f us", width, ns / 1e3);
}

static void print_side(FILE *out, const char *letter, const struct me_audit_side *side, size_t nr,
		       const char *path)
{
	uint64_t min = side->times_ns[0], max = min;
	size_t i;

	for (i = 1; i < nr; i++) {
		min = side->times_ns[i] < min ? side->times_ns[i] : min;
		max = side->times_ns[i] > max ? side->times_ns[i] : max;
	}
	fprintf(out, "  %s  ", letter);
	print_time(out, side->median_ns, 8);
	fputs("  (", out);
	print_time(out, (double)min, 0);
	fputs(" to ", out);
	print_time(out, (double)max, 0);
	fputs(")  ", out);
	mp_text_put(out, path);
	fputc('\n', out);
}

static void print_effect(FILE *out, const struct me_audit *audit)
{
	double level = 100 * (1 - audit->seq.alpha);

	fprintf(out, "\n  B is %.4f times as fast as A", exp(me_seq_estimate(&audit->seq)));
	if (isfinite(audit->lo) && isfinite(audit->hi))
		fprintf(out, "; %g %% interval %.4f to %.4f\n", level, exp(audit->lo),
			exp(audit->hi));
	else
		fprintf(out, "; an interval needs %zu pairs or more\n",
			me_seq_least_pairs(audit->seq.alpha));
}

/* Say which limit was reached, and whether the audit could have decided with this many pairs. */
static void print_undecided(FILE *out, const struct me_audit_opts *opts,
			    const struct me_audit *audit)
{
	size_t least = me_seq_least_pairs(audit->seq.alpha);

	fprintf(out, "\nnot faster: no difference was shown within %zu pair%s", audit->nr_pairs,
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
	switch (audit->verdict) {
	case ME_AUDIT_FASTER: fputs("\nfaster\n", out); break;
	case ME_AUDIT_SLOWER: fputs("\nnot faster: B is slower\n", out); break;
	case ME_AUDIT_EQUAL:
		fprintf(out, "\nnot faster: any difference is below %g %%\n",
			100 * expm1(opts->indifference));
		break;
	case ME_AUDIT_UNDECIDED: print_undecided(out, opts, audit); break;
	case ME_AUDIT_DIFFERS: fprintf(out, "\noutput differs: %s\n", audit->difference); break;
	}
}

void me_audit_print(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out)
{
	static const char *const titles[] = {
		[ME_METRIC_CPU] = "CPU time (user + system)",
		[ME_METRIC_USER] = "user time",
		[ME_METRIC_WALL] = "elapsed time",
	};

	if (audit->nr_pairs) {
		fprintf(out, "%s of one run, median (least to most) of %zu pair%s",
			titles[opts->metric], audit->nr_pairs, audit->nr_pairs == 1 ? "" : "s");
		if (audit->nr_earlier)
			fprintf(out, ", %zu of them from an earlier audit,", audit->nr_earlier);
		fprintf(out, " in %.1f s\n\n", audit->seconds);
		print_side(out, "A", &audit->a, audit->nr_pairs, opts->a);
		print_side(out, "B", &audit->b, audit->nr_pairs, opts->b);
		if (audit->verdict != ME_AUDIT_DIFFERS)
			print_effect(out, audit);
	}
	if (audit->verdict != ME_AUDIT_DIFFERS)
		fprintf(out,
			"  the same output (%llu bytes) and exit status (%d) in all %zu runs\n",
			(unsigned long long)audit->size_bytes, WEXITSTATUS(audit->status),
			audit->nr_runs);
	print_verdict(out, opts, audit);
}

static json_t *json_side(const char *path, const struct me_audit_side *side, size_t nr)
{
	json_t *times = json_array();
	size_t i;

	for (i = 0; i < nr; i++)
		json_array_append_new(times, json_integer((json_int_t)side->times_ns[i]));
	return json_pack("{s:o, s:f, s:o}", "path", mp_json_string(path), "median_ns",
			 side->median_ns, "times_ns", times);
}

static json_t *json_bound(double log_ratio)
{
	return isfinite(log_ratio) ? json_real(exp(log_ratio)) : json_null();
}

int me_audit_print_json(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out)
{
	json_t *root = json_pack(
		"{s:i, s:s, s:s, s:s, s:f, s:I, s:I, s:f, s:o, s:o, s:f, s:[o,o], s:i, s:I, s:o}",
		"schema", ME_AUDIT_SCHEMA, "command", "audit", "verdict",
		me_audit_verdict_name(audit->verdict), "metric", me_metric_name(opts->metric),
		"alpha", audit->seq.alpha, "pairs", (json_int_t)audit->nr_pairs, "runs",
		(json_int_t)audit->nr_runs, "seconds", audit->seconds, "a",
		json_side(opts->a, &audit->a, audit->nr_pairs), "b",
		json_side(opts->b, &audit->b, audit->nr_pairs), "speedup",
		exp(me_seq_estimate(&audit->seq)), "interval", json_bound(audit->lo),
		json_bound(audit->hi), "status", WEXITSTATUS(audit->status), "output_bytes",
		(json_int_t)audit->size_bytes, "difference",
		mp_json_string(audit->verdict == ME_AUDIT_DIFFERS ? audit->difference : NULL));
	int ret;

	if (!root)
		return -ENOMEM;
	ret = json_dumpf(root, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) ? -EIO : 0;
	json_decref(root);
	putc('\n', out);
	return ret;
}

/* The result so far, in a few words. */
static void say_so_far(const struct me_seq *seq, char *to, size_t size)
{
	double lo, hi;
	int len;

	if (!seq->nr) {
		snprintf(to, size, "warming up");
		return;
	}
	me_seq_interval(seq, &lo, &hi);
	len = snprintf(to, size, "%zu pair%s: B %.3f times as fast", seq->nr,
		       seq->nr == 1 ? "" : "s", exp(me_seq_estimate(seq)));
	if (isfinite(lo) && isfinite(hi) && len > 0 && (size_t)len < size)
		snprintf(to + len, size - (size_t)len, " (%.3f to %.3f)", exp(lo), exp(hi));
}

void me_audit_progress(const struct me_seq *seq, void *arg)
{
	char words[128];

	(void)arg;
	say_so_far(seq, words, sizeof(words));
	mp_progress_say("%s", words);
}

void me_audit_progress_line(const struct me_seq *seq, void *arg)
{
	struct me_audit_lines *lines = arg;
	struct timespec now;
	char words[128];
	double now_s;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_s = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	if (!lines->start_s)
		lines->start_s = lines->last_s = now_s;
	if (now_s - lines->last_s < lines->every_s)
		return;
	lines->last_s = now_s;
	say_so_far(seq, words, sizeof(words));
	fprintf(lines->out, "morph-audit: %.0f s: %s\n", now_s - lines->start_s, words);
	fflush(lines->out);
}
