// SPDX-License-Identifier: Apache-2.0
/*
 * round - the steps of a job from wanted to verified, and which step follows. Each step first looks at
 * the file (step_look): an upgrade ends the round, and begins another one.
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

#include "daemon/policy/deny.h"
#include "daemon/worker/live.h"
#include "daemon/worker/running.h"
#include "daemon/worker/versions.h"
#include "daemon/worker/worker.h"
#include "libprof/cli/exit_status.h"

/* ---- profile ------------------------------------------------------------------------------- */

static int step_profile(struct md_task *t)
{
	const struct md_policy *policy = t->worker->policy;
	struct mp_module module = {0};
	uint64_t nr = 0, wanted = policy->min_samples;
	char why[600];
	int ret;

	if (md_deny(policy, t->job->path, why, sizeof(why)))
		return md_task_advance(t, MP_JOB_REFUSED, "profile", "refused", "%s", why);
	if (t->rule && t->rule->train)
		return md_task_advance(t, MP_JOB_PROFILED, "profile", "train",
				       "a command trains it (%s)", t->rule->name);
	ret = mp_store_find_module(t->worker->store, &t->now.id, &module, t->err);
	if (ret && ret != -ENOENT)
		return ret;
	if (!ret)
		nr = module.nr_samples;
	free(module.path);
	ret = md_count_may(t) ? md_task_has_step(t, "count") : 1;
	if (!ret && nr >= MP_MIN_SAMPLES) {
		ret = md_step_count_begin(t);
		if (ret)
			return ret;
	} else if (!ret && wanted > MP_MIN_SAMPLES) {
		wanted = MP_MIN_SAMPLES; /* it is counted then */
	}
	if (ret < 0)
		return ret;
	snprintf(why, sizeof(why), "it has %" PRIu64 " samples, and waits for %" PRIu64, nr,
		 wanted);
	if (nr < policy->min_samples) {
		ret = md_step_carry(t, nr);
		return ret ? ret : md_task_note(t, why);
	}
	return md_task_advance(t, MP_JOB_PROFILED, "profile", "done", "it has %" PRIu64 " samples",
			       nr);
}

/* ---- write --------------------------------------------------------------------------------- */

/*
 * The command runs as another user, and so does what counts for it. Nothing of theirs is executed or installed:
 * the worker takes the counts, a database, into its own directory, and writes the version itself.
 */
static int run_training(struct md_task *t, const char *counts, struct md_child_result *result)
{
	struct md_work_path trained = md_work_path(&t->dir, "train/counts.db");
	struct md_child as = {.user = md_task_user(t)};
	char profile[PATH_MAX + 16];
	size_t nr = 0;
	char **argv;
	int ret = md_work_dir_train(&t->dir, as.user, t->err);

	if (ret)
		return ret;
	while (t->rule->train[nr])
		nr++;
	argv = calloc(nr + 10, sizeof(*argv));
	if (!argv)
		return mp_err_set(t->err, ENOMEM, "out of memory");
	snprintf(profile, sizeof(profile), "--profile=%s", trained.text);
	memcpy(argv,
	       (char *[]){t->worker->optimize, (char *)"train", (char *)"--report=none", profile,
			  t->job->path, (char *)"--"},
	       6 * sizeof(*argv));
	memcpy(argv + 6, t->rule->train, nr * sizeof(*argv));
	ret = md_task_run(t, argv, &as, result);
	free(argv);
	if (!ret && result->end == MD_CHILD_EXITED && !result->status &&
	    md_task_take(t, trained.text, counts, MD_COUNTS_MAX)) {
		result->status = MP_EXIT_FAILED;
		snprintf(result->reason, sizeof(result->reason), "%.500s", t->err->msg);
	}
	return ret;
}

/* By what a command makes the program do. */
static int write_trained(struct md_task *t, struct md_child_result *result)
{
	struct md_work_path counts = md_work_path(&t->dir, "counts.db");
	int ret;

	/* A worker that was killed may have left them beside other counts. */
	unlink(md_work_path(&t->dir, "counts.db-wal").text);
	unlink(md_work_path(&t->dir, "counts.db-shm").text);
	ret = run_training(t, counts.text, result);
	if (ret || result->end != MD_CHILD_EXITED || result->status)
		return ret;
	ret = md_version_by_counts(t, result);
	unlink(counts.text);
	return ret;
}

/* Writes the new version by the counts of everyday use, and those for the trial. */
static int write_for_trial(struct md_task *t, struct md_child_result *result)
{
	int ret;

	if (!md_running_is(&t->dir))
		return md_versions_for_trial(t, MD_NEW, result);
	ret = md_version_by_counts(t, result);
	if (!md_version_is_written(ret, result))
		return ret;
	ret = md_task_note_variant(t, MD_NEW);
	return ret ? ret : md_versions_for_trial(t, MD_NEW_RUNNING, result);
}

