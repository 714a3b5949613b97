// SPDX-License-Identifier: Apache-2.0
/*
 * train_keep - the end of a training: audits the new version, and keeps it if it is faster, or under
 * another name if the audit cannot decide. Called by train.c.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "editor/base/defaults.h"
#include "editor/refine/audit_tool.h"
#include "editor/train/train_private.h"
#include "libprof/audit/sequential_test.h"
#include "libprof/cli/exit_status.h"

/* Publishes the debug file beside the output, and first, so that no output lacks one. */
static int keep_debug(struct me_trainer *t)
{
	struct me_optimize_report *r = &t->report->final;
	struct me_train_path debug = me_train_final_debug(t);
	struct stat a, b;
	char *kept;

	if (!r->debug_output)
		return 0;
	if (asprintf(&kept, "%s.debug", t->options->output) < 0)
		return mp_err_set(t->err, ENOMEM, "out of memory");
	free(r->debug_output);
	r->debug_output = kept;
	if (!stat(r->debug_file, &a) && !stat(kept, &b) && a.st_dev == b.st_dev &&
	    a.st_ino == b.st_ino)
		return mp_err_set(t->err, EINVAL, "%s: is the input's debug file; give another -o",
				  kept);
	if (rename(debug.text, kept))
		return mp_err_set(t->err, errno, "%s: %s", kept, strerror(errno));
	return 0;
}

static int keep_as(struct me_trainer *t, const char *name, const char *as)
{
	struct me_train_path file = me_train_path(t, name);

	if (rename(file.text, as))
		return mp_err_set(t->err, errno, "%s: %s", as, strerror(errno));
	return 0;
}

/*
 * Keeps the new version and the pairs of the audit, so that the audit can be continued. The debug
 * file gets the name that the new version refers to.
 */
static int keep_undecided(struct me_trainer *t)
{
	struct me_train_report *r = t->report;
	char csv[sizeof(t->version) + 8];
	int rc;

	if (asprintf(&r->undecided, "%s.undecided", t->options->output) < 0 ||
	    asprintf(&r->pairs, "%s.csv", r->undecided) < 0)
		return mp_err_set(t->err, ENOMEM, "out of memory");
	snprintf(csv, sizeof(csv), "%s.csv", t->version);
	rc = keep_debug(t);
	if (!rc)
		rc = keep_as(t, csv, r->pairs);
	if (!rc)
		rc = keep_as(t, "final", r->undecided);
	if (rc)
		return rc;
	r->end = ME_TRAIN_UNDECIDED;
	return mp_err_set(t->err, EAGAIN,
			  "%s: the audit could not decide; the new version is kept as %s", t->file,
			  r->undecided);
}

/* The part of ME_TRAIN_ALPHA that the first audit may use; refining needs the rest. */
static double train_first_alpha(const struct me_train_options *options)
{
	return options->no_refine ? ME_TRAIN_ALPHA : me_refine_alpha(ME_TRAIN_ALPHA);
}

size_t me_train_least_pairs(const struct me_train_options *options)
{
	return mp_seq_least_pairs(train_first_alpha(options));
}

double me_train_audit_seconds(size_t nr_pairs, double run_s)
{
	/* A's first run and a pair to warm up. A fifth more for copies of files and slow moments. */
	return 1.2 * (double)(2 * nr_pairs + 3) * run_s;
}

static double audit_limit_s(const struct me_trainer *t)
{
	double wanted = me_train_audit_seconds(ME_AUDIT_PAIRS, t->report->plain_wall_s);

	if (t->options->audit_seconds > 0)
		return t->options->audit_seconds;
	if (wanted < ME_AUDIT_SECONDS)
		return ME_AUDIT_SECONDS;
	return wanted < ME_AUDIT_SECONDS_MAX ? ceil(wanted) : ME_AUDIT_SECONDS_MAX;
}

/* Warns before time is spent that the audit will take long, or cannot decide in its limit. */
static void warn_of_limit(const struct me_trainer *t)
{
	const struct me_train_options *o = t->options;
	double run_s = t->report->plain_wall_s, limit_s = t->report->audit_limit_s;
	size_t least = me_train_least_pairs(o);
	char what[320];

	if (!o->warn || o->audit_pairs)
		return;
	if (me_train_audit_seconds(least, run_s) > 1.2 * limit_s)
		snprintf(
			what, sizeof(what),
			"a run takes %.1f s: in the audit's %.0f s there is no time for %zu pairs, "
			"and fewer cannot decide; train with a shorter piece of work, or allow "
			"--audit-seconds=%.0f",
			run_s, limit_s, least, me_train_audit_seconds(2 * least, run_s) + 1);
	else if (o->audit_seconds <= 0 && limit_s > ME_AUDIT_SECONDS)
		snprintf(what, sizeof(what),
			 "a run takes %.1f s: the audit may take %.0f s, for %d pairs of runs",
			 run_s, limit_s, ME_AUDIT_PAIRS);
	else
		return;
	o->warn(what);
}

