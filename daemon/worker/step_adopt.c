// SPDX-License-Identifier: Apache-2.0
/*
 * step_adopt - the steps that change a file: from audited to adopted, and from undoing to undone. Both
 * look at the bytes at the path first, so a step that was killed between the change and its record
 * is only recorded.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/policy/deny.h"
#include "daemon/worker/running.h"
#include "daemon/worker/versions.h"
#include "daemon/worker/worker.h"
#include "libprof/cli/exit_status.h"

/* Only this user can have written the evidence; the store may be another user's. */
static bool is_proved(struct md_task *t, const char *output)
{
	struct md_evidence e;
	char hash[33];

	return md_evidence_load(&t->dir, &e) && !strcmp(e.verdict, "faster") &&
	       e.gain.lowest >= 1 && !strcmp(e.original, t->job->file_hash) &&
	       !strcmp(e.output, t->job->layout) && !md_file_hash(output, hash) &&
	       !strcmp(e.output, hash);
}

/*
 * The file at the path comes first: then each process that starts has the new version, and running ones are those that were
 * there. If one of them refuses, it keeps the original, as after any adoption without --live. Return: 0; 1: the history
 * has it; -errno.
 */
static int adopt_running(struct md_task *t)
{
	struct md_child_result r;
	int ret = md_task_has_step(t, "live");

	if (ret)
		return ret < 0 ? ret : 0;
	ret = md_running_put(t, MD_NEW_RUNNING, &r);
	if (ret)
		return ret;
	if (r.end == MD_CHILD_EXITED && !r.status)
		return md_task_advance(t, t->job->state, "live", "done",
				       "running processes have the new version");
	return md_task_advance(t, t->job->state, "live", "refused",
			       "running processes keep what they have until they end: %s",
			       r.reason[0] ? r.reason : "morph live failed");
}

/* `morph-optimize adopt` proves the file again; what running processes get has to be proved again here. */
static int replace(struct md_task *t, bool live, struct md_child_result *r)
{
	int ret = live ? md_version_verify(t, MD_NEW_RUNNING, r) : 0;

	if (!live || md_version_is_written(ret, r))
		ret = md_task_replace(t, MD_NEW, r);
	return ret;
}

/* Is the version in its place? A command that failed may have renamed it to the path before. */
static bool is_in_place(const struct md_task *t, const struct md_child_result *r)
{
	char hash[33];

	if (r->end == MD_CHILD_EXITED && !r->status)
		return true;
	return !md_file_hash(t->job->path, hash) && !strcmp(hash, t->job->layout);
}

int md_step_adopt(struct md_task *t)
{
	struct md_work_path output = md_work_path(&t->dir, "output");
	bool there = !strcmp(t->now.hash, t->job->layout);
	bool live = md_running_is(&t->dir) && md_policy_may_live(t->worker->policy, t->rule);
	uint64_t crashes = t->job->before_crashes;
	struct md_child_result r;
	char why[600];
	int ret, tried;

	if (!there && md_deny(t->worker->policy, t->job->path, why, sizeof(why)))
		return md_task_advance(t, MP_JOB_REFUSED, "adopt", "refused", "%s", why);
	if (!there && md_policy_mode_of(t->worker->policy, t->rule) != MD_POLICY_ADOPT)
		return md_task_advance(t, MP_JOB_ADVISED, "advise", "faster",
				       "%.3f times as fast; the policy says: advise",
				       t->job->gain.ratio);
	if (!there && !is_proved(t, output.text))
		return md_task_advance(t, MP_JOB_FAILED, "adopt", "failed",
				       "there is no evidence that this very version is faster");
	/* The samples until now are those of the original: probation compares with them. */
	tried = md_task_has_verdict(t, "tried", "faster");
	ret = tried < 0 ? tried : md_probation_begin(t);
	if (ret)
		return ret;
	/* Not so the crashes of a trial, which noted those of the week before it. */
	if (tried)
		t->job->before_crashes = crashes;
	if (!there) {
		ret = replace(t, live, &r);
		if (ret)
			return ret;
		if (!is_in_place(t, &r))
			return md_task_advance(t,
					       r.end == MD_CHILD_EXITED &&
							       r.status == MP_EXIT_REFUSED
						       ? MP_JOB_REFUSED
						       : MP_JOB_FAILED,
					       "adopt", "refused", "%s",
					       r.reason[0] ? r.reason : "morph-optimize failed");
	}
	ret = live ? adopt_running(t) : 0;
	if (ret < 0)
		return ret;
	return md_task_advance(t, MP_JOB_ADOPTED, "adopt", "done",
			       "the new version is in place, on probation");
}

