// SPDX-License-Identifier: Apache-2.0
/*
 * step_audit - the step from verified to audited: runs morph-audit as the rule says, and keeps its
 * verdict as evidence. Without a way to audit, the round ends with advice.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/worker/worker.h"
#include "libprof/cli/exit_status.h"

#define MAX_OPTIONS 16

/* The command line; texts that were made for it are freed with it. */
struct line {
	char *words[MAX_OPTIONS];
	size_t nr;
	char **argv;
	bool failed;
};

static void add(struct line *line, const char *option, const char *value)
{
	if (line->nr == MAX_OPTIONS ||
	    asprintf(&line->words[line->nr], "%s%s", option, value) < 0) {
		line->failed = true;
		return;
	}
	line->nr++;
}

static void finish(struct line *line, char **command)
{
	size_t nr = 0;

	while (command[nr])
		nr++;
	line->argv = line->failed ? NULL : calloc(line->nr + nr + 1, sizeof(char *));
	if (!line->argv)
		return;
	memcpy(line->argv, line->words, line->nr * sizeof(char *));
	memcpy(line->argv + line->nr, command, nr * sizeof(char *));
}

static void fini(struct line *line)
{
	for (size_t i = 0; i < line->nr; i++)
		free(line->words[i]);
	free(line->argv);
}

static void make_line(struct md_task *t, const char *output, const char *pairs, struct line *line)
{
	struct md_work_path train = md_work_path(&t->dir, "train");
	const struct md_rule *r = t->rule;
	bool library = md_policy_is_library(t->job->path);
	double limit_s = r->audit_s > 0 ? r->audit_s : t->worker->policy->audit_s;
	char limit[64];

	snprintf(limit, sizeof(limit), "--max-seconds=%.0f", limit_s);
	add(line, t->worker->audit, "");
	add(line, "--json", "");
	add(line, limit, "");
	add(line, "--export=", pairs);
	/* The directory train/ belongs to the user who audits; $TMPDIR may be root's. */
	add(line, "--dir=", train.text);
	/* The pairs of an audit that was stopped. */
	if (!access(pairs, R_OK))
		add(line, "--continue=", pairs);
	add(line, library ? "--library=" : "--at=", t->job->path);
	if (!library)
		add(line, "--command", "");
	if (!library)
		add(line, t->job->path, "");
	add(line, output, "");
	add(line, "--", "");
	finish(line, r->command ? r->command : r->train);
}

/* The verdict of an audit that ended. */
static int judge(struct md_task *t, const struct md_evidence *e, const char *output)
{
	bool known = e->gain.highest > 0;
	int ret;

	t->job->gain.ratio = e->gain.ratio;
	t->job->gain.lowest = e->gain.lowest;
	t->job->gain.highest = e->gain.highest;
	if (!strcmp(e->verdict, "faster"))
		return md_task_advance(t, MP_JOB_AUDITED, "audit", "faster",
				       "%.3f times as fast (%.3f to %.3f), %lu pairs of runs",
				       e->gain.ratio, e->gain.lowest, e->gain.highest, e->pairs);
	if (!strcmp(e->verdict, "undecided"))
		return md_task_advance(t, MP_JOB_UNDECIDED, "audit", "undecided",
				       "%lu pairs of runs could not tell", e->pairs);
	ret = mp_store_reject_layout(t->worker->store, &t->job->id, t->job->layout, e->verdict,
				     time(NULL), t->err);
	if (ret)
		return ret;
	unlink(output);
	if (strcmp(e->verdict, "slower") && strcmp(e->verdict, "equal"))
		return md_task_advance(t, MP_JOB_NOT_FASTER, "audit", "differs",
				       "it prints something else than the original");
	return md_task_advance(t, MP_JOB_NOT_FASTER, "audit", e->verdict,
			       known ? "%.3f times as fast (%.3f to %.3f), %lu pairs of runs"
				     : "not shown to be faster",
			       e->gain.ratio, e->gain.lowest, e->gain.highest, e->pairs);
}

static int run_audit(struct md_task *t, const char *output, struct md_child_result *r)
{
	struct md_work_path report = md_work_path(&t->dir, "report"),
			    pairs = md_work_path(&t->dir, "train/pairs.csv");
	struct md_child as = {.user = md_task_user(t), .out = report.text};
	struct line line = {0};
	struct stat st;
	int ret = 0;

	if (stat(pairs.text, &st))
		ret = md_work_dir_train(&t->dir, as.user, t->err);
	if (ret)
		return ret;
	make_line(t, output, pairs.text, &line);
	ret = line.argv ? md_task_run(t, line.argv, &as, r)
			: mp_err_set(t->err, ENOMEM, "out of memory");
	fini(&line);
	return ret;
}

static const char *why_no_audit(const struct md_task *t)
{
	if (!t->rule && t->worker->policy->counting && md_policy_is_library(t->job->path) &&
	    !md_policy_may_live(t->worker->policy, t->rule))
		return "everyday use decides about libraries only in running processes (`live = yes'), and no "
		       "rule says how to audit it, so it is only advised";
	if (!t->rule && t->worker->policy->counting)
		return "everyday use could not decide (morph history says why), and no rule says "
		       "how to audit it, so it is only advised";
	if (!t->rule)
		return "no rule says how to audit it, so it is only advised";
	if (t->rule->audit == MD_AUDIT_IN_PROCESS)
		return "an audit inside it needs `mode = adopt' in its rule, so it is only advised";
	return "it cannot be audited: its rule names no command, so it is only advised";
}

/* An audit that failed writes the reason in place of its result. Its messages may begin with progress. */
static int fail(struct md_task *t, const char *report, struct md_child_result *r)
{
	if (r->end == MD_CHILD_EXITED)
		md_evidence_read_failure(report, r->reason, sizeof(r->reason));
	else if (r->end == MD_CHILD_DIED)
		snprintf(r->reason, sizeof(r->reason), "morph-audit died of signal %d", r->status);
	return md_task_advance(t, MP_JOB_FAILED, "audit", "failed", "%s",
			       r->reason[0] ? r->reason : "morph-audit failed without a message");
}

int md_step_audit(struct md_task *t)
{
	struct md_work_path output = md_work_path(&t->dir, "output"),
			    report = md_work_path(&t->dir, "report");
	struct md_evidence evidence = {0};
	struct md_child_result r;
	char hash[33];
	int ret;

	if (md_policy_may_instrument(t->worker->policy, t->rule))
		return md_step_instrument(t);
	if (md_trial_may(t))
		return md_step_trial_begin(t);
	if (!t->rule || t->rule->audit == MD_AUDIT_NONE || t->rule->audit == MD_AUDIT_IN_PROCESS)
		return md_task_advance(t, MP_JOB_ADVISED, "advise", "not audited", "%s",
				       why_no_audit(t));
	if (md_file_hash(output.text, hash) || strcmp(hash, t->job->layout))
		return md_task_advance(t, MP_JOB_FAILED, "audit", "failed",
				       "the version that was written is not there any more");
	ret = run_audit(t, output.text, &r);
	if (ret)
		return ret;
	if (r.end != MD_CHILD_EXITED ||
	    (r.status && r.status != MP_EXIT_NOT_FASTER && r.status != MP_EXIT_DIFFERS) ||
	    !md_evidence_read_audit(report.text, &evidence))
		return fail(t, report.text, &r);
	snprintf(evidence.original, sizeof(evidence.original), "%s", t->job->file_hash);
	snprintf(evidence.output, sizeof(evidence.output), "%s", hash);
	ret = md_evidence_save(&t->dir, &evidence, t->err);
	return ret ? ret : judge(t, &evidence, output.text);
}
