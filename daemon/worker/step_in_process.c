// SPDX-License-Identifier: Apache-2.0
/*
 * step_in_process - audits inside the running program. A version that times two layouts of its functions is in
 * the original's place for a while (auditing); morphd reads its times beside it. Then the original is put
 * back, and a version without stubs is written, in which each function has the order that won.
 *
 * Killed at any moment, the bytes at the path say how far it was: the timing version's, or the original's.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/worker/worker.h"
#include "libprof/cli/exit_status.h"

/* ---- in place ------------------------------------------------------------------------------ */

/* ---- beside the program -------------------------------------------------------------------- */

struct watch {
	struct md_task *task;
	struct stat file;
};

/* Versions of other programs on probation do not wait until an audit is over. */
static void look_at_others(struct md_task *t)
{
	struct mp_err err = {""};
	struct mp_job *jobs;
	size_t nr;

	if (mp_store_list_jobs(t->worker->store, &jobs, &nr, &err))
		return;
	for (size_t i = 0; i < nr; i++)
		if (jobs[i].state == MP_JOB_ADOPTED || jobs[i].state == MP_JOB_UNDOING)
			while (md_round_step(t->worker, &jobs[i], &err) > 0)
				;
	mp_store_free_jobs(jobs, nr);
}

static bool has_crashed(struct md_task *t)
{
	return md_task_crashes(t, t->job->adopted_s) > t->job->before_crashes;
}

/* Is there a reason to end the audit? */
static bool look(void *arg)
{
	struct watch *w = arg;
	struct stat st;

	look_at_others(w->task);
	return has_crashed(w->task) || lstat(w->task->job->path, &st) ||
	       st.st_ino != w->file.st_ino || st.st_ctim.tv_sec != w->file.st_ctim.tv_sec;
}

/* Seconds that the audit may still take. */
static double time_left(const struct md_task *t)
{
	const struct md_rule *rule = t->rule;
	double all = rule && rule->audit_s > 0 ? rule->audit_s : t->worker->policy->audit_s;

	if (!md_policy_may_instrument(t->worker->policy, rule) || !t->worker->collector[0])
		return 0;
	return all - (double)(time(NULL) - t->job->adopted_s);
}

/* Reads the program's times until the audit's time is over. */
static int listen(struct md_task *t, double left_s)
{
	struct md_work_path windows = md_work_path(&t->dir, "train/windows"),
			    db = md_work_path(&t->dir, "train/audit.db");
	char file[PATH_MAX + 16], store[PATH_MAX + 16], hash[33];
	char *argv[] = {t->worker->collector, (char *)"run", file, store, NULL};
	struct watch watch = {.task = t};
	struct md_child as = {
		.user = md_task_user(t), .limit_s = left_s, .look = look, .look_arg = &watch};
	struct md_child_result r;

	/*
	 * A change of the file ends the audit: watch notices later changes, and the hash shows
	 * earlier ones.
	 */
	if (lstat(t->job->path, &watch.file) || md_file_hash(t->job->path, hash) ||
	    strcmp(hash, t->job->layout))
		return 0;
	snprintf(file, sizeof(file), "--audit=%s", windows.text);
	snprintf(store, sizeof(store), "--db=%s", db.text);
	return md_task_run_beside(t, argv, &as, &r);
}

/* ---- what it found ------------------------------------------------------------------------- */

struct found {
	unsigned int nr_new, nr_original, nr_undecided;
	double saved, least, most; /* parts of the time that the new orders save */
	unsigned long pairs;
};

/* The part of its time that a function saves that is faster by @by. */
static double saved(double share, json_t *by)
{
	double faster = json_number_value(by);

	return share >= 0 && share <= 1 && faster > -0.9 && faster < 100
		       ? share * (1 - 1 / (1 + faster))
		       : 0;
}

static void add_function(struct found *f, json_t *entry)
{
	const char *is = json_string_value(json_object_get(entry, "faster_is"));
	const char *order = json_string_value(json_object_get(entry, "order"));
	double share = json_number_value(json_object_get(entry, "share"));

	f->pairs += (unsigned long)json_integer_value(json_object_get(entry, "pairs"));
	if (!is || !order)
		return;
	f->nr_undecided += !strcmp(is, "undecided");
	f->nr_original += !strcmp(is, "original");
	if (strcmp(is, "new") || strcmp(order, "new"))
		return;
	f->nr_new++;
	f->saved += saved(share, json_object_get(entry, "faster_by"));
	f->least += saved(share, json_object_get(entry, "lowest"));
	f->most += saved(share, json_object_get(entry, "highest"));
}