static void set_verdict(struct me_train_report *r, const struct me_verdict *v)
{
	snprintf(r->verdict, sizeof(r->verdict), "%s", v->verdict);
	snprintf(r->difference, sizeof(r->difference), "%s", v->difference);
	r->speedup = v->speedup;
	r->lowest = v->lowest;
	r->highest = v->highest;
	r->nr_pairs = v->nr_pairs;
	r->level = 100 * (1 - v->alpha);
}

int me_train_audit(struct me_trainer *t)
{
	struct me_train_path final = me_train_path(t, "final"),
			     json = me_train_path(t, "audit.json"),
			     csv = me_train_path(t, "final.csv");
	const struct me_train_options *o = t->options;
	struct me_audit_tool audit = {.a = t->file,
				      .b = final.text,
				      .at = t->file,
				      .command = o->command,
				      .alpha = train_first_alpha(o),
				      .pairs = o->audit_pairs,
				      .filter = o->filter,
				      .json = json.text,
				      .csv = csv.text,
				      .quiet = o->has_profile};
	int rc;

	t->report->audit = -1;
	snprintf(t->version, sizeof(t->version), "final");
	if (o->no_audit)
		return 0;
	t->report->audit_limit_s = audit.limit_s = audit_limit_s(t);
	warn_of_limit(t);
	rc = me_audit_tool_run(&audit, &t->report->first, &t->report->audit, t->err);
	if (!rc)
		set_verdict(t->report, &t->report->first);
	return rc;
}

/* The result of refining replaces that of the first audit. */
static void take_refined(struct me_trainer *t)
{
	struct me_train_report *r = t->report;
	const struct me_refine_report *refinement = &r->refinement;

	enum me_refine_best version = refinement->best ? refinement->best : refinement->undecided;

	if (refinement->best)
		set_verdict(r, &refinement->estimate);
	else if (refinement->undecided)
		set_verdict(r, &refinement->undecided_verdict);
	if (version == ME_REFINE_SECOND)
		snprintf(t->version, sizeof(t->version), "%s", ME_REFINE_SECOND_NAME);
}

/*
 * Goes on with the undecided audit of a version that may be faster, as long as refining may still
 * take. The test stays valid however often its result is looked at, so alpha stays, too.
 */
static int audit_further(struct me_trainer *t)
{
	struct me_train_path final = me_train_path(t, "final"),
			     json = me_train_path(t, "audit.json"), csv;
	struct me_train_report *r = t->report;
	double left_s = me_train_budget_s(t) - r->refinement.seconds;
	char name[sizeof(t->version) + 8];
	struct me_verdict verdict;
	struct me_audit_tool audit = {.a = t->file,
				      .b = final.text,
				      .at = t->file,
				      .command = t->options->command,
				      .alpha = 1 - r->level / 100,
				      .limit_s = left_s,
				      .filter = t->options->filter,
				      .json = json.text,
				      .quiet = true};
	int rc;

	if (strcmp(r->verdict, "undecided") || r->speedup <= 1 || t->options->audit_pairs ||
	    r->nr_pairs >= ME_MAX_PAIRS ||
	    left_s < me_train_audit_seconds(ME_FURTHER_PAIRS, r->plain_wall_s))
		return 0;
	snprintf(name, sizeof(name), "%s.csv", t->version);
	csv = me_train_path(t, name);
	audit.csv = audit.earlier = csv.text;
	if (t->options->say)
		t->options->say("auditing further");
	rc = me_audit_tool_run(&audit, &verdict, &r->audit, t->err);
	if (!rc)
		set_verdict(r, &verdict);
	return rc;
}

int me_train_judge(struct me_trainer *t)
{
	struct me_train_report *r = t->report;
	int rc = 0;

	if (t->options->no_audit)
		return 0;
	if (r->refined) {
		take_refined(t);
		rc = audit_further(t);
	}
	if (rc)
		return rc;
	if (!strcmp(r->verdict, "faster"))
		return 0;
	if (!strcmp(r->verdict, "undecided"))
		return keep_undecided(t);
	if (r->audit == MP_EXIT_DIFFERS)
		return mp_err_set(t->err, EBADE,
				  "%s: the new version's output differs (%s); nothing was written",
				  t->file, r->difference);
	return mp_err_set(t->err, ECANCELED, "%s: the new version is %s here; nothing was written",
			  t->file, !strcmp(r->verdict, "slower") ? "slower" : "not faster");
}

int me_train_keep(struct me_trainer *t)
{
	int rc = keep_debug(t);

	if (!rc)
		rc = keep_as(t, "final", t->options->output);
	if (!rc)
		t->report->end = ME_TRAIN_KEPT;
	return rc;
}
