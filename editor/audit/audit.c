// SPDX-License-Identifier: Apache-2.0
/*
 * audit - runs the pairs, in an order drawn by a coin, until the sequential test
 * decides or a limit is reached. Called by morph_audit.c.
 */
#include "editor/audit/audit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "editor/audit/audit_stage.h"
#include "editor/audit/run/audit_child.h"
#include "editor/audit/run/audit_compare.h"
#include "libprof/base/clock.h"

struct audit_state {
	const struct me_audit_opts *opts;
	struct me_audit *audit;
	struct me_stage stage;
	struct me_run reference; /* A's first run */
	bool both;		 /* the runs of a pair go on at the same time */
	uint64_t start_ns;
};

static double audit_seconds(const struct audit_state *as)
{
	return (double)(mp_now_ns() - as->start_ns) / (double)ME_NS_PER_SEC;
}

static int audit_add_pair(const struct audit_state *as, double a, double b, struct mp_err *err)
{
	struct me_audit *audit = as->audit;
	int ret = mp_seq_add(&audit->seq, me_metric_ratio(&as->opts->metric, a, b));

	if (ret)
		return mp_err_set(err, -ret, "pair %zu: %s", audit->nr_pairs + 1, strerror(-ret));
	audit->a.values[audit->nr_pairs] = a;
	audit->b.values[audit->nr_pairs] = b;
	audit->nr_pairs++;
	return 0;
}

/*
 * Add the pairs of the audit that this one continues. The test is valid at every look,
 * so an audit may be stopped and continued.
 */
static int audit_take_earlier(struct audit_state *as, struct mp_err *err)
{
	const struct me_audit_opts *opts = as->opts;
	const struct me_audit_pairs *earlier = opts->earlier;
	struct me_audit *audit = as->audit;
	int ret = 0;

	if (!earlier)
		return 0;
	if (earlier->a_hash != audit->a_hash || earlier->b_hash != audit->b_hash)
		return mp_err_set(err, EINVAL,
				  "--continue: the pairs in that file were "
				  "measured with another %s",
				  earlier->a_hash != audit->a_hash ? opts->a : opts->b);
	if (strcmp(earlier->metric, me_metric_name(&opts->metric)) ||
	    strcmp(earlier->unit, me_metric_unit(&opts->metric)))
		return mp_err_set(err, EINVAL,
				  "--continue: the pairs in that file were "
				  "measured with another --metric%s",
				  strcmp(earlier->unit, me_metric_unit(&opts->metric))
					  ? " or in another unit"
					  : "");
	if (earlier->nr >= opts->max_pairs)
		return mp_err_set(err, EINVAL,
				  "--continue: that file holds %zu pairs already: raise the "
				  "maximum of --pairs",
				  earlier->nr);
	for (size_t i = 0; !ret && i < earlier->nr; i++)
		ret = audit_add_pair(as, earlier->a[i], earlier->b[i], err);
	audit->nr_earlier = audit->nr_pairs;
	return ret;
}

static int audit_open(struct audit_state *as, struct mp_err *err)
{
	struct me_audit *audit = as->audit;
	int ret = me_stage_open(&as->stage, as->opts, err);

	if (!ret)
		ret = me_program_hash(&as->stage.programs[ME_SIDE_A], &audit->a_hash, err);
	if (!ret)
		ret = me_program_hash(&as->stage.programs[ME_SIDE_B], &audit->b_hash, err);
	if (ret)
		return ret;
	audit->a.values = calloc(as->opts->max_pairs, sizeof(double));
	audit->b.values = calloc(as->opts->max_pairs, sizeof(double));
	if (!audit->a.values || !audit->b.values)
		return mp_err_set(err, ENOMEM, "out of memory");
	return audit_take_earlier(as, err);
}

static int audit_run_side(struct audit_state *as, int side, struct me_run *run, struct mp_err *err)
{
	int ret = me_stage_run(&as->stage, side, run, err);

	as->audit->nr_runs++;
	if (!ret && as->opts->progress)
		as->opts->progress(&as->audit->seq, as->opts->progress_arg);
	return ret;
}

static int audit_no_value(const struct audit_state *as, int side, const struct mp_err *cause,
			  struct mp_err *err)
{
	return mp_err_set(err, EINVAL, "%s: run %zu: %s", as->stage.programs[side].path,
			  as->audit->nr_runs, cause->msg);
}

/* Run A once: every later run is compared with this one. */
static int audit_take_reference(struct audit_state *as, struct mp_err *err)
{
	struct me_run *ref = &as->reference;
	struct mp_err cause = {""};
	char what[512];
	double value;
	int ret = audit_run_side(as, ME_SIDE_A, ref, err);

	if (ret)
		return ret;
	if (me_run_failed(ref, what, sizeof(what)))
		return mp_err_set(err, EINVAL, "%s: %s", as->opts->a, what);
	if (as->opts->client && ref->status)
		return mp_err_set(err, EINVAL, "%s: --client: exit status %d%s%s", as->opts->a,
				  WEXITSTATUS(ref->status),
				  ref->last_stderr_line[0] ? "; it said: " : "",
				  ref->last_stderr_line);
	if (me_metric_value(&as->opts->metric, ref, &value, &cause))
		return audit_no_value(as, ME_SIDE_A, &cause, err);
	return 0;
}