/* ---- undo ---------------------------------------------------------------------------------- */

/* The version was not worse, but made for another use: a new round begins at once. */
static int make_anew(struct md_task *t)
{
	int ret = md_file_look(t->job->path, &t->now, t->err);

	if (!ret)
		ret = md_task_restart(t, "restart original");
	return ret ? ret
		   : md_task_begin_again(t, MD_STEP_AGED, "the use of the program has changed");
}

int md_step_undo(struct md_task *t)
{
	struct md_child_result r;
	char reason[600];
	/* `morph undo' noted this step, and was killed before it had done it. */
	int asked = md_task_has_step(t, "undo"), ret = asked < 0 ? asked : 0;
	const char *step = asked ? "restore" : "undo";

	snprintf(reason, sizeof(reason), "%.500s", t->job->detail);
	if (!ret && strcmp(t->now.hash, t->job->file_hash)) {
		ret = md_task_restore(t, &r);
		if (!ret && (r.end != MD_CHILD_EXITED || r.status))
			return md_task_advance(t, MP_JOB_FAILED, step, "failed",
					       "the original could not be put back: %s",
					       r.reason[0] ? r.reason : "morph-optimize failed");
	}
	if (!ret && md_running_is(&t->dir))
		ret = md_running_undo(t);
	if (!ret)
		ret = md_task_has_step(t, MD_STEP_AGE);
	if (ret > 0)
		return make_anew(t);
	/* A user who asks for the original back does not say that the layout is bad. */
	if (!ret && !asked && t->job->layout[0])
		ret = mp_store_reject_layout(t->worker->store, &t->job->id, t->job->layout, reason,
					     time(NULL), t->err);
	if (!ret)
		ret = md_task_restart(t, "restart original");
	return ret ? ret
		   : md_task_advance(t, MP_JOB_UNDONE, step, "done", "the original is back: %s",
				     reason);
}

/* Puts the version that times its functions in the program's place. */
int md_step_instrument(struct md_task *t)
{
	struct md_work_path output = md_work_path(&t->dir, "output");
	bool there = !strcmp(t->now.hash, t->job->layout);
	struct md_child_result r;
	char why[600], hash[33];
	int ret;

	if (!there && md_deny(t->worker->policy, t->job->path, why, sizeof(why)))
		return md_task_advance(t, MP_JOB_REFUSED, "instrument", "refused", "%s", why);
	if (!there && (md_file_hash(output.text, hash) || strcmp(hash, t->job->layout)))
		return md_task_advance(t, MP_JOB_FAILED, "instrument", "failed",
				       "the version that was written is not there any more");
	if (!there && !t->worker->collector[0])
		return md_task_advance(t, MP_JOB_FAILED, "instrument", "failed",
				       "morphd is not installed beside morph-worker");
	ret = md_probation_begin(t);
	if (!ret && !there)
		ret = md_work_dir_train(&t->dir, md_task_user(t), t->err);
	if (!ret && !there)
		ret = md_task_replace(t, MD_NEW, &r);
	if (ret)
		return ret;
	if (!there && !is_in_place(t, &r))
		return md_task_advance(t,
				       r.end == MD_CHILD_EXITED && r.status == MP_EXIT_REFUSED
					       ? MP_JOB_REFUSED
					       : MP_JOB_FAILED,
				       "instrument", "refused", "%s",
				       r.reason[0] ? r.reason : "morph-optimize failed");
	return md_task_advance(t, MP_JOB_AUDITING, "instrument", "done",
			       "a version that times its functions is in place");
}