/* By the samples of the service. */
static int write_sampled(struct md_task *t, const char *output, struct md_child_result *result,
			 struct md_carried *carried)
{
	struct md_work_path windows = md_work_path(&t->dir, "train/windows");
	bool audits = md_policy_may_instrument(t->worker->policy, t->rule);
	char db[PATH_MAX + 8], samples[64], counts[PATH_MAX + 16], since[40];
	struct md_line line = {{t->worker->optimize}, 1};
	int ret;

	snprintf(db, sizeof(db), "--db=%s", t->worker->db);
	snprintf(samples, sizeof(samples), "--min-samples=%" PRIu64,
		 t->worker->policy->min_samples);
	snprintf(counts, sizeof(counts), "--counts=%s", windows.text);
	if (audits) {
		md_line_add(&line, "instrument");
		md_line_add(&line, "--kind=audit");
		md_line_add(&line, counts);
	}
	ret = md_task_has_step(t, MD_STEP_AGED);
	if (ret < 0)
		return ret;
	if (ret) {
		snprintf(since, sizeof(since), "--since=@%" PRId64, md_age_since(t));
		md_line_add(&line, since);
	}
	md_line_add(&line, db);
	md_line_add(&line, samples);
	md_line_end(&line, t, output);
	ret = md_version_optimize(t, &line, result, carried);
	if (audits)
		t->job->gain.predicted = 0;
	return ret;
}

/* The output exists. A layout that failed before, in an audit or in use, is not tried again. */
static int take_output(struct md_task *t, const char *output)
{
	struct mp_spent spent = {0};
	struct stat st;
	bool rejected;
	char *copy;
	int ret = md_file_hash(output, t->job->layout);

	if (ret)
		return mp_err_set(t->err, -ret, "%s: %s", output, strerror(-ret));
	if (!stat(output, &st))
		spent.disk_bytes = (uint64_t)st.st_size;
	ret = mp_store_add_spent(t->worker->store, time(NULL), &spent, t->err);
	if (!ret)
		ret = mp_store_is_rejected(t->worker->store, &t->job->id, t->job->layout, &rejected,
					   t->err);
	if (ret)
		return ret;
	if (rejected)
		return md_task_advance(t, MP_JOB_NOT_FASTER, "write", "known",
				       "the same version was tried before, and was not kept");
	copy = strdup(output);
	if (!copy)
		return mp_err_set(t->err, ENOMEM, "out of memory");
	free(t->job->output);
	t->job->output = copy;
	if (t->job->gain.predicted > 0)
		return md_task_advance(t, MP_JOB_WRITTEN, "write", "done",
				       "taken branches are predicted to change by %+.1f %%",
				       100 * (t->job->gain.predicted - 1));
	return md_task_advance(t, MP_JOB_WRITTEN, "write", "done", "a new version was written");
}

static int step_write(struct md_task *t)
{
	struct md_work_path output = md_work_path(&t->dir, "output");
	struct md_carried carried = {0};
	struct md_child_result r;
	int ret;

	if (t->rule && t->rule->train)
		ret = write_trained(t, &r);
	else if (md_trial_may(t))
		ret = write_for_trial(t, &r);
	else
		ret = write_sampled(t, output.text, &r, &carried);
	if (!ret && carried.used)
		ret = md_step_matched(t, &carried);
	else if (!ret && r.end == MD_CHILD_EXITED && r.status == MP_EXIT_NO_PROFILE)
		ret = md_step_unmatched(t, r.reason);
	if (ret)
		return ret;
	if (r.end != MD_CHILD_EXITED)
		return md_task_advance(t, MP_JOB_FAILED, "write", "failed",
				       "morph-optimize ended by signal %d", r.status);
	switch (r.status) {
	case MP_EXIT_DONE: return take_output(t, output.text);
	case MP_EXIT_NO_PROFILE: return md_step_nothing(t, r.reason);
	case MP_EXIT_REFUSED:
		return md_task_advance(t, MP_JOB_REFUSED, "write", "refused", "%s", r.reason);
	default:
		return md_task_advance(t, MP_JOB_FAILED, "write", "failed", "%s",
				       r.reason[0] ? r.reason : "morph-optimize failed");
	}
}

/* ---- verify -------------------------------------------------------------------------------- */