static bool audit_differs(const struct audit_state *as, const struct me_run *run, char *what,
			  size_t size)
{
	return me_run_differs(&as->reference, run, me_audit_compares_output(as->opts), what, size);
}

/*
 * Run once and compare with the reference. If B differs, run A again: if A then differs
 * from its own first run, nothing is known about B. Return: 0, 1 if B differs, -errno.
 */
static int audit_checked_run(struct audit_state *as, int side, struct me_run *run,
			     struct mp_err *err)
{
	struct me_audit *audit = as->audit;
	char what[sizeof(audit->difference)];
	struct me_run again;
	int ret = audit_run_side(as, side, run, err);

	if (ret)
		return ret;
	if (!audit_differs(as, run, what, sizeof(what)))
		return 0;
	if (side == ME_SIDE_B) {
		memcpy(audit->difference, what, sizeof(what));
		ret = audit_run_side(as, ME_SIDE_A, &again, err);
		if (ret)
			return ret;
		if (!audit_differs(as, &again, what, sizeof(what)))
			return 1;
		audit->difference[0] = 0;
	}
	return mp_err_set(err, EINVAL, "%s: its runs give different results (%.120s)%s",
			  as->opts->a, what,
			  as->opts->filter || !me_audit_compares_output(as->opts)
				  ? ""
				  : "; --filter can remove what varies");
}

/* A fair coin, 0 or 1. The test is valid only if the coin decides each pair's order. */
static int audit_coin(void)
{
	unsigned char byte = 0;

	while (getrandom(&byte, 1, 0) != 1)
		;
	return byte & 1;
}

/* Return: 0, 1 if B differs, -errno. */
static int audit_pair_in_turns(struct audit_state *as, double values[2], struct mp_err *err)
{
	int first = audit_coin(), i, ret;
	struct mp_err cause = {""};
	struct me_run run;

	for (i = 0; i < 2; i++) {
		int side = first ^ i;

		ret = audit_checked_run(as, side, &run, err);
		if (ret)
			return ret;
		if (me_metric_value(&as->opts->metric, &run, &values[side], &cause))
			return audit_no_value(as, side, &cause, err);
	}
	return 0;
}

/*
 * Two runs at the same time may disturb each other, so a difference between them proves nothing: from
 * then on runs are made in turns. Return: 0; 1 if there are no values, and the reason is set; -errno.
 */
static int audit_pair_at_once(struct audit_state *as, double values[2], struct mp_err *err)
{
	struct me_audit *audit = as->audit;
	char what[sizeof(audit->difference)] = "";
	struct mp_err cause = {""};
	struct me_run runs[2];
	int ret = me_stage_run_both(&as->stage, audit_coin(), runs, &cause);

	if (ret == -ECANCELED)
		return mp_err_set(err, ECANCELED, "%s", cause.msg);
	if (ret) {
		snprintf(audit->turns_because, sizeof(audit->turns_because), "%.240s", cause.msg);
		return 1;
	}
	audit->nr_runs += 2;
	if (as->opts->progress)
		as->opts->progress(&audit->seq, as->opts->progress_arg);
	for (int side = 0; side < 2; side++) {
		if (!audit_differs(as, &runs[side], what, sizeof(what)) &&
		    !me_metric_value(&as->opts->metric, &runs[side], &values[side], &cause))
			continue;
		snprintf(audit->turns_because, sizeof(audit->turns_because),
			 "at the same time, a run behaves otherwise (%.180s)",
			 what[0] ? what : cause.msg);
		return 1;
	}
	return 0;
}

/* Return: 0, 1 if B differs, -errno. */
static int audit_pair(struct audit_state *as, bool counted, struct mp_err *err)
{
	double values[2];
	int ret = as->both ? audit_pair_at_once(as, values, err) : 1;
	bool both = ret == 0;

	if (ret == 1) {
		as->both = false;
		ret = audit_pair_in_turns(as, values, err);
	}
	if (ret || !counted)
		return ret;
	as->audit->nr_both += both;
	return audit_add_pair(as, values[ME_SIDE_A], values[ME_SIDE_B], err);
}

/* Is the number of a run the CPU time of a command? Only such runs can go on at the same time. */
static bool measures_cpu(const struct me_audit_opts *opts)
{
	return !opts->client &&
	       (opts->metric.kind == ME_METRIC_CPU || opts->metric.kind == ME_METRIC_USER);
}

/* May the runs of a pair go on at the same time? If that takes a run, it warms up: *@warmed. */
static int audit_choose_pairing(struct audit_state *as, bool *warmed, struct mp_err *err)
{
	const struct me_audit_opts *opts = as->opts;
	struct me_audit *audit = as->audit;
	char *why = audit->turns_because;
	size_t size = sizeof(audit->turns_because);
	int ret = 0;

	*warmed = false;
	if (opts->pairing == ME_PAIRING_TURNS)
		return 0;
	if (!measures_cpu(opts))
		snprintf(why, size, "only CPU time of commands can be shared out between two runs");
	else if (opts->pairing == ME_PAIRING_BOTH)
		why[0] = 0;
	else if (opts->hooks.prepare)
		snprintf(why, size, "--prepare prepares one run");
	else if (opts->files && opts->files[0])
		snprintf(why, size, "both write the files that are compared");
	else {
		*warmed = true;
		ret = me_stage_watch(&as->stage, why, size, err);
	}
	as->both = !ret && !why[0];
	return ret;
}