/* Writes the version that won. Return: as md_task_run(). */
static int write_winner(struct md_task *t, struct found *found, struct md_child_result *r)
{
	struct md_work_path report = md_work_path(&t->dir, "report"),
			    output = md_work_path(&t->dir, "output"),
			    db = md_work_path(&t->dir, "audit.db");
	struct md_child as = {.out = report.text};
	char store[PATH_MAX + 8], samples[64], audited[PATH_MAX + 16];
	char *argv[] = {t->worker->optimize, store,	  samples,	audited, (char *)"--json",
			(char *)"-o",	     output.text, t->job->path, NULL};
	json_t *root, *entry;
	size_t i;
	int ret;

	snprintf(store, sizeof(store), "--db=%s", t->worker->db);
	snprintf(samples, sizeof(samples), "--min-samples=%" PRIu64,
		 t->worker->policy->min_samples);
	snprintf(audited, sizeof(audited), "--audited=%s", db.text);
	ret = md_task_run_beside(t, argv, &as, r);
	if (ret || r->end != MD_CHILD_EXITED || r->status)
		return ret;
	root = json_load_file(report.text, 0, NULL);
	json_array_foreach(json_object_get(root, "decided"), i, entry)
	{
		add_function(found, entry);
	}
	t->job->gain.predicted = json_number_value(json_object_get(root, "predicted_taken_ratio"));
	if (!(t->job->gain.predicted >= 0 && t->job->gain.predicted < 1e6))
		t->job->gain.predicted = 0;
	json_decref(root);
	unlink(report.text);
	return 0;
}

static int end_without_gain(struct md_task *t, enum mp_job_state to, const char *verdict,
			    const char *reason)
{
	int ret = md_task_restart(t, "restart original");

	return ret ? ret : md_task_advance(t, to, "audit", verdict, "%s", reason);
}

static int judge(struct md_task *t, const struct found *f)
{
	struct md_work_path output = md_work_path(&t->dir, "output");
	struct md_evidence e = {.verdict = "faster", .pairs = f->pairs};
	bool rejected;
	int ret;

	if (!f->nr_new || f->least <= 0)
		return f->nr_original && !f->nr_undecided
			       ? end_without_gain(t, MP_JOB_NOT_FASTER, "not faster",
						  "each audited function is faster as it was")
			       : end_without_gain(
					 t, MP_JOB_UNDECIDED, "undecided",
					 f->pairs
						 ? "of no function the new order was found faster"
						 : "no process gave a window that could be judged");
	e.gain = t->job->gain;
	e.gain.ratio = 1 / (1 - f->saved);
	e.gain.lowest = 1 / (1 - f->least);
	e.gain.highest = 1 / (1 - f->most);
	t->job->gain = e.gain;
	ret = md_file_hash(output.text, t->job->layout);
	if (ret)
		return mp_err_set(t->err, -ret, "%s: %s", output.text, strerror(-ret));
	ret = mp_store_is_rejected(t->worker->store, &t->job->id, t->job->layout, &rejected,
				   t->err);
	if (!ret && rejected)
		return end_without_gain(t, MP_JOB_NOT_FASTER, "known",
					"the same version was tried before, and was not kept");
	snprintf(e.original, sizeof(e.original), "%s", t->job->file_hash);
	snprintf(e.output, sizeof(e.output), "%s", t->job->layout);
	if (!ret)
		ret = md_evidence_save(&t->dir, &e, t->err);
	if (!ret && !md_policy_may_instrument(t->worker->policy, t->rule))
		ret = md_task_restart(t, "restart original");
	if (ret)
		return ret;
	return md_task_advance(
		t, MP_JOB_AUDITED, "audit", "faster",
		"%.3f times as fast (%.3f to %.3f) by %u functions; %u are faster as "
		"they were, %u undecided; %lu pairs of windows",
		e.gain.ratio, e.gain.lowest, e.gain.highest, f->nr_new, f->nr_original,
		f->nr_undecided, f->pairs);
}

/* The original is in its place again. */
static int conclude(struct md_task *t)
{
	struct md_work_path from = md_work_path(&t->dir, "train/audit.db"),
			    db = md_work_path(&t->dir, "audit.db");
	struct found found = {0};
	struct md_child_result r;
	int ret;

	if (access(from.text, F_OK))
		return end_without_gain(t, MP_JOB_UNDECIDED, "undecided",
					"no process ran the version that times itself");
	ret = md_task_take(t, from.text, db.text, MD_COUNTS_MAX);
	if (ret)
		return end_without_gain(t, MP_JOB_FAILED, "failed", t->err->msg);
	ret = write_winner(t, &found, &r);
	if (ret)
		return ret;
	if (r.end == MD_CHILD_EXITED && !r.status)
		return judge(t, &found);
	if (r.end == MD_CHILD_EXITED && r.status == MP_EXIT_NO_PROFILE)
		return end_without_gain(t, MP_JOB_UNDECIDED, "undecided",
					"no process ran the version that times itself");
	return end_without_gain(t, MP_JOB_FAILED, "failed",
				r.reason[0] ? r.reason : "morph-optimize failed");
}

int md_step_in_process(struct md_task *t)
{
	double left_s;
	int ret;

	if (!strcmp(t->now.hash, t->job->file_hash))
		return conclude(t);
	ret = md_task_restart(t, "restart audited");
	left_s = time_left(t);
	if (!ret && left_s > 0 && !has_crashed(t))
		ret = listen(t, left_s);
	if (ret)
		return ret;
	if (has_crashed(t))
		return md_task_advance(t, MP_JOB_UNDOING, "probation", "crashed",
				       "it crashed while a version that times itself was in place");
	/* Another program changed the file: the next look at the file decides what follows. */
	ret = md_step_look(t);
	if (ret)
		return ret;
	/* If it cannot be put back, the state stays: each start tries again, until somebody mends it. */
	ret = md_task_put_back(t);
	return ret ? ret : conclude(t);
}