static int step_verify(struct md_task *t)
{
	struct md_work_path output = md_work_path(&t->dir, "output");
	struct md_child_result r;
	char hash[33];
	int ret;

	if (md_file_hash(output.text, hash) || strcmp(hash, t->job->layout))
		return md_task_advance(t, MP_JOB_FAILED, "verify", "failed",
				       "the version that was written is not there any more");
	/* Each version of a trial was proved by the call that wrote it. Before one of them stays, it is proved again. */
	if (md_trial_may(t))
		return md_task_advance(
			t, MP_JOB_VERIFIED, "verify", "done",
			"it was proved, when it was written, to do the same as the original");
	ret = md_version_verify(t, MD_NEW, &r);
	if (ret)
		return ret;
	if (r.end == MD_CHILD_EXITED && !r.status)
		return md_task_advance(t, MP_JOB_VERIFIED, "verify", "done",
				       "it is proved to do the same as the original");
	if (r.end == MD_CHILD_EXITED && r.status == MP_EXIT_REFUSED)
		return md_task_advance(t, MP_JOB_REFUSED, "verify", "refused", "%s", r.reason);
	return md_task_advance(t, MP_JOB_FAILED, "verify", "failed", "%s",
			       r.reason[0] ? r.reason : "morph-optimize verify failed");
}

/* ---- which step ---------------------------------------------------------------------------- */

static int take_step(struct md_task *t)
{
	switch (t->job->state) {
	case MP_JOB_WANTED: return step_profile(t);
	case MP_JOB_PROFILED: return step_write(t);
	case MP_JOB_WRITTEN: return step_verify(t);
	case MP_JOB_VERIFIED: return md_step_audit(t);
	case MP_JOB_COUNTING: return md_step_count(t);
	case MP_JOB_AUDITING: return md_step_in_process(t);
	case MP_JOB_TRYING: return md_step_trial(t);
	case MP_JOB_AUDITED: return md_step_adopt(t);
	case MP_JOB_ADOPTED: return md_step_probation(t);
	case MP_JOB_UNDOING: return md_step_undo(t);
	default: return md_step_again(t);
	}
}

/*
 * The store, which others may write, contradicts itself: the round begins again, but only once. If
 * the new round contradicts itself, too, it fails, and waits for the time `retry`.
 */
static int repair(struct md_task *t)
{
	int repaired = md_task_has_step(t, "repair");

	if (repaired < 0)
		return repaired;
	if (repaired)
		return md_task_advance(t, MP_JOB_FAILED, "contradiction", "failed",
				       "the record of the round did not fit together again");
	return md_task_begin_again(t, "repair", "the record of the round did not fit together");
}

int md_round_step(struct md_worker *worker, struct mp_job *job, struct mp_err *err)
{
	struct md_task t = {.worker = worker,
			    .job = job,
			    .rule = md_policy_rule(worker->policy, job->path),
			    .err = err};
	int ret = md_work_dir_open(worker->state_dir, job->path, &t.dir, err);

	if (!md_live_has(worker, job->path))
		md_spare_remove(job->path);
	if (!ret)
		ret = md_step_look(&t);
	if (!ret)
		ret = take_step(&t);
	if (!ret)
		ret = md_step_remember(&t);
	/* A version that is in place must not be forgotten. */
	if (ret == -EEXIST && (!mp_job_state_in_place(job->state) || job->state == MP_JOB_KEPT))
		ret = repair(&t);
	/* Nothing in the directory is needed any more; it may be empty. Processes may go on with a version in use. */
	if (ret >= 0 && mp_job_state_ends(job->state) && job->state != MP_JOB_ADVISED &&
	    !(job->state == MP_JOB_KEPT && md_running_is(&t.dir))) {
		int left = md_running_end(&t);

		ret = left ? left : ret;
		if (!left)
			md_work_dir_remove(&t.dir);
	}
	return ret;
}

int md_round_leave(struct md_worker *worker, struct mp_job *job, struct mp_err *err)
{
	struct md_task t = {.worker = worker, .job = job, .err = err};
	struct md_child_result r = {0};
	int ret = md_work_dir_open(worker->state_dir, job->path, &t.dir, err);

	if (!ret && md_running_is(&t.dir))
		ret = md_running_undo(&t);
	if (!ret && md_live_leave(&t))
		return 0;
	if (!ret)
		ret = md_file_look(job->path, &t.now, err);
	if (ret == -ENOENT)
		return 0;
	if (ret || !t.now.is_output || !mp_id_equal(&t.now.original, &job->id))
		return ret;
	ret = md_task_restore(&t, &r);
	if (!ret && (r.end != MD_CHILD_EXITED || r.status))
		ret = mp_err_set(err, EIO, "%s: the original could not be put back: %s", job->path,
				 r.reason);
	return ret;
}