/* Is the interval as narrow as the user asked for? */
static bool audit_precise(const struct audit_state *as)
{
	double lo, hi;

	if (as->opts->precision <= 0)
		return true;
	mp_seq_interval(&as->audit->seq, &lo, &hi);
	return (hi - lo) / 2 <= as->opts->precision;
}

/* Should the audit stop now, and with which verdict? The test is valid after every pair. */
static bool audit_decide(const struct audit_state *as, enum me_audit_verdict *verdict)
{
	const struct me_audit_opts *opts = as->opts;
	const struct mp_seq *seq = &as->audit->seq;
	double eq = opts->indifference;
	bool limit = seq->nr >= opts->max_pairs || (seq->nr >= opts->pairs_despite_timeout &&
						    audit_seconds(as) >= opts->max_seconds);

	*verdict = ME_AUDIT_UNDECIDED;
	if (seq->verdict == MP_SEQ_POSITIVE)
		*verdict = ME_AUDIT_FASTER;
	else if (seq->verdict == MP_SEQ_NEGATIVE)
		*verdict = ME_AUDIT_SLOWER;
	else if (eq > 0 && mp_seq_holds(seq, 0) && !mp_seq_holds(seq, eq) &&
		 !mp_seq_holds(seq, -eq))
		*verdict = ME_AUDIT_EQUAL;
	if (limit)
		return true;
	if (seq->nr < opts->min_pairs || *verdict == ME_AUDIT_UNDECIDED)
		return false;
	return *verdict == ME_AUDIT_EQUAL || audit_precise(as);
}

static int value_compare(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

static double audit_median(const double *values, size_t nr)
{
	double *sorted, median;

	sorted = nr ? malloc(nr * sizeof(*sorted)) : NULL;
	if (!sorted)
		return 0;
	memcpy(sorted, values, nr * sizeof(*sorted));
	qsort(sorted, nr, sizeof(*sorted), value_compare);
	median = (sorted[(nr - 1) / 2] + sorted[nr / 2]) / 2;
	free(sorted);
	return median;
}

static int audit_pairs(struct audit_state *as, struct mp_err *err)
{
	const struct me_audit_opts *opts = as->opts;
	bool warmed = false;
	int ret;

	ret = audit_take_reference(as, err);
	if (!ret)
		ret = audit_choose_pairing(as, &warmed, err);
	for (size_t i = warmed; !ret && i < opts->warmup; i++)
		ret = audit_pair(as, false, err);
	if (ret)
		return ret;
	do
		ret = audit_pair(as, true, err);
	while (!ret && !audit_decide(as, &as->audit->verdict));
	return ret;
}

/* Leave nothing behind. A hook that fails here fails the audit, unless that has failed before. */
static int audit_close(struct audit_state *as, int ret, struct mp_err *err)
{
	struct mp_err cause = {""};
	int closed = me_stage_close(&as->stage, &cause);

	if (!closed || ret < 0)
		return ret;
	return mp_err_set(err, -closed, "%s", cause.msg);
}

bool me_audit_compares_output(const struct me_audit_opts *opts)
{
	/* An output that holds the measurement itself differs from run to run. */
	return opts->filter || (!opts->client && opts->metric.kind != ME_METRIC_PATTERN);
}

int me_audit_run(const struct me_audit_opts *opts, struct me_audit *audit, struct mp_err *err)
{
	struct audit_state as = {.opts = opts, .audit = audit, .start_ns = mp_now_ns()};
	int ret;

	memset(audit, 0, sizeof(*audit));
	mp_seq_init(&audit->seq, opts->alpha);
	ret = audit_open(&as, err);
	if (!ret)
		ret = audit_pairs(&as, err);
	audit->seconds = audit_seconds(&as);
	audit->nr_killed = as.stage.server.nr_killed;
	ret = audit_close(&as, ret, err);
	if (ret == 1) {
		audit->verdict = ME_AUDIT_DIFFERS;
		ret = 0;
	}
	mp_seq_interval(&audit->seq, &audit->lo, &audit->hi);
	audit->a.median = audit_median(audit->a.values, audit->nr_pairs);
	audit->b.median = audit_median(audit->b.values, audit->nr_pairs);
	audit->status = as.reference.status;
	if (me_audit_compares_output(opts))
		audit->size_bytes = as.reference.out.size_bytes;
	audit->size_bytes += as.reference.err.size_bytes + as.reference.files.size_bytes;
	return ret;
}

void me_audit_fini(struct me_audit *audit)
{
	mp_seq_fini(&audit->seq);
	free(audit->a.values);
	free(audit->b.values);
	audit->a.values = audit->b.values = NULL;
}
